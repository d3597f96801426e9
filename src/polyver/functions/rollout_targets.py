"""Blueprint functions in the form that rollouts need: releases, followers, and the preflight.

A release is a version that becomes stable in the catalogue. A follower is a blueprint with a phase
that calls the function without `funcVersion`. Nobody has to run a blueprint, so a follower is idle
until an ActionSet runs it with the release.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from polyver.capability.gates import SYSTEM_NAMESPACE, LineageName, ReleaseObject
from polyver.capability.rollouts import LineagesChanged, ObservedCalls
from polyver.client import Change, Client, GroupVersionResource, Key, find
from polyver.controllers.controller import Watch, exactly
from polyver.core import Dependent, Gate, SemVer
from polyver.core.cohorts import Cohorts, FollowerState
from polyver.core.plain import Object
from polyver.core.preflight import Preflight, PreflightReport
from polyver.core.rollout import Exposure
from polyver.functions.blueprints import (
    Blueprint,
    Phase,
    blueprint_of,
    misfitting_versions,
    new_errors,
    uses_in,
)
from polyver.functions.controllers.actions import CANCEL
from polyver.functions.controllers.gates import FunctionGates
from polyver.functions.gates import GateRecord, gated, lineage_name, with_gate
from polyver.functions.kinds import ACTION_SETS, BLUEPRINTS, GROUP
from polyver.functions.observations import (
    ActionSetObservations,
    PhaseCallHistory,
    observations_in,
    state_towards,
)
from polyver.functions.registering import Functions
from polyver.kube.objects.kinds import ResourceKind

__all__ = ["FunctionTargets"]

_VERSION = "v1alpha1"
_BLUEPRINTS = GroupVersionResource(GROUP, _VERSION, BLUEPRINTS.names.plural)
_STATES: Final[tuple[FollowerState, ...]] = (
    "idle",
    "running",
    "healthy",
    "unhealthy",
    "failing",
)
_ACTION_SETS = GroupVersionResource(GROUP, _VERSION, ACTION_SETS.names.plural)


@dataclass(frozen=True, slots=True)
class _Follower:
    """A blueprint, and the functions that it follows.

    `follows` has each followed function, with its versions that do not take the arguments in the
    blueprint.
    """

    user: Dependent
    follows: Mapping[str, frozenset[str]]


@dataclass(slots=True)
class _Counted:
    """The followers of one release by their state, and the gate for which they were counted."""

    gate: Gate | None
    cohorts: Cohorts = field(default_factory=Cohorts)


class FunctionTargets:
    """The functions of the catalogue, and the blueprints that follow them."""

    kinds: Sequence[tuple[str, str]] = ((lineage_name("").group, lineage_name("").kind),)
    noun = "blueprints"
    has_calls = True

    def __init__(self, client: Client, functions: Functions) -> None:
        self._client = client
        self._functions = functions
        self._gates = FunctionGates(client, functions)
        self._record: GateRecord = {}
        """The record of gates as it was last read or written."""
        self._blueprints: dict[str, _Follower] = {}
        """The blueprints by namespace and name."""
        self._action_sets: dict[str, dict[Key, ActionSetObservations]] = {}
        """Observations of ActionSets, by the namespace and name of the blueprint. It has only
        ActionSets that used a version during a rollout of this version.
        """
        self._calls: dict[str, PhaseCallHistory] = {}
        self._counted: dict[tuple[LineageName, str], _Counted] = {}

    # Watches.

    def watches(
        self, released: LineagesChanged, moved: LineagesChanged
    ) -> Sequence[Watch[Any, Any]]:
        def blueprint(kind: ResourceKind, change: Change[_Follower]) -> Iterable[Any]:
            del kind
            return released(self._observe_blueprint(change))

        def action_set(kind: ResourceKind, change: Change[ActionSetObservations]) -> Iterable[Any]:
            del kind
            return moved(self._observe_action_set(change))

        return [
            Watch(kinds=exactly(_BLUEPRINTS), observe=blueprint, keep=self._follower),
            Watch(kinds=exactly(_ACTION_SETS), observe=action_set, keep=_observations),
        ]

    def _observe_blueprint(self, change: Change[_Follower]) -> set[LineageName]:
        if change.before == change.after:
            return set()
        name = f"{change.key.namespace}/{change.key.name}"
        if change.after is None:
            self._blueprints.pop(name, None)
        else:
            self._blueprints[name] = change.after
        both = [each for each in (change.before, change.after) if each is not None]
        return self._recount([name], {each for known in both for each in known.follows})

    def _observe_action_set(self, change: Change[ActionSetObservations]) -> set[LineageName]:
        before, after = change.before, change.after
        if before == after:
            return set()
        for name, call in before.calls if before is not None else ():
            self._calls[name].remove(call)
        for name, call in after.calls if after is not None else ():
            self._calls.setdefault(name, PhaseCallHistory()).add(call)
        blueprints = set()
        for known, is_new in ((before, False), (after, True)):
            for each in known.versions if known is not None else ():
                blueprints.add(each.blueprint)
                mine = self._action_sets.setdefault(each.blueprint, {})
                mine.pop(change.key, None)
                if is_new and known is not None:
                    mine[change.key] = known
        both = [each for each in (before, after) if each is not None]
        return self._recount(blueprints, {each for known in both for each in known.functions})

    def _recount(self, blueprints: Iterable[str], functions: set[str]) -> set[LineageName]:
        """Update the counts of followers after these blueprints or their runs have changed.

        Only existing counts for releases of `functions` are updated. Return the lineages of these
        releases.
        """
        found = [each for each in self._counted if each[0].name in functions]
        for lineage, release in found:
            for name in blueprints:
                self._count(self._counted[lineage, release], lineage.name, release, name)
        return {lineage for lineage, _ in found}

    def _follower(self, kind: ResourceKind, obj: Object) -> _Follower:
        del kind
        blueprint, _ = blueprint_of(obj)
        if blueprint is None:
            return _Follower(Dependent(), {})
        user = Dependent(blueprint.label, uid=blueprint.uid, labels=blueprint.labels)
        follows: dict[str, frozenset[str]] = {}
        for phase in _following(blueprint):
            wrong = misfitting_versions(self._functions, phase)
            follows[phase.function] = follows.get(phase.function, frozenset()) | wrong
        return _Follower(user, follows)

    # Releases.

    def lineages(self, namespace: str) -> Mapping[LineageName, Mapping[str, str]]:
        if namespace != SYSTEM_NAMESPACE:
            return {}
        return {lineage_name(each.name): {} for each in self._functions if each.code}

    async def releases(self, lineage: LineageName) -> Sequence[ReleaseObject]:
        self._record = await self._gates.recorded()
        recorded = self._record.get(lineage.name, ())
        found = [
            ReleaseObject(each.version, order, each.gate, True)
            for order, each in enumerate(recorded)
        ]
        known = self._functions.known.get(lineage.name)
        stable = known.stable if known is not None else None
        if stable is not None and all(each.name != stable.name for each in found):
            found.append(ReleaseObject(stable.name, len(found), None, False))
        return found

    async def write_gate(self, lineage: LineageName, release: str, gate: Gate | None) -> None:
        self._record = await self._gates.write(lineage.name, release, gate)

    def _gate(self, function: str, version: str) -> Gate | None:
        recorded = self._record.get(function, ())
        return next((each.gate for each in recorded if each.version == version), None)

    # Followers.

    async def followers(self, lineage: LineageName, release: str) -> Cohorts:
        gate, counted = self._gate(lineage.name, release), self._counted.get((lineage, release))
        if counted is None or not _is_same(counted.gate, gate):
            counted = self._counted[lineage, release] = _Counted(gate)
            for name in self._blueprints:
                self._count(counted, lineage.name, release, name)
        return counted.cohorts

    def _count(self, counted: _Counted, function: str, version: str, name: str) -> None:
        """Update the count of the followers of a version after the blueprint `name` has changed."""
        known = self._blueprints.get(name)
        if known is None or function not in known.follows:
            counted.cohorts.remove(name)
            return
        uses = [
            use
            for each in self._action_sets.get(name, {}).values()
            for use in each.versions
            if (use.blueprint, use.function, use.version) == (name, function, version)
        ]
        wrong = version in known.follows[function]
        counted.cohorts.put(known.user, state_towards(counted.gate, uses, misfits=wrong))

    def calls(
        self, lineage: LineageName, release: str, *, since: float
    ) -> tuple[ObservedCalls, ObservedCalls]:
        return self._calls.get(lineage.name, PhaseCallHistory()).since(since, release)

    # Preflight.

    async def preflight(
        self, lineage: LineageName, release: str, sample: int | None
    ) -> PreflightReport:
        """Report how the follower blueprints would change if the version had no gate.

        polyver compares the versions and errors of their phases, and calls no function.
        """
        record, found = await self._gates.recorded(), Preflight()
        held, opened = (
            gated(self._functions, with_gate(record, lineage.name, release, each))
            for each in (Gate("preflight"), None)
        )
        cohorts = await self.followers(lineage, release)
        names = cohorts.names(Exposure(1.0), *_STATES)
        for name in names[:sample]:
            namespace, _, plain = name.rpartition("/")
            obj = await find(self._client, _BLUEPRINTS, plain, namespace)
            blueprint, _ = blueprint_of(obj) if obj is not None else (None, [])
            if blueprint is not None:
                await asyncio.to_thread(_compare, found, blueprint, lineage.name, held, opened)
        return found.report()


def _following(blueprint: Blueprint) -> list[Phase]:
    """Return the phases that request no exact version."""
    calls = (phase for action in blueprint.actions.values() for phase in action.calls)
    return [phase for phase in calls if not phase.version]


def _is_same(one: Gate | None, other: Gate | None) -> bool:
    """Report whether each follower has the same state with both gates."""
    if one is None or other is None:
        return one is other
    return (one.rollout, one.returns) == (other.rollout, other.returns)


def _compare(
    found: Preflight, blueprint: Blueprint, function: str, before: Functions, after: Functions
) -> None:
    """Add a blueprint to a preflight: as failed if it gets new errors, otherwise with its changes.

    `before` are the functions while the tested release is closed, and `after` the functions while
    it is open for all blueprints.
    """
    if errors := new_errors(blueprint, before, after):
        found.fail(blueprint.label, [each.fact for each in errors])
        return
    was, will_be = (_versions(blueprint, function, each) for each in (before, after))
    found.compare(blueprint.label, was, will_be)


def _versions(blueprint: Blueprint, function: str, functions: Functions) -> list[Object]:
    """Return the versions that the phases of a blueprint use, as a list with one dictionary.

    The preflight compares this dictionary as it compares the objects of other followers.
    """
    used = {
        each.version
        for each in uses_in([blueprint], functions)
        if each.phase.function == function and not each.phase.version
    }
    text = ", ".join(sorted(used, key=lambda each: SemVer.complete(each or "0")))
    named = {"kind": "Blueprint", "metadata": {"name": blueprint.name}}
    return [{"apiVersion": f"{GROUP}/{_VERSION}", **named, function: text}]


def _observations(kind: ResourceKind, obj: Object) -> ActionSetObservations:
    del kind
    metadata = obj["metadata"]
    asked = (metadata.get("annotations") or {}).get(CANCEL) == "true"
    return observations_in(obj, is_cancelled=asked or "deletionTimestamp" in metadata)
