"""The run of an ActionSet: its state, stored in the status, and the state machine of an action.

The state machine gets the state of an action and its running call, and returns the next effect. An
effect is one thing that the controller has to do, such as starting a call. Before each call, the
controller stores the new state; the write fails if another client has changed the status. So after
a crash, the stored state shows which function was called.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from enum import Enum
from typing import Any

from polyver.functions.blueprints import Phase
from polyver.kube.objects.converted_metadata import fresh

__all__ = [
    "ActionEnded",
    "ActionRun",
    "ActionSetRun",
    "AwaitCall",
    "ConcludeAction",
    "Effect",
    "PhaseRun",
    "QueuePosition",
    "RecoverCall",
    "RunState",
    "StartCall",
    "StopCall",
    "called",
    "concluded",
    "decide",
    "failed",
    "interrupted",
    "read_run",
    "returned",
    "status_of",
    "waits",
]


class RunState(Enum):
    """The state of a run, an action or a phase."""

    PENDING = "pending"
    RUNNING = "running"
    COMPLETE = "complete"
    FAILED = "failed"

    @property
    def is_over(self) -> bool:
        return self in (RunState.COMPLETE, RunState.FAILED)


@dataclass(frozen=True, slots=True)
class PhaseRun:
    """The call of one phase: the resolved version of its function, its state and its output."""

    name: str
    version: str
    reason: str = ""
    """Why this version was chosen. If the phase has failed, the error instead."""
    state: RunState = RunState.PENDING
    output: Mapping[str, Any] | None = None
    """The values that the function returned, with a mask instead of each sensitive value."""
    chosen: str = ""
    """Why this version was chosen. If the phase fails, this text stays unchanged."""
    secret: str = ""
    """Name of the Secret with the sensitive outputs; empty if there are no sensitive outputs."""
    rollout: str = ""
    """The name of the rollout whose gate admitted the blueprint to this version; empty if there is
    none.
    """
    started: str = ""
    """The time at which the function was called; empty before that."""
    ended: str = ""
    """The time at which the function returned or failed; empty if the call was interrupted."""

    @property
    def explanation(self) -> str:
        """Why this version was chosen. If the phase has failed, the error is appended."""
        if self.state is not RunState.FAILED or not self.chosen:
            return self.reason
        return f"{self.chosen}; failed: {self.reason}"


@dataclass(frozen=True, slots=True)
class QueuePosition:
    """The position of an action in the queue of actions that wait for a slot to call a function."""

    place: int
    """Position in the queue; the first is 1."""
    message: str


@dataclass(frozen=True, slots=True)
class ActionRun:
    """The run of an action: its phases in order, its deferred phase, and a snapshot of its inputs.

    The snapshot is taken when the action starts, so later changes of the inputs have no effect.
    """

    name: str
    blueprint: str
    phases: tuple[PhaseRun, ...]
    deferred: PhaseRun | None = None
    state: RunState = RunState.PENDING
    error: str = ""
    artifacts: Mapping[str, Any] | None = None
    snapshot: Mapping[str, Any] = field(default_factory=dict)
    waiting: QueuePosition | None = None
    artifacts_secret: str = ""
    """Name of the Secret with the unmasked artifacts; empty if no value in the status is masked."""

    @property
    def calls(self) -> tuple[PhaseRun, ...]:
        """All phases in order. The deferred phase is last."""
        return (*self.phases, self.deferred) if self.deferred else self.phases

    @property
    def last(self) -> int:
        """The index of the deferred phase in `calls`, if the action has a deferred phase."""
        return len(self.phases)

    def is_deferred(self, place: int) -> bool:
        return place == self.last

    def label(self, place: int) -> str:
        """Return the name of a phase for messages. `place` is its index in `calls`."""
        return self.calls[place].name or self.written(place).label

    def written(self, place: int) -> Phase:
        """Parse the declaration of a phase in the blueprint, as it was when the action started.

        `place` is the index of the phase in `calls`.
        """
        action = self.snapshot["action"]
        path: tuple[str | int, ...] = ("actions", self.name)
        if self.is_deferred(place):
            return Phase.of(action["deferPhase"], (*path, "deferPhase"))
        return Phase.of(action["phases"][place], (*path, "phases", place))

    def sensitive(self, place: int) -> tuple[str, ...]:
        """Return the names of a phase's outputs that the blueprint declares sensitive."""
        action = self.snapshot["action"]
        phase = action["deferPhase"] if self.is_deferred(place) else action["phases"][place]
        return tuple(phase.get("sensitiveOutputs") or ())

    def with_call(self, place: int, call: PhaseRun) -> ActionRun:
        """Return a copy of the action in which `call` is the new state of one phase."""
        if self.is_deferred(place):
            return replace(self, deferred=call)
        return replace(self, phases=(*self.phases[:place], call, *self.phases[place + 1 :]))


