"""Reads Functions, their revisions and their users from an API server.

The users of Functions are the steps of compositions. `Compositions` keeps the steps in memory, and
watches update them. `CompositionsOn` reads the steps on demand.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from polyver.client import Change, Client, Discovery, GroupVersionResource, Key, find, preferred
from polyver.compositions import kinds
from polyver.compositions.kinds import GROUP, STORED
from polyver.compositions.names import PACKAGE
from polyver.compositions.packages import (
    CompositionPipeline,
    FunctionPin,
    StepFunctionUse,
    pins_in,
    pipeline_of,
    revision_used,
    uses_in,
)
from polyver.controllers.controller import Watch, exactly
from polyver.core.plain import Object
from polyver.kube.objects.kinds import ResourceKind
from polyver.kube.objects.status import ApiError
from polyver.languages.values.names import label_value_problems

__all__ = [
    "FUNCTIONS",
    "FUNCTION_REVISIONS",
    "ClientFunctionLookup",
    "Compositions",
    "CompositionsOn",
    "Dependents",
    "NoDependents",
    "Users",
    "composites",
    "keep_revision",
    "observe_name",
]

_REVISIONS = GroupVersionResource(
    "apiextensions.crossplane.io", "v1", "compositionrevisions", namespaced=False
)
_CATEGORY = "composite"
_PAGE = 500
FUNCTIONS = GroupVersionResource(GROUP, STORED, kinds.FUNCTIONS.names.plural, namespaced=False)
FUNCTION_REVISIONS = GroupVersionResource(
    GROUP, STORED, kinds.FUNCTION_REVISIONS.names.plural, namespaced=False
)


class Users(Protocol):
    """Finds the users of functions: the steps of compositions that call them."""

    async def uses(self, function: str) -> Sequence[StepFunctionUse]:
        """Return the steps that call a function, from the relevant CompositionRevisions.

        These are the revisions that composite resources use, and the newest revision of each
        Composition.
        """
        ...


class Dependents(Users, Protocol):
    """Finds the users of functions in memory, for controllers. Watches keep the data up to date."""

    @property
    def watches(self) -> Sequence[Watch[Any, str]]:
        """The watches that keep the users up to date. Their keys are names of functions."""
        ...

    def pins(self, function: str) -> Mapping[FunctionPin, tuple[str, ...]]:
        """Return the names of the composite resources that each revision of a function composed.

        Each key is a revision, with the revision to which a rollback would return the composite
        resources.
        """
        ...


class NoDependents:
    """Finds no users; for API servers that do not serve compositions."""

    @property
    def watches(self) -> Sequence[Watch[Any, str]]:
        return ()

    async def uses(self, function: str) -> Sequence[StepFunctionUse]:
        del function
        return ()

    def pins(self, function: str) -> Mapping[FunctionPin, tuple[str, ...]]:
        del function
        return {}


@dataclass(frozen=True, slots=True)
class CompositeUse:
    """The CompositionRevision and the function revisions that a composite resource uses."""

    revision: str
    pins: frozenset[FunctionPin]


_NOTHING = CompositeUse("", frozenset())


class Compositions:
    """Index of CompositionRevisions and of the composite resources that use them.

    Watches update it.
    """

    def __init__(self) -> None:
        self._pipelines: dict[str, CompositionPipeline] = {}
        self._used: dict[tuple[str, str], dict[Key, CompositeUse]] = {}
        self._pins: dict[str, dict[FunctionPin, dict[str, None]]] = {}
        """The names of composite resources, by function and then by the pin that they use."""

    @property
    def watches(self) -> Sequence[Watch[Any, str]]:
        return [
            Watch(kinds=exactly(_REVISIONS), observe=self._observe_revision, keep=_pipeline),
            Watch(
                kinds=composites,
                observe=self._observe_composite,
                keep=_composite_use,
                forget=self._forget,
            ),
        ]

    async def uses(self, function: str) -> Sequence[StepFunctionUse]:
        used = {known.revision for each in self._used.values() for known in each.values()}
        found = uses_in(self._pipelines.values(), used)
        return [use for use in found if use.function == function]

    def pins(self, function: str) -> Mapping[FunctionPin, tuple[str, ...]]:
        return {pin: tuple(names) for pin, names in self._pins.get(function, {}).items()}

    def _observe_revision(
        self, kind: ResourceKind, change: Change[CompositionPipeline]
    ) -> Iterable[str]:
        del kind
        if change.before == change.after:
            return ()
        if change.after is None:
            self._pipelines.pop(change.key.name, None)
        else:
            self._pipelines[change.key.name] = change.after
        told = {each for each in (change.before, change.after) if each is not None}
        compositions = {each.composition for each in told}
        # The change may make another revision the newest revision of the composition.
        told |= {each for each in self._pipelines.values() if each.composition in compositions}
        return {function for each in told for function in each.functions}

    def _observe_composite(self, kind: ResourceKind, change: Change[CompositeUse]) -> Iterable[str]:
        if change.before == change.after:
            return ()
        used = self._used.setdefault((kind.group, kind.plural), {})
        if change.after is None:
            used.pop(change.key, None)
        else:
            used[change.key] = change.after
        before, after = change.before or _NOTHING, change.after or _NOTHING
        revisions = {before.revision, after.revision} if before.revision != after.revision else ()
        shown = f"{kind.kind} {'/'.join(filter(None, change.key))}"
        return self._functions(revisions) | self._pin(shown, before.pins, after.pins)

    def _pin(
        self, composite: str, before: frozenset[FunctionPin], after: frozenset[FunctionPin]
    ) -> set[str]:
        """Record the pins of a composite resource.

        Return the functions of which a pin got its first user or lost its last user.
        """
        touched = set()
        for pin in before - after:
            users = self._pins.get(pin.function, {}).get(pin, {})
            users.pop(composite, None)
            if not users:
                self._pins.get(pin.function, {}).pop(pin, None)
                touched.add(pin.function)
        for pin in after - before:
            users = self._pins.setdefault(pin.function, {}).setdefault(pin, {})
            touched |= {pin.function} if not users else set()
            users[composite] = None
        return touched

    def _forget(self, kind: ResourceKind, known: Iterable[CompositeUse]) -> Iterable[str]:
        del known
        touched: set[str] = set()
        for key, use in self._used.pop((kind.group, kind.plural), {}).items():
            shown = f"{kind.kind} {'/'.join(filter(None, key))}"
            touched |= self._functions({use.revision}) | self._pin(shown, use.pins, frozenset())
        return touched

    def _functions(self, revisions: Iterable[str]) -> set[str]:
        there = [self._pipelines[name] for name in revisions if name in self._pipelines]
        return {function for each in there for function in each.functions}


class CompositionsOn:
    """Reads, on demand, CompositionRevisions and the composite resources that use them."""

    def __init__(self, client: Client) -> None:
        self._client = client

    async def uses(self, function: str) -> Sequence[StepFunctionUse]:
        found = [pipeline_of(each) for each in await self._all(_REVISIONS)]
        if not any(function in each.functions for each in found):
            return ()
        discovery = await self._client.discover()
        used = {
            revision_used(each)
            for kind in composites(discovery)
            for each in await self._all(GroupVersionResource.of(kind))
        }
        return [use for use in uses_in(found, used) if use.function == function]

    async def _all(self, resource: GroupVersionResource) -> list[Object]:
        found: list[Object] = []
        more = ""
        while True:
            try:
                page = await self._client.list(resource, limit=_PAGE, more=more)
            except ApiError as error:
                if error.code == 404:
                    return found  # the kind is not served
                raise
            found += page.items
            more = page.more
            if not more:
                return found


def composites(discovery: Discovery) -> list[ResourceKind]:
    """Return the kinds of composite resources: those with the category `composite`."""
    found = preferred(discovery.kinds, verbs=("list", "watch"))
    return [kind for kind in found if _CATEGORY in kind.categories]


def _pipeline(kind: ResourceKind, obj: Object) -> CompositionPipeline:
    del kind
    return pipeline_of(obj)


def _composite_use(kind: ResourceKind, obj: Object) -> CompositeUse:
    del kind
    return CompositeUse(revision_used(obj), pins_in(obj))


def keep_revision(kind: ResourceKind, obj: Object) -> str:
    """Return the CompositionRevision that a composite resource uses. Return "" if it uses none."""
    del kind
    return revision_used(obj)


def observe_name(kind: ResourceKind, change: Change[Any]) -> Iterable[str]:
    """Return the name of an object as the key to reconcile if its observed fields changed."""
    del kind
    return (change.key.name,) if change.before != change.after else ()


class ClientFunctionLookup:
    """Reads Functions, their revisions and their users from an API server."""

    def __init__(self, client: Client, users: Users | None = None) -> None:
        self._client = client
        self._users = users or NoDependents()

    async def function(self, name: str) -> Object | None:
        """Return a Function; None if it does not exist."""
        return await find(self._client, FUNCTIONS, name) if name else None

    async def revisions(self, function: str) -> list[Object]:
        """Return the FunctionRevisions of a Function."""
        if not function or label_value_problems(function):
            return []  # the name is not a valid label value, so no revision has it
        labels = f"{PACKAGE}={function}"
        return (await self._client.list(FUNCTION_REVISIONS, labels=labels)).items

    async def uses(self, function: str) -> Sequence[StepFunctionUse]:
        """Return the steps of compositions that call a Function."""
        return await self._users.uses(function)
