"""Packages of functions as lineages of revisions, and the steps of compositions, which ask them.

Of each composition its newest revision counts, which the next composite resource would use.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from polyver.capabilities.revisions import REVISIONS
from polyver.capabilities.revisions.kinds import FUNCTION_REVISIONS, FUNCTIONS, GROUP, STORED
from polyver.capabilities.revisions.packages import (
    Pipeline,
    function_of,
    known_revision,
    pipeline_of,
    uses_in,
)
from polyver.client import CRDS, Change, Object, Resource
from polyver.core import Dependent, Lineage, PolyverError, Release
from polyver.web.sources import (
    Asked,
    Book,
    Details,
    Following,
    Shown,
    Source,
    Unanswered,
    Watched,
    Where,
)

__all__ = ["RevisionsSource"]

_CAPABILITY = "revisions"
_FUNCTIONS = Resource(GROUP, STORED, FUNCTIONS.names.plural, namespaced=False)
_REVISIONS = Resource(GROUP, STORED, FUNCTION_REVISIONS.names.plural, namespaced=False)
_COMPOSITIONS = Resource(
    "apiextensions.crossplane.io", "v1", "compositionrevisions", namespaced=False
)


@dataclass(frozen=True, slots=True)
class _Function:
    package: str
    problem: str


@dataclass(frozen=True, slots=True)
class _Revision:
    function: str
    release: Release
    endpoint: str
    problem: str


class RevisionsSource(Source):
    """The capability revisions."""

    def __init__(self) -> None:
        self._functions: dict[str, _Function] = {}
        self._revisions: dict[str, dict[str, _Revision]] = {}
        """By function and name."""
        self._pipelines: dict[str, Pipeline] = {}
        self._asking: dict[str, set[str]] = {}
        """The dependents that each composition has."""

    def open(self, book: Book, following: Following) -> None:
        self._book = book
        self._following = following
        following.follow(self, Watched(_FUNCTIONS, _function, self._observe_function))
        following.follow(self, Watched(_REVISIONS, _revision, self._observe_revision))
        # Compositions may not be there, and a collection that is not is never known as a whole.
        following.follow(self, Watched(CRDS, _is_composition, self._observe_kind, metadata=True))

    async def _observe_kind(self, change: Change[bool]) -> None:
        if change.after:
            watched = Watched(_COMPOSITIONS, pipeline_of, self._observe_pipeline)
            self._following.follow(self, watched)
        elif change.before:
            for key, known in (await self._following.unfollow(self, _COMPOSITIONS)).items():
                await self._observe_pipeline(Change(key, known, None))

    async def _observe_function(self, change: Change[_Function]) -> None:
        name = change.key.name
        if change.after is None:
            self._functions.pop(name, None)
        else:
            self._functions[name] = change.after
        self._show(name)

    async def _observe_revision(self, change: Change[_Revision]) -> None:
        for known in filter(None, (change.before, change.after)):
            self._revisions.setdefault(known.function, {}).pop(change.key.name, None)
        if change.after is not None:
            self._revisions[change.after.function][change.key.name] = change.after
        for function in {known.function for known in (change.before, change.after) if known}:
            self._show(function)

    def _show(self, name: str) -> None:
        where, function = Where(_CAPABILITY, name), self._functions.get(name)
        revisions = self._revisions.get(name) or {}
        was_there = self._book.get(where) is not None
        if function is None and not revisions:
            self._book.hide(where)
        else:
            self._book.show(_shown(where, function, revisions))
        if was_there is (self._book.get(where) is None):
            # Who asked a function that was not there can be answered now, and the other way round.
            for composition in {each.composition for each in self._pipelines.values()}:
                self._ask(composition)

    async def _observe_pipeline(self, change: Change[Pipeline]) -> None:
        if change.after is None:
            self._pipelines.pop(change.key.name, None)
        else:
            self._pipelines[change.key.name] = change.after
        for known in filter(None, (change.before, change.after)):
            self._ask(known.composition)

    def _ask(self, composition: str) -> None:
        mine = [each for each in self._pipelines.values() if each.composition == composition]
        places: dict[str, list[Asked | Unanswered]] = {}
        for use in uses_in(mine, ()):
            where = Where(_CAPABILITY, use.function)
            dependent: Dependent = use.dependent
            asked: Asked | Unanswered = Asked(
                dependent, where, str(use.selector), use.selector, REVISIONS
            )
            if self._book.get(where) is None:
                fact = f"there is no function {use.function}"
                asked = Unanswered(dependent, use.function, fact)
            places.setdefault(dependent.name, []).append(asked)
        for gone in self._asking.get(composition, set()) - places.keys():
            self._book.ask(_CAPABILITY, gone)
        for name, asked_there in places.items():
            self._book.ask(_CAPABILITY, name, asked_there)
        self._asking[composition] = set(places)


def _is_composition(obj: Object) -> bool:
    return bool(obj["metadata"]["name"] == f"{_COMPOSITIONS.plural}.{_COMPOSITIONS.group}")


def _function(obj: Object) -> _Function:
    return _Function(obj["spec"].get("package", ""), _problem(obj, "Installed", "Healthy"))


def _revision(obj: Object) -> _Revision:
    endpoint = (obj.get("status") or {}).get("endpoint") or ""
    return _Revision(
        function_of(obj), known_revision(obj).release, endpoint, _problem(obj, "RuntimeHealthy")
    )


def _problem(obj: Object, *types: str) -> str:
    """What a condition says that should be true and is not."""
    conditions: Iterable[dict[str, Any]] = (obj.get("status") or {}).get("conditions") or ()
    wrong = [
        each for each in conditions if each.get("type") in types and each.get("status") == "False"
    ]
    return str(wrong[0].get("message") or wrong[0].get("reason") or "") if wrong else ""


def _shown(where: Where, function: _Function | None, revisions: dict[str, _Revision]) -> Shown:
    problem = function.problem if function else "the function is gone, and revisions are left"
    try:
        lineage = Lineage(where.path, [each.release for each in revisions.values()])
    except PolyverError as error:
        lineage, problem = Lineage(where.path), str(error)
    return Shown(
        where,
        lineage,
        REVISIONS,
        "function package",
        problem=problem,
        facts={"package": function.package} if function else {},
        details={name: _details(each) for name, each in revisions.items()},
    )


def _details(revision: _Revision) -> Details:
    text = f"served at {revision.endpoint}" if revision.endpoint else ""
    return Details(revision.problem or text, ("not healthy",) if revision.problem else ())