@dataclass(frozen=True, slots=True)
class ActionSetRun:
    """The runs of all actions of an ActionSet, with warnings.

    If no action started, the run has a `refusal` instead of actions.
    """

    actions: tuple[ActionRun, ...] = ()
    warnings: tuple[str, ...] = ()
    refusal: str = ""
    """The reason why no action of the ActionSet started; empty if the actions started."""

    @property
    def state(self) -> RunState:
        states = {action.state for action in self.actions}
        if self.refusal or (RunState.FAILED in states and all(each.is_over for each in states)):
            return RunState.FAILED
        if states <= {RunState.COMPLETE}:
            return RunState.COMPLETE
        return RunState.PENDING if states == {RunState.PENDING} else RunState.RUNNING

    @property
    def error(self) -> str:
        return self.refusal or "; ".join(each.error for each in self.actions if each.error)

    def with_action(self, number: int, action: ActionRun) -> ActionSetRun:
        actions = (*self.actions[:number], action, *self.actions[number + 1 :])
        return replace(self, actions=actions)


# Conversion from and to a status.


def read_run(action_set: Mapping[str, Any]) -> ActionSetRun | None:
    """Parse the run in the status of an ActionSet; return None if the status has no state.

    An action whose status has no snapshot was started by another controller, such as Kanister; its
    snapshot is empty in the result.
    """
    status: Mapping[str, Any] = action_set.get("status") or {}
    if not status.get("state"):
        return None
    actions = tuple(map(_read_action, status.get("actions") or ()))
    has_failed = status["state"] == RunState.FAILED.value
    refusal = (status.get("error") or {}).get("message") or ""
    started = any(action.state is not RunState.PENDING for action in actions)
    warnings = tuple(status.get("warnings") or ())
    return ActionSetRun(actions, warnings, refusal if has_failed and not started else "")


def _read_action(status: Mapping[str, Any]) -> ActionRun:
    deferred, waits = status.get("deferPhase"), status.get("waiting")
    return ActionRun(
        status["name"],
        status.get("blueprint") or "",
        tuple(map(_read_phase, status.get("phases") or ())),
        _read_phase(deferred) if deferred else None,
        RunState(status.get("state") or "pending"),
        (status.get("error") or {}).get("message") or "",
        status.get("artifacts"),
        status.get("snapshot") or {},
        QueuePosition(waits.get("place") or 0, waits.get("message") or "") if waits else None,
        status.get("artifactsSecret") or "",
    )


def _read_phase(status: Mapping[str, Any]) -> PhaseRun:
    return PhaseRun(
        status["name"],
        status.get("resolvedVersion") or "",
        status.get("reason") or "",
        RunState(status["state"]),
        status.get("output"),
        status.get("resolvedReason") or "",
        status.get("outputSecret") or "",
        status.get("rollout") or "",
        status.get("startTime") or "",
        status.get("endTime") or "",
    )


