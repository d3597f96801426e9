"""Definitions in the form that rollouts need: releases, followers, and the preflight.

A follower is an application with a reference that moves to new versions automatically. Rollouts
read the state of a follower from its status, in which the controller of applications reports moves,
failures and health.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from polyver.capability.followers import (
    FollowerIndex,
    has_same_followers,
    lineage_with_open,
)
from polyver.capability.gates import STATE, LineageName, ReleaseObject, gate_annotations
from polyver.capability.rollouts import LineagesChanged, ObservedCalls
from polyver.client import Change, Client, GroupVersionResource, Key
from polyver.client.field_managers import POLYVER
from polyver.controllers.controller import Watch, exactly
from polyver.core import (
    Dependent,
    Exact,
    Gate,
    Lineage,
    PolyverError,
    Release,
    SemVer,
    Serial,
    resolve,
)
from polyver.core.cohorts import WORST_FIRST, Cohorts, FollowerState
from polyver.core.plain import Object
from polyver.core.preflight import PreflightReport
from polyver.core.rollout import Exposure
from polyver.definitions.controllers.definitions import ClientDefinitionLookup
from polyver.definitions.kinds import APPLICATIONS, DEFINITIONS, GROUP, REVISIONS, STORED, VERSIONED
from polyver.definitions.names import SYSTEM_NAMESPACE
from polyver.definitions.planning import preflight_of
from polyver.definitions.publishing import known_revision
from polyver.definitions.resolution import lineage_in
from polyver.definitions.uses import (
    DefinitionUse,
    home_of,
    is_healthy,
    question_of,
    settled,
    uses_of,
)
from polyver.kube.objects.kinds import ResourceKind
from polyver.kube.objects.status import ApiError

__all__ = ["DefinitionTargets", "state_towards"]

_APPLICATIONS = GroupVersionResource(GROUP, STORED, APPLICATIONS.names.plural)
_REVISIONS = GroupVersionResource(GROUP, STORED, REVISIONS.names.plural)
_RESOURCES = {
    kind.kind: GroupVersionResource(GROUP, VERSIONED, kind.names.plural) for kind in DEFINITIONS
}


@dataclass(frozen=True, slots=True)
class _Application:
    """The references of an application, and its health."""

    uses: tuple[DefinitionUse, ...]
    health: FollowerState
    """`healthy` or `unhealthy`; `moved` if the health is not known yet."""


@dataclass(frozen=True, slots=True)
class _Definition:
    """The published releases of a definition, in the order of their versions, and its labels."""

    releases: tuple[Release, ...]
    labels: tuple[tuple[str, str], ...]


class DefinitionTargets:
    """The lineages of the four kinds of definitions, and the applications that follow them."""

    kinds: Sequence[tuple[str, str]] = tuple((GROUP, kind.kind) for kind in DEFINITIONS)
    noun = "applications"
    has_calls = False

    def __init__(self, client: Client) -> None:
        self._client = client
        self._revisions = ClientDefinitionLookup(client)
        self._definitions: dict[LineageName, _Definition] = {}
        self._applications = FollowerIndex[Key, _Application](
            topics=lambda each: [(use.kind, use.definition) for use in each.uses],
            topic=lambda lineage: (lineage.kind, lineage.name),
            opened=self._opened,
            state=self._state,
        )

    # Watches.

    def watches(
        self, released: LineagesChanged, moved: LineagesChanged
    ) -> Sequence[Watch[Any, Any]]:
        def definition(kind: ResourceKind, change: Change[_Definition]) -> Iterable[Any]:
            return released(self._observe_definition(kind.kind, change))

        def application(kind: ResourceKind, change: Change[_Application]) -> Iterable[Any]:
            del kind
            return moved(self._observe_application(change))

        def revision(kind: ResourceKind, change: Change[Any]) -> Iterable[Any]:
            del kind
            return released(self._published(change.key)) if change.before != change.after else ()

        return [
            *(
                Watch(kinds=exactly(resource), observe=definition, keep=_definition)
                for resource in _RESOURCES.values()
            ),
            Watch(kinds=exactly(_APPLICATIONS), observe=application, keep=_application),
            Watch(kinds=exactly(_REVISIONS), observe=revision, keep=_mark, metadata=True),
        ]

    def _observe_definition(self, kind: str, change: Change[_Definition]) -> Iterable[LineageName]:
        if change.before == change.after:
            return ()
        name = LineageName(GROUP, kind, change.key.namespace, change.key.name)
        if change.after is None:
            self._definitions.pop(name, None)
        else:
            self._definitions[name] = change.after
        before, after = (
            Lineage(name.name, each.releases) if each is not None else None
            for each in (change.before, change.after)
        )

        def is_same(release: str) -> bool:
            # Without one of them, references may now refer to a definition in another namespace.
            if before is None or after is None:
                return False
            return has_same_followers(before, after, release)

        self._applications.changed((kind, name.name), is_same)
        return (name,)

    def _observe_application(self, change: Change[_Application]) -> Iterable[LineageName]:
        before, after = change.before, change.after
        if before == after:
            return ()
        self._applications.observe(change.key, after)
        both = [use for each in (before, after) if each is not None for use in each.uses]
        return {name for use in both if (name := self._meant(use)) is not None}

    def _published(self, key: Key) -> Iterable[LineageName]:
        """Return the lineages of the definitions to which the revision `key` may belong.

        The name of the revision is the name of the definition, `-v` and a version.
        """
        return [
            each
            for each in self._definitions
            if each.namespace == key.namespace and key.name.startswith(f"{each.name}-v")
        ]

    # Releases.

    def lineages(self, namespace: str) -> Mapping[LineageName, Mapping[str, str]]:
        return {
            name: dict(known.labels)
            for name, known in self._definitions.items()
            if name.policy_namespace == namespace
        }

    async def releases(self, lineage: LineageName) -> Sequence[ReleaseObject]:
        found = await self._revisions.revisions(lineage.kind, lineage.namespace, lineage.name)
        known = [(each, obj) for obj in found if (each := known_revision(obj)) is not None]
        # Old numbered revisions may exist in addition to semantic versions.
        semantic = [each for each in known if not isinstance(each[0].version, Serial)] or known
        there = self._definitions.get(lineage)
        published = {each.name for each in there.releases} if there is not None else set()
        objects = {each.release.name: obj["metadata"] for each, obj in semantic}
        return [
            ReleaseObject(
                release.name,
                order,
                release.gate,
                STATE in (objects[release.name].get("annotations") or {}),
                release.name in published,
                _series(release),
            )
            for order, release in enumerate(
                Lineage(lineage.name, [each.release for each, _ in semantic])
            )
        ]

    async def write_gate(self, lineage: LineageName, release: str, gate: Gate | None) -> None:
        for obj in await self._revisions.revisions(lineage.kind, lineage.namespace, lineage.name):
            known, metadata = known_revision(obj), obj["metadata"]
            if known is None or known.release.name != release:
                continue
            change = {"metadata": {"annotations": gate_annotations(gate)}}
            names = metadata["name"], metadata["namespace"]
            try:
                await self._client.patch(_REVISIONS, *names, change=change, manager=POLYVER)
            except ApiError as error:
                if error.code != 404:  # it has just been removed
                    raise

    # Followers.

    async def followers(self, lineage: LineageName, release: str) -> Cohorts:
        return await self._applications.followers(lineage, release)

    def _opened(self, lineage: LineageName, release: str) -> Lineage | None:
        known = self._definitions.get(lineage)
        there = Lineage(lineage.name, known.releases) if known is not None else None
        return lineage_with_open(there, release)

    def _state(
        self, key: Key, application: _Application, lineage: LineageName, opened: Lineage, to: str
    ) -> tuple[Dependent, FollowerState] | None:
        """Return the state of an application as a follower of the release `to`.

        It is the worst state of its references to the lineage. Return None if none of them follows.
        """
        del key
        states: dict[FollowerState, Dependent] = {}
        for use in application.uses:
            if use.definition != lineage.name or self._meant(use) != lineage:
                continue
            mine = settled(use, lineage.namespace)
            state = state_towards(mine, opened, to, application.health)
            if state is not None:
                states[state] = mine.dependent
        worst = next((each for each in WORST_FIRST if each in states), None)
        return (states[worst], worst) if worst is not None else None

    def _meant(self, use: DefinitionUse) -> LineageName | None:
        """Return the definition to which a reference refers. Return None if there is none."""
        places = dict.fromkeys((use.namespace, SYSTEM_NAMESPACE))
        names = {each: LineageName(GROUP, use.kind, each, use.definition) for each in places}
        home = home_of(use, [each for each, name in names.items() if name in self._definitions])
        return names[home] if home is not None else None

    def calls(
        self, lineage: LineageName, release: str, *, since: float
    ) -> tuple[ObservedCalls, ObservedCalls]:
        del lineage, release, since
        return ObservedCalls(), ObservedCalls()  # rendering a template calls nothing

    # Preflight.

    async def preflight(
        self, lineage: LineageName, release: str, sample: int | None
    ) -> PreflightReport:
        cohorts = await self.followers(lineage, release)
        names = cohorts.names(Exposure(1.0), "waiting", "failing", "held")[:sample]
        return await preflight_of(
            self._client, (lineage.kind, lineage.namespace, lineage.name), release, names
        )


def state_towards(
    use: DefinitionUse, opened: Lineage, release: str, health: FollowerState
) -> FollowerState | None:
    """Return the state of a reference as a follower of a release.

    Return None if the reference does not follow the release. `opened` is the lineage in which the
    gate of the release is removed. A reference follows the release if this lineage resolves it to
    the release, and if neither a lock nor the selector of the reference names the release.
    """
    dependent = use.dependent
    if dependent.lock is not None or use.held:
        return None
    try:
        selector, policy = question_of(use, opened)
        found = resolve(opened, selector, policy, replace(dependent, failed_move=None)).release
    except PolyverError:
        return None
    if found.name != release or isinstance(selector, Exact):
        return None
    if dependent.pin == found.pin:
        return health
    failed = dependent.failed_move
    if failed is None or failed.to != found.pin:
        return "waiting"
    return "held" if failed.deletes else "failing"


def _series(release: Release) -> str:
    """Return the series of a release: `1.2` for 1.2.3. It is empty for a numbered revision.

    References that request this series never get a release of another series.
    """
    version = release.version
    return f"{version.major}.{version.minor}" if isinstance(version, SemVer) else ""


def _definition(kind: ResourceKind, obj: Object) -> _Definition:
    del kind
    labels = obj["metadata"].get("labels") or {}
    lineage = lineage_in(obj)
    return _Definition(lineage.releases if lineage else (), tuple(sorted(labels.items())))


def _application(kind: ResourceKind, obj: Object) -> _Application:
    del kind
    status = obj.get("status") or {}
    if status.get("status") == "failed":
        health: FollowerState = "unhealthy"
    else:
        health = "healthy" if is_healthy(status) else "moved"
    return _Application(tuple(uses_of(obj)), health)


def _mark(kind: ResourceKind, obj: Object) -> tuple[Any, ...]:
    del kind
    annotations = obj["metadata"].get("annotations") or {}
    return obj["metadata"].get("uid"), annotations.get(STATE)
