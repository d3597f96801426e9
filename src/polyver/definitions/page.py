"""Data for the web page: definitions as lineages, and the applications that use them."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from polyver.client import Change, GroupVersionResource, Key
from polyver.core import Dependent, Lineage, PolyverError, Release
from polyver.core.plain import Object
from polyver.definitions.kinds import APPLICATIONS, DEFINITIONS, GROUP, STORED, VERSIONED
from polyver.definitions.names import SYSTEM_NAMESPACE
from polyver.definitions.resolution import lineage_in
from polyver.definitions.uses import (
    DefinitionUse,
    check_application,
    home_of,
    question_of,
    settled,
    uses_of,
)
from polyver.definitions.versions import is_legacy, policy_for
from polyver.web.sources import (
    LineageKey,
    LineageRequest,
    PageInformers,
    PageLineage,
    PageModel,
    PageSource,
    PublisherKey,
    UnresolvedRequest,
    WatchedCollection,
)

__all__ = ["DefinitionsSource"]

_CAPABILITY = "definitions"
_APPLICATIONS = GroupVersionResource(GROUP, STORED, APPLICATIONS.names.plural)
_BREATH = 50
_DESCRIPTION = "definition.oam.dev/description"


@dataclass(frozen=True, slots=True)
class _Definition:
    releases: tuple[Release, ...]
    text: str
    problem: str


@dataclass(frozen=True, slots=True)
class _Application:
    uses: tuple[DefinitionUse, ...]
    problem: str


@dataclass(slots=True)
class _Named:
    """The definitions of one kind and name, and the applications that reference them."""

    lineages: dict[str, Lineage] = field(default_factory=dict)
    """Lineages by the namespace of the definition."""
    applications: set[Key] = field(default_factory=set)

    @property
    def shape(self) -> dict[str, bool]:
        """Return, by the namespace of each definition, whether it has numbered revisions."""
        return {place: is_legacy(lineage) for place, lineage in self.lineages.items()}


class DefinitionsSource(PageSource):
    """Page source of the capability definitions."""

    capability = _CAPABILITY
    description = "components, traits, policies and steps that applications use"

    def __init__(self) -> None:
        self._named: dict[tuple[str, str], _Named] = {}
        self._applications: dict[Key, _Application] = {}

    def open(self, book: PageModel, following: PageInformers) -> None:
        self._book = book
        for kind in DEFINITIONS:
            resource = GroupVersionResource(GROUP, VERSIONED, kind.names.plural)
            observe = partial(self._observe_definition, kind.kind)
            following.follow(self, WatchedCollection(resource, _definition, observe))
        following.follow(
            self, WatchedCollection(_APPLICATIONS, _application, self._observe_application)
        )

    async def _observe_definition(self, kind: str, change: Change[_Definition]) -> None:
        (namespace, name), after = change.key, change.after
        named = self._named.setdefault((kind, name), _Named())
        before = named.shape
        where = LineageKey(_CAPABILITY, f"{kind}/{namespace}/{name}")
        named.lineages.pop(namespace, None)
        if after is None:
            self._book.hide(where)
        else:
            lineage = Lineage(name, after.releases)
            if after.releases:
                named.lineages[namespace] = lineage
            usual = policy_for(None, lineage)
            scope, text, problem = namespace, after.text, after.problem
            self._book.show(
                PageLineage(
                    where,
                    lineage,
                    usual,
                    kind,
                    scope=scope,
                    text=text,
                    problem=problem,
                    publisher=PublisherKey(GROUP, kind, namespace, name),
                )
            )
        if before != named.shape:
            for number, key in enumerate([*named.applications]):
                self._ask(key)
                if number % _BREATH == 0:
                    await asyncio.sleep(0)

    async def _observe_application(self, change: Change[_Application]) -> None:
        for use in change.before.uses if change.before else ():
            self._users(use).discard(change.key)
        for use in change.after.uses if change.after else ():
            self._users(use).add(change.key)
        if change.after is None:
            self._applications.pop(change.key, None)
        else:
            self._applications[change.key] = change.after
        self._ask(change.key)

    def _users(self, use: DefinitionUse) -> set[Key]:
        return self._named.setdefault((use.kind, use.definition), _Named()).applications

    def _ask(self, key: Key) -> None:
        found, name = self._applications.get(key), f"Application {key.namespace}/{key.name}"
        places = [self._asked(use) for use in found.uses] if found else []
        if found and found.problem:
            about = Dependent(name, at="metadata")
            places.append(UnresolvedRequest(about, "", found.problem))
        self._book.ask(_CAPABILITY, name, places)

    def _asked(self, use: DefinitionUse) -> LineageRequest | UnresolvedRequest:
        lineages = self._named[use.kind, use.definition].lineages
        wanted = f"{use.definition}@{use.requested}" if use.requested else use.definition
        home = home_of(use, lineages)
        if home is None:
            fact = f"there is no {use.kind} {use.definition}"
            places = dict.fromkeys((use.namespace, SYSTEM_NAMESPACE))
            return UnresolvedRequest(
                use.dependent, wanted, fact, f"searched in {' and '.join(places)}"
            )
        mine = settled(use, home)
        try:
            selector, policy = question_of(mine, lineages[home])
        except PolyverError as error:
            return UnresolvedRequest(use.dependent, wanted, error.fact, error.hint)
        where = LineageKey(_CAPABILITY, f"{use.kind}/{home}/{use.definition}")
        return LineageRequest(mine.dependent, where, use.requested, selector, policy, mine.since)


def _definition(obj: Object) -> _Definition:
    lineage, metadata = lineage_in(obj), obj["metadata"]
    conditions: Iterable[dict[str, Any]] = (obj.get("status") or {}).get("conditions") or ()
    wrong = {("Published", "False"), ("Adopted", "False")}
    refused = [
        str(each.get("message", ""))
        for each in sorted(conditions, key=lambda each: each.get("type") != "Published")
        if (each.get("type"), each.get("status")) in wrong and each.get("reason") != "Progressing"
    ]
    return _Definition(
        lineage.releases if lineage else (),
        (metadata.get("annotations") or {}).get(_DESCRIPTION) or "",
        refused[0] if refused else "",
    )


def _application(obj: Object) -> _Application:
    try:
        check_application(obj)
        return _Application(tuple(uses_of(obj)), "")
    except PolyverError as error:
        return _Application(tuple(uses_of(obj)), str(error))
