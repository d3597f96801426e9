"""Observations of function versions: the results and times of calls in ActionSets.

Rollouts use these observations. They are read from the status of the ActionSets, so they survive
restarts, and each replica has the same ones.
"""

from __future__ import annotations

import math
from bisect import bisect_left, insort
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import NamedTuple

from polyver.core.cohorts import FollowerState
from polyver.core.lineage import Gate
from polyver.core.plain import Object
from polyver.core.rollout_checks import ObservedCalls
from polyver.functions.actions import ActionRun, PhaseRun, RunState, read_run

__all__ = [
    "ActionSetObservations",
    "FollowedVersion",
    "PhaseCall",
    "PhaseCallHistory",
    "observations_in",
    "state_towards",
]


class PhaseCall(NamedTuple):
    """A call of a function that has ended."""

    ended: float
    """The Unix time at which the call ended."""
    seconds: float
    version: str
    has_failed: bool
    owner: str
    """The ActionSet, and the indexes of the action and the phase, such as `shop/backup/0/1`."""


@dataclass(frozen=True, slots=True)
class FollowedVersion:
    """A function version that an action used during a rollout of this version."""

    blueprint: str
    """The blueprint, as `NAMESPACE/NAME`."""
    function: str
    version: str
    rollout: str
    state: FollowerState
    """The state of the action: `running`, `healthy` if it is complete, or `unhealthy` if it has
    failed.
    """
    time: float
    """The Unix time at which the last call of the action ended. If no call has ended, the time at
    which the action started.
    """


@dataclass(frozen=True, slots=True)
class ActionSetObservations:
    """All observations of one ActionSet."""

    versions: tuple[FollowedVersion, ...] = ()
    calls: tuple[tuple[str, PhaseCall], ...] = ()
    """The ended calls of all phases, each as a pair with the name of the called function."""

    @property
    def functions(self) -> set[str]:
        return {each.function for each in self.versions} | {name for name, _ in self.calls}


def observations_in(action_set: Object, *, is_cancelled: bool) -> ActionSetObservations:
    """Return the observations of an ActionSet.

    Calls that a restart or a user has interrupted are left out, because they show nothing about the
    function. Failed actions with such a call are left out, too.
    """
    metadata, run = action_set["metadata"], read_run(action_set)
    namespace, name = metadata.get("namespace", ""), metadata["name"]
    actions = [each for each in run.actions if each.snapshot] if run is not None else []
    calls = [
        each
        for number, action in enumerate(actions)
        for each in _calls(action, f"{namespace}/{name}/{number}")
    ]
    versions = [each for action in actions for each in _versions(action, namespace, is_cancelled)]
    return ActionSetObservations(tuple(versions), tuple(calls))


def _calls(action: ActionRun, owner: str) -> Iterator[tuple[str, PhaseCall]]:
    for place, call in enumerate(action.calls):
        if call.started and call.ended:
            began, ended = _time(call.started), _time(call.ended)
            has_failed, at = call.state is RunState.FAILED, f"{owner}/{place}"
            seconds = max(0.0, ended - began)
            made = PhaseCall(ended, seconds, call.version, has_failed, at)
            yield action.written(place).function, made


def _versions(action: ActionRun, namespace: str, is_cancelled: bool) -> Iterator[FollowedVersion]:
    times = [_time(each.ended) for each in action.calls if each.ended]
    time = max(times, default=_time(str(action.snapshot.get("time") or "")))
    for place, call in enumerate(action.calls):
        state = _state(action, call, is_cancelled)
        if call.rollout and state is not None:
            blueprint, function = f"{namespace}/{action.blueprint}", action.written(place).function
            about = blueprint, function, call.version, call.rollout
            yield FollowedVersion(*about, state, time)


def _state(action: ActionRun, call: PhaseRun, is_cancelled: bool) -> FollowerState | None:
    """Return the state of an action, as an observation of the version that one of its phases calls.

    Return None if the action shows nothing about the version, for example because it was cancelled.
    """
    if not action.state.is_over:
        return "running"
    if action.state is RunState.COMPLETE:
        return "healthy"
    interrupted = any(
        each.state is RunState.FAILED and each.started and not each.ended for each in action.calls
    )
    if is_cancelled or interrupted or call.state is RunState.PENDING:
        return None
    return "unhealthy"


def _time(text: str) -> float:
    try:
        return datetime.fromisoformat(text).timestamp()
    except ValueError:
        return 0.0


def state_towards(
    gate: Gate | None, uses: Iterable[FollowedVersion], *, misfits: bool
) -> FollowerState:
    """Return the state of a blueprint towards a version with the gate `gate`.

    `uses` are the uses of this version by actions of the blueprint; the action that ended last
    decides. `misfits` is True if the version does not take the arguments of the blueprint.
    """
    mine = [each for each in uses if gate is not None and each.rollout == gate.rollout]
    running: FollowerState = "running" if any(each.state == "running" for each in mine) else "idle"
    if gate is None or gate.returns:
        return running
    if misfits:
        return "failing"
    ended = [each for each in mine if each.state != "running"]
    return max(ended, key=lambda each: each.time).state if ended else running


class PhaseCallHistory:
    """The calls of one function, sorted by their ends.

    >>> history = PhaseCallHistory()
    >>> history.add(PhaseCall(10.0, 0.5, "v0.2.0", False, "a"))
    >>> history.since(5.0, "v0.2.0")
    (ObservedCalls(count=1, errors=0, p99=0.5), ObservedCalls(count=0, errors=0, p99=0.0))
    """

    def __init__(self) -> None:
        self._calls: list[PhaseCall] = []

    def add(self, call: PhaseCall) -> None:
        insort(self._calls, call)

    def remove(self, call: PhaseCall) -> None:
        del self._calls[bisect_left(self._calls, call)]

    def since(self, time: float, version: str) -> tuple[ObservedCalls, ObservedCalls]:
        """Return statistics about the calls that ended since the Unix time `time`.

        The first value is about calls of the given version, the second about calls of other
        versions.
        """
        recent = self._calls[bisect_left(self._calls, time, key=lambda each: each.ended) :]
        mine = [each for each in recent if each.version == version]
        others = [each for each in recent if each.version != version]
        return _observed(mine), _observed(others)


def _observed(calls: Sequence[PhaseCall]) -> ObservedCalls:
    """Return the number of calls, the number of failed calls, and the 99th percentile of durations.

    The percentile is the smallest duration that 99 % of the calls do not exceed.
    """
    if not calls:
        return ObservedCalls()
    durations = sorted(each.seconds for each in calls)
    p99 = durations[math.ceil(0.99 * len(durations)) - 1]
    return ObservedCalls(len(calls), sum(each.has_failed for each in calls), p99)