def status_of(run: ActionSetRun, *, now: str) -> dict[str, Any]:
    """Convert a run to the status of its ActionSet."""
    found: dict[str, Any] = {"state": run.state.value}
    found["actions"] = [_action_status(action) for action in run.actions]
    states = [call.state for action in run.actions for call in action.calls]
    completed = sum(each is RunState.COMPLETE for each in states)
    # The percentage is 100 only if the run is complete, because artifacts are rendered after the
    # last phase.
    is_complete = run.state is RunState.COMPLETE
    percent = 100 if is_complete else min(100 * completed // max(len(states), 1), 99)
    found["progress"] = {"percentCompleted": str(percent), "lastTransitionTime": now}
    running = [
        action.label(place)
        for action in run.actions
        for place, call in enumerate(action.calls)
        if call.state is RunState.RUNNING
    ]
    if running:
        found["progress"]["runningPhase"] = ", ".join(running)
    found |= {"warnings": [*run.warnings]} if run.warnings else {}
    return found | ({"error": {"message": run.error}} if run.error else {})


def _action_status(action: ActionRun) -> dict[str, Any]:
    found: dict[str, Any] = {"name": action.name, "blueprint": action.blueprint}
    reference = (action.snapshot.get("spec") or {}).get("object")
    found |= {"object": fresh(reference)} if reference else {}
    found["state"] = action.state.value
    if action.waiting is not None:
        found["waiting"] = {"place": action.waiting.place, "message": action.waiting.message}
    found["phases"] = [_phase_status(phase) for phase in action.phases]
    found |= {"deferPhase": _phase_status(action.deferred)} if action.deferred else {}
    found |= {"artifacts": fresh(action.artifacts)} if action.artifacts is not None else {}
    found |= {"artifactsSecret": action.artifacts_secret} if action.artifacts_secret else {}
    found |= {"error": {"message": action.error}} if action.error else {}
    return found | {"snapshot": fresh(action.snapshot)}


def _phase_status(phase: PhaseRun) -> dict[str, Any]:
    found: dict[str, Any] = {"name": phase.name, "state": phase.state.value}
    found |= {"resolvedVersion": phase.version} if phase.version else {}
    found |= {"resolvedReason": phase.chosen} if phase.chosen else {}
    found |= {"rollout": phase.rollout} if phase.rollout else {}
    found |= {"reason": phase.reason} if phase.reason else {}
    found |= {"startTime": phase.started} if phase.started else {}
    found |= {"endTime": phase.ended} if phase.ended else {}
    found |= {"outputSecret": phase.secret} if phase.secret else {}
    return found | ({"output": fresh(phase.output)} if phase.output is not None else {})


# The state machine.


@dataclass(frozen=True, slots=True)
class StartCall:
    """Effect: store the state in which the phase `place` is running, then call its function."""

    place: int


@dataclass(frozen=True, slots=True)
class AwaitCall:
    """Effect: do nothing. A call runs in this process; its task stores the result at its end."""

    place: int


@dataclass(frozen=True, slots=True)
class StopCall:
    """Effect: stop the call that runs in this process, because the action was cancelled."""

    place: int
    reason: str


@dataclass(frozen=True, slots=True)
class RecoverCall:
    """Effect: handle a call that was interrupted when polyver restarted.

    The controller calls the function again if it is idempotent; otherwise the phase fails.
    """

    place: int


@dataclass(frozen=True, slots=True)
class ConcludeAction:
    """Effect: render the output artifacts and end the action, because no phase is left to call."""


@dataclass(frozen=True, slots=True)
class ActionEnded:
    """Effect: do nothing, because the action has ended."""


Effect = StartCall | AwaitCall | StopCall | RecoverCall | ConcludeAction | ActionEnded


def decide(action: ActionRun, *, alive: int | None = None, cancelled: str = "") -> Effect:
    """Return the next effect of an action.

    `alive` is the index of the phase whose call runs in this process; None if there is no such
    call. `cancelled` is the reason to cancel the action; empty if it is not cancelled. A
    cancellation does not stop the deferred phase, because that phase cleans up after the other
    phases.
    """
    if action.state.is_over:
        return ActionEnded()
    running = _place(action, RunState.RUNNING)
    if running is not None and alive != running:
        return RecoverCall(running)
    if running is not None:
        stops = bool(cancelled) and not action.is_deferred(running)
        return StopCall(running, cancelled) if stops else AwaitCall(running)
    pending, deferred = _place(action, RunState.PENDING), action.deferred
    if pending is None or (deferred is not None and deferred.state is not RunState.PENDING):
        # The deferred phase is the last phase. After it, no other phase is called, even if the user
        # has removed the cancellation meanwhile.
        return ConcludeAction()
    has_failed = any(call.state is RunState.FAILED for call in action.calls)
    if not cancelled and not has_failed:
        return StartCall(pending)
    return StartCall(action.last) if deferred is not None else ConcludeAction()


def _place(action: ActionRun, state: RunState) -> int | None:
    found = (place for place, call in enumerate(action.calls) if call.state is state)
    return next(found, None)


def called(action: ActionRun, place: int, *, now: str = "") -> ActionRun:
    """Return the state of the action to store before the function of a phase is called."""
    call = replace(action.calls[place], state=RunState.RUNNING, started=now)
    return replace(action.with_call(place, call), state=RunState.RUNNING, waiting=None)


def waits(action: ActionRun, waiting: QueuePosition) -> ActionRun:
    """Return the state of the action while its next phase waits for a slot."""
    return replace(action, waiting=waiting)


def returned(
    action: ActionRun, place: int, output: Mapping[str, Any], *, secret: str = "", now: str = ""
) -> ActionRun:
    """Return the state of the action after the function of a phase has returned `output`.

    `secret` is the name of the Secret with the sensitive outputs.
    """
    call = action.calls[place]
    if action.state.is_over or call.state is not RunState.RUNNING:
        return action
    ended = replace(call, state=RunState.COMPLETE, output=output, secret=secret, ended=now)
    return action.with_call(place, ended)


def failed(action: ActionRun, place: int, reason: str, *, now: str = "") -> ActionRun:
    """Return the state of the action after the call of a phase has failed, or could not be made.

    `now` is the time at which the function failed. It is empty if the function was not called, or
    if its call was interrupted.
    """
    call = action.calls[place]
    if action.state.is_over or call.state.is_over:
        return action
    ended = replace(call, state=RunState.FAILED, reason=reason, ended=now)
    return replace(action.with_call(place, ended), state=RunState.RUNNING, waiting=None)


def interrupted(action: ActionRun, place: int, function: str) -> ActionRun:
    """Return the state of the action after a restart interrupted a call that is not idempotent."""
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
    """Return the state of the action after its end.

    A complete action has its artifacts; a failed action has the errors of all failed phases.
    `error` is an error after the last phase, and `cancelled` the reason of a cancellation.
    """
    action = replace(action, waiting=None)
    reasons = [
        f"phase {action.label(place)}: {call.reason}"
        for place, call in enumerate(action.calls)
        if call.state is RunState.FAILED
    ]
    is_left_out = any(phase.state is RunState.PENDING for phase in action.phases)
    if is_left_out and not reasons:
        reasons = [cancelled or "it was cancelled"]
    reasons += [error] if error else []
    if not reasons:
        return replace(action, state=RunState.COMPLETE, artifacts=artifacts)
    about = f"blueprint {action.blueprint}, action {action.name}"
    told = "; ".join(
        f"{about}, {each}" if each.startswith("phase ") else f"{about}: {each}" for each in reasons
    )
    return replace(action, state=RunState.FAILED, error=told)
