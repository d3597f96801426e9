"""The action as a state machine: how far it is, and what goes on here, in; what to do next, out.

Whoever does it stores the new state first, by compare-and-swap, so that what was called is known
after any crash.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from polyver.functions.actions._run import ActionRun, State, Waiting

__all__ = [
    "Await",
    "Call",
    "Conclude",
    "Effect",
    "Over",
    "Recover",
    "Stop",
    "called",
    "concluded",
    "decide",
    "failed",
    "interrupted",
    "returned",
    "waits",
]


@dataclass(frozen=True, slots=True)
class Call:
    """Call the function of a phase, once it is stored that this is being done."""

    place: int


@dataclass(frozen=True, slots=True)
class Await:
    """A call is under way here; its end will be stored."""

    place: int


@dataclass(frozen=True, slots=True)
class Stop:
    """A call is under way here, and is wanted no longer."""

    place: int
    reason: str


@dataclass(frozen=True, slots=True)
class Recover:
    """A call was under way, and nobody knows how far it got."""

    place: int


@dataclass(frozen=True, slots=True)
class Conclude:
    """Nothing is left to call: render what it leaves for others, and end."""


@dataclass(frozen=True, slots=True)
class Over:
    """It has ended."""


Effect = Call | Await | Stop | Recover | Conclude | Over


def decide(action: ActionRun, *, alive: int | None = None, cancelled: str = "") -> Effect:
    """What to do next; `alive` is the place of the call that is under way in this process.

    `cancelled` says why nothing further is wanted. The deferred phase runs all the same, and is
    not stopped: it is what cleans up.
    """
    if action.state.is_over:
        return Over()
    running = _place(action, State.RUNNING)
    if running is None:
        return _next(action, cancelled)
    if alive != running:
        return Recover(running)
    stops = bool(cancelled) and not action.is_deferred(running)
    return Stop(running, cancelled) if stops else Await(running)


def _next(action: ActionRun, cancelled: str) -> Call | Conclude:
    pending, deferred = _place(action, State.PENDING), action.deferred
    if pending is None or (deferred is not None and deferred.state is not State.PENDING):
        return Conclude()  # nothing comes after it, even if nobody wants to cancel any more
    if not cancelled and not _has_failed(action):
        return Call(pending)
    return Call(action.last) if deferred is not None else Conclude()


def _place(action: ActionRun, state: State) -> int | None:
    found = (place for place, call in enumerate(action.calls) if call.state is state)
    return next(found, None)


def _has_failed(action: ActionRun) -> bool:
    return any(call.state is State.FAILED for call in action.calls)


def called(action: ActionRun, place: int) -> ActionRun:
    """What is stored before a phase is called."""
    call = replace(action.calls[place], state=State.RUNNING)
    return replace(action.with_call(place, call), state=State.RUNNING, waiting=None)


def waits(action: ActionRun, waiting: Waiting) -> ActionRun:
    """An action that has to wait for a slot before its next phase can be called."""
    return replace(action, waiting=waiting)


def returned(
    action: ActionRun, place: int, output: Mapping[str, Any], *, secret: str = ""
) -> ActionRun:
    """A phase that was called has returned; `secret` holds its sensitive outputs."""
    call = action.calls[place]
    if action.state.is_over or call.state is not State.RUNNING:
        return action
    ended = replace(call, state=State.COMPLETE, output=output, secret=secret)
    return action.with_call(place, ended)


def failed(action: ActionRun, place: int, reason: str) -> ActionRun:
    """A phase could not be called, or its function failed."""
    call = action.calls[place]
    if action.state.is_over or call.state.is_over:
        return action
    ended = replace(call, state=State.FAILED, reason=reason)
    return replace(action.with_call(place, ended), state=State.RUNNING, waiting=None)


def interrupted(action: ActionRun, place: int, function: str) -> ActionRun:
    """A phase was being called when the controller ended, and must not be called again."""
    reason = (
        f"the controller ended while {function} was running, and how far it got is not known; "
        "it is not idempotent, so it is not called again"
    )
    return failed(action, place, reason)


def concluded(
    action: ActionRun,
    artifacts: Mapping[str, Any] | None = None,
    *,
    error: str = "",
    cancelled: str = "",
) -> ActionRun:
    """The end: complete with its artifacts, or failed with every reason."""
    action = replace(action, waiting=None)
    reasons = [
        f"phase {action.label(place)}: {call.reason}"
        for place, call in enumerate(action.calls)
        if call.state is State.FAILED
    ]
    if _is_left_out(action) and not reasons:
        reasons = [cancelled or "it was cancelled"]
    reasons += [error] if error else []
    if not reasons:
        return replace(action, state=State.COMPLETE, artifacts=artifacts)
    about = f"blueprint {action.blueprint}, action {action.name}"
    told = "; ".join(
        f"{about}, {each}" if each.startswith("phase ") else f"{about}: {each}" for each in reasons
    )
    return replace(action, state=State.FAILED, error=told)


def _is_left_out(action: ActionRun) -> bool:
    return any(phase.state is State.PENDING for phase in action.phases)
