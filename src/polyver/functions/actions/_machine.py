"""The action as a state machine: its state and the running call in, the next effect out.

The caller stores the new state by compare-and-swap before it performs the effect, so that after any
crash the stored state shows which function was called.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from polyver.functions.actions._run import ActionRun, QueuePosition, RunState

__all__ = [
    "ActionEnded",
    "AwaitCall",
    "ConcludeAction",
    "Effect",
    "RecoverCall",
    "StartCall",
    "StopCall",
    "called",
    "concluded",
    "decide",
    "failed",
    "interrupted",
    "returned",
    "waits",
]


@dataclass(frozen=True, slots=True)
class StartCall:
    """Store that a phase is running, then call its function."""

    place: int


@dataclass(frozen=True, slots=True)
class AwaitCall:
    """Wait for a call that runs in this process; the task of the call stores the result."""

    place: int


@dataclass(frozen=True, slots=True)
class StopCall:
    """Stop a call in this process that is no longer wanted."""

    place: int
    reason: str


@dataclass(frozen=True, slots=True)
class RecoverCall:
    """Recover from a call that ran in another process; its progress is unknown."""

    place: int


@dataclass(frozen=True, slots=True)
class ConcludeAction:
    """Render the output artifacts and end, because no call is left."""


@dataclass(frozen=True, slots=True)
class ActionEnded:
    """The action has ended."""


Effect = StartCall | AwaitCall | StopCall | RecoverCall | ConcludeAction | ActionEnded


def decide(action: ActionRun, *, alive: int | None = None, cancelled: str = "") -> Effect:
    """Return the next effect; `alive` is the index of the call that runs in this process.

    `cancelled` is the reason to stop the action. It does not stop the deferred phase, which cleans
    up.
    """
    if action.state.is_over:
        return ActionEnded()
    running = _place(action, RunState.RUNNING)
    if running is None:
        return _next(action, cancelled)
    if alive != running:
        return RecoverCall(running)
    stops = bool(cancelled) and not action.is_deferred(running)
    return StopCall(running, cancelled) if stops else AwaitCall(running)


def _next(action: ActionRun, cancelled: str) -> StartCall | ConcludeAction:
    pending, deferred = _place(action, RunState.PENDING), action.deferred
    if pending is None or (deferred is not None and deferred.state is not RunState.PENDING):
        return ConcludeAction()  # nothing follows it, even if the cancellation was withdrawn
    if not cancelled and not _has_failed(action):
        return StartCall(pending)
    return StartCall(action.last) if deferred is not None else ConcludeAction()


def _place(action: ActionRun, state: RunState) -> int | None:
    found = (place for place, call in enumerate(action.calls) if call.state is state)
    return next(found, None)


def _has_failed(action: ActionRun) -> bool:
    return any(call.state is RunState.FAILED for call in action.calls)


def called(action: ActionRun, place: int) -> ActionRun:
    """Return the state to store before a phase is called."""
    call = replace(action.calls[place], state=RunState.RUNNING)
    return replace(action.with_call(place, call), state=RunState.RUNNING, waiting=None)


def waits(action: ActionRun, waiting: QueuePosition) -> ActionRun:
    """Return an action that waits for a slot before its next phase can be called."""
    return replace(action, waiting=waiting)


def returned(
    action: ActionRun, place: int, output: Mapping[str, Any], *, secret: str = ""
) -> ActionRun:
    """Return the action after a phase has returned; `secret` holds its sensitive outputs."""
    call = action.calls[place]
    if action.state.is_over or call.state is not RunState.RUNNING:
        return action
    ended = replace(call, state=RunState.COMPLETE, output=output, secret=secret)
    return action.with_call(place, ended)


def failed(action: ActionRun, place: int, reason: str) -> ActionRun:
    """Return the action after a phase could not be called, or its function failed."""
    call = action.calls[place]
    if action.state.is_over or call.state.is_over:
        return action
    ended = replace(call, state=RunState.FAILED, reason=reason)
    return replace(action.with_call(place, ended), state=RunState.RUNNING, waiting=None)


def interrupted(action: ActionRun, place: int, function: str) -> ActionRun:
    """Return the action after a controller restart during a phase that must not be repeated."""
    reason = (
        f"the controller ended while {function} was running, and its progress is unknown; "
        "it is not called again because it is not idempotent"
    )
    return failed(action, place, reason)


def concluded(
    action: ActionRun,
    artifacts: Mapping[str, Any] | None = None,
    *,
    error: str = "",
    cancelled: str = "",
) -> ActionRun:
    """Return the ended action: complete with its artifacts, or failed with all reasons."""
    action = replace(action, waiting=None)
    reasons = [
        f"phase {action.label(place)}: {call.reason}"
        for place, call in enumerate(action.calls)
        if call.state is RunState.FAILED
    ]
    if _is_left_out(action) and not reasons:
        reasons = [cancelled or "it was cancelled"]
    reasons += [error] if error else []
    if not reasons:
        return replace(action, state=RunState.COMPLETE, artifacts=artifacts)
    about = f"blueprint {action.blueprint}, action {action.name}"
    told = "; ".join(
        f"{about}, {each}" if each.startswith("phase ") else f"{about}: {each}" for each in reasons
    )
    return replace(action, state=RunState.FAILED, error=told)


def _is_left_out(action: ActionRun) -> bool:
    return any(phase.state is RunState.PENDING for phase in action.phases)
