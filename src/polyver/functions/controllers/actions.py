"""Controller of ActionSets: performs the effects that the state machine of actions returns.

Before the controller calls the function of a phase, it stores in the status that the phase is
running.
"""

from __future__ import annotations

import asyncio
import traceback
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

from polyver.client import (
    Backoff,
    Change,
    Client,
    Clock,
    GroupVersionResource,
    Key,
    SystemClock,
    chance,
    find,
    sleep,
)
from polyver.controllers.controller import Controller, Requeue, Watch, exactly
from polyver.controllers.events import Events
from polyver.controllers.finalizers import add_finalizer, has_finalizer, remove_finalizer
from polyver.core import PolyverError
from polyver.core.plain import Object
from polyver.functions import actions as machine
from polyver.functions.actions import ActionRun, ActionSetRun, read_run, status_of
from polyver.functions.controllers._objects import (
    NotKept,
    NotThere,
    OutputSecrets,
    begun,
    gather,
    is_final,
)
from polyver.functions.controllers._running import RunningActionSet, RunningCall, Slots
from polyver.functions.controllers.calls import (
    CallLog,
    FunctionCall,
    FunctionCaller,
    FunctionCallFailed,
)
from polyver.functions.controllers.gates import FunctionGates
from polyver.functions.kinds import ACTION_SETS, GROUP
from polyver.functions.registering import Function, Functions, implementation
from polyver.functions.runtime.calls import CallLimits
from polyver.functions.runtime.context import FunctionContext, FunctionLog
from polyver.kube.http.logs import Log
from polyver.kube.objects import encode_json
from polyver.kube.objects.kinds import ResourceKind
from polyver.kube.objects.masking import Masks
from polyver.kube.objects.status import ApiError

__all__ = ["CANCEL", "FINALIZER", "ActionSetController", "CallLimits"]

FINALIZER = "polyver.dev/actions"
CANCEL = "polyver.dev/cancel"
_ACTION_SETS = GroupVersionResource(GROUP, "v1alpha1", ACTION_SETS.definition().names.plural)
_LONGEST_REASON = 4096
_STORING = Backoff(first=0.05, most=10.0)
_TOO_LARGE = "the outputs are too large to be recorded in the status"
_UNTAKEN = (400, 413, 422)
_LOOK_AGAIN = 5.0
_LOOK_AGAIN_EACH = 0.05
"""Seconds between two checks of the queue: at least `_LOOK_AGAIN`. For each waiting action,
`_LOOK_AGAIN_EACH` is added.
"""
_Owner = tuple[str, int]
"""An action that needs a slot: the uid of its ActionSet, and the index of the action."""


class ActionSetController(Controller[Key]):
    """Runs the actions of each ActionSet to their end, also after restarts of the controller."""

    name = "actionsets"

    def __init__(
        self,
        client: Client,
        functions: Functions,
        *,
        calls: FunctionCaller,
        clock: Clock | None = None,
        limits: CallLimits | None = None,
        allows: frozenset[str] = frozenset(),
        log: Log | None = None,
    ) -> None:
        self._client = client
        self._functions = functions
        self._gates = FunctionGates(client, functions)
        self._clock = clock or SystemClock()
        self._limits = limits or CallLimits()
        self._allows = allows
        self._log = log or Log()
        self._calls = calls
        self._slots = Slots[_Owner](self._limits.at_once)
        self._secrets = OutputSecrets(client)
        self._events = Events(client, self._clock, self._log, component="polyver")
        self._known: dict[str, RunningActionSet] = {}

    @property
    def watches(self) -> Sequence[Watch[Any, Key]]:
        return [Watch(kinds=exactly(_ACTION_SETS), observe=_observe, keep=_state)]

    async def close(self) -> None:
        """Wait for running calls during the grace period `CallLimits.grace`.

        After this time, cancel the calls that still run. The next leader handles the cancelled
        calls as interrupted calls.
        """
        tasks = {alive.task for each in self._known.values() for alive in each.alive.values()}
        if tasks:
            _, late = await asyncio.wait(tasks, timeout=self._limits.grace)
            for task in late:
                task.cancel()
            await asyncio.gather(*late, return_exceptions=True)
        await self._calls.close()

    async def reconcile(self, key: Key) -> Requeue | None:
        # Read the running calls before the ActionSet. If a call ends between the two reads, it
        # stores its result, and the change of the status causes another reconcile.
        alive = {
            uid: {number: each.place for number, each in known.alive.items()}
            for uid, known in self._known.items()
            if known.key == key
        }
        found = await find(self._client, _ACTION_SETS, key.name, key.namespace)
        uid = _uid(found) if found is not None else ""
        # Stop the calls of ActionSets that do not exist any more. An ActionSet is deleted during a
        # call only if a user removes its finalizer.
        for other in [each for each, known in self._known.items() if known.key == key]:
            if other != uid:
                for running in self._known.pop(other).alive.values():
                    running.stop("the ActionSet was deleted")
                self._leave(other)
        if found is None:
            return None
        run = read_run(found)
        if run is None and "deletionTimestamp" not in found["metadata"]:
            await self._start(found)
        elif run is None or run.state.is_over:
            self._known.pop(uid, None)
            self._leave(uid)
            await remove_finalizer(self._client, _ACTION_SETS, found, FINALIZER)
        elif not all(action.snapshot for action in run.actions):
            fact = "an ActionSet was started by another controller, and is ignored"
            self._log.warning(fact, actionset=f"{key.namespace}/{key.name}")
        else:
            known = self._known.setdefault(uid, RunningActionSet(key))
            written = _Written(self, found, run)
            if not await self._advance(written, known, alive.get(uid, {})):
                return Requeue(max(_LOOK_AGAIN, _LOOK_AGAIN_EACH * self._slots.waiting))
        return None

    # Start.

    async def _start(self, action_set: Object) -> None:
        run = await begun(self._client, action_set, self._gates, time=self._now())
        if self._is_too_large(run):
            run = machine.refused("its actions are too large to be recorded in its status")
        if run.actions:
            action_set = await add_finalizer(self._client, _ACTION_SETS, action_set, FINALIZER)
        await self._warn(action_set, run.warnings)
        await self._tell_end(action_set, run)
        await _Written(self, action_set, run).store(run)

    def _now(self) -> str:
        return self._clock.now().strftime("%Y-%m-%dT%H:%M:%S.%fZ")

    async def _warn(self, action_set: Object, warnings: Sequence[str]) -> None:
        for warning in warnings:
            self._log.warning(warning, actionset=_about(action_set))
            await self._events.tell(action_set, "FunctionWarning", warning, type="Warning")

    async def _tell_end(self, action_set: Object, run: ActionSetRun) -> None:
        about = _about(action_set)
        if run.state is machine.RunState.FAILED:
            self._log.warning("an ActionSet failed", actionset=about, error=run.error)
            message = f"ActionSet {about} failed: {run.error}"
            await self._events.tell(action_set, "ActionSetFailed", message, type="Warning")
        elif run.state is machine.RunState.COMPLETE:
            self._log.info("an ActionSet is complete", actionset=about)
            message = f"ActionSet {about} is complete"
            await self._events.tell(action_set, "ActionSetComplete", message)

    # Phases.

    async def _advance(
        self, written: _Written, known: RunningActionSet, alive: Mapping[int, int]
    ) -> bool:
        """Perform the next effect of each action. Return False if a call must wait for a slot."""
        cancelled, room = _cancelled(written.action_set), True
        for number, action in enumerate(written.run.actions):
            wants = machine.decide(action, alive=alive.get(number), cancelled=cancelled)
            if not isinstance(wants, machine.StartCall | machine.RecoverCall):
                self._slots.leave((written.uid, number))
            match wants:
                case machine.StartCall(place=at):
                    room = await self._call(written, number, at, known) and room
                case machine.RecoverCall(place=at):
                    room = await self._recover(written, number, at, known) and room
                case machine.StopCall(place=at, reason=reason):
                    under_way = known.alive.get(number)
                    if under_way is not None and under_way.place == at:
                        under_way.stop(reason)
                case machine.ConcludeAction():
                    await self._conclude(written, number, known, cancelled)
                case machine.AwaitCall() | machine.ActionEnded():
                    pass
        return room

    async def _recover(
        self, written: _Written, number: int, place: int, known: RunningActionSet
    ) -> bool:
        """Handle a call that a restart interrupted.

        If the function is idempotent, call the function again. Otherwise, the phase fails.
        """
        action = written.run.actions[number]
        function = self._function(action, place)
        if function is not None and function.idempotent:
            return await self._call(written, number, place, known)
        called = f"{action.written(place).function} {action.calls[place].version}"
        await written.store_action(number, machine.interrupted(action, place, called))
        return True

    async def _call(
        self, written: _Written, number: int, place: int, known: RunningActionSet
    ) -> bool:
        """Call the function of a phase. If the call cannot be prepared, the phase fails.

        If no slot is free, store the position in the queue, and return False.
        """
        owner = written.uid, number
        if not self._slots.take(owner, written.namespace):
            await self._store_waiting(written, number)
            return False
        try:
            task = await self._start_call(written, number, place, known)
        except BaseException:
            self._give_back(written.namespace)
            raise
        if task is None:
            self._give_back(written.namespace)
        else:
            task.add_done_callback(lambda _: self._give_back(written.namespace))
            known.alive[number] = RunningCall(place, task)
        return True

    async def _store_waiting(self, written: _Written, number: int) -> None:
        """Store the position of a waiting action in the queue, if it has changed."""
        place = self._slots.place((written.uid, number))
        action, slots = written.run.actions[number], self._slots
        if action.waiting is not None and action.waiting.place == place:
            return
        own, all_of_them = slots.held_by(written.namespace), slots.limit - slots.free
        message = (
            f"it waits for a slot to call phase {action.label(_next_place(action))}: it is number "
            f"{place} of {slots.waiting} in the queue, {all_of_them} of at most {slots.limit} "
            f"calls run, {own} of them in this namespace"
        )
        await written.store_action(
            number, machine.waits(action, machine.QueuePosition(place, message))
        )

    def _give_back(self, namespace: str) -> None:
        self._slots.give_back(namespace)
        self._wake_due()

    def _leave(self, uid: str) -> None:
        """Remove all actions of an ActionSet from the queue."""
        self._slots.leave_all(lambda owner: owner[0] == uid)
        self._wake_due()

    def _wake_due(self) -> None:
        for uid, _ in self._slots.due():
            if uid in self._known:
                self.wake(self._known[uid].key)

    async def _start_call(
        self, written: _Written, number: int, place: int, known: RunningActionSet
    ) -> asyncio.Task[None] | None:
        """Start a task that calls the function of a phase.

        If the call cannot be prepared, store the phase as failed, and return None.
        """
        action = written.run.actions[number]
        function = self._function(action, place)
        try:
            if function is None:
                name, version = action.written(place).function, action.calls[place].version
                fact = f"{name} {version}, which was chosen at the start, does not exist"
                raise NotThere(fact, hint="start polyver with the same functions as before")
            params = await self._params(written, number, known)
            arguments = await asyncio.to_thread(
                machine.render_arguments, action, place, function, params
            )
        except PolyverError as error:
            if not is_final(error):
                raise
            reason = _short(known.masks[number].mask(str(error)))
            await written.store_action(number, machine.failed(action, place, reason))
            return None
        await written.store_action(number, machine.called(action, place, now=self._now()))
        # From here on, the call may have started. The stored state shows this even after a crash.
        phase, key = action.label(place), f"{written.uid}-{number}-{place}"
        inside, now = written.namespace, self._clock.now()
        context = FunctionContext(
            self._client, params, FunctionLog(), phase, now, inside, key, self._allows
        )
        masks = known.masks[number]
        about = {"actionset": written.name, "action": action.name, "phase": phase}
        log = CallLog(self._log, masks, most=self._limits.log, about=about)
        call = _Due(number, place, FunctionCall(function, arguments, context, masks, log))
        return asyncio.create_task(self._perform(written, call, known))

    def _function(self, action: ActionRun, place: int) -> Function | None:
        phase, version = action.written(place), action.calls[place].version
        return implementation(self._functions, phase.function, version)

    async def _params(
        self, written: _Written, number: int, known: RunningActionSet
    ) -> dict[str, Any]:
        action, masks = written.run.actions[number], known.masks[number]
        if number not in known.objects:
            at = f"spec.actions[{number}]"
            known.objects[number] = await gather(
                self._client, action, written.namespace, at=at, masks=masks
            )
        objects = known.objects[number]
        outputs = known.outputs[number]
        for place, call in enumerate(action.calls):
            if call.secret and place not in outputs:
                outputs[place] = await self._secrets.read(call.secret, written.namespace)
                masks.add_all(outputs[place])
        action = machine.with_outputs(action, outputs)
        return await asyncio.to_thread(machine.params_of, action, objects)

    async def _perform(self, written: _Written, call: _Due, known: RunningActionSet) -> None:
        """Call a function, and store the result in the status of the ActionSet."""
        own, masks = asyncio.current_task(), call.call.masks
        assert own is not None
        try:
            change = await self._ended(call, own, known)
            await self._store_end(written, call.number, change, masks)
        except Exception as error:
            # Store a failure: an ActionSet without a stored result would never be reconciled again.
            trace = masks.mask("".join(traceback.format_exception(error)))
            self._log.warning("a phase ended because of a bug", actionset=written.name, trace=trace)
            reason = f"this is a bug in polyver: {error!r}"
            bug = partial(_without_output, reason=reason, now=self._now())
            await self._store_end(written, call.number, _always(call.number, bug), masks)
        finally:
            call.call.log.close()
            alive = known.alive.get(call.number)
            if alive is not None and alive.task is own:
                del known.alive[call.number]

    async def _ended(self, due: _Due, own: asyncio.Task[None], known: RunningActionSet) -> _Change:
        """Make a call, and wait until it ends.

        Return a function that computes the new state of the action from its stored state.
        """
        call, place = due.call, due.place
        try:
            output = await self._calls.call(call)
        except FunctionCallFailed as failure:
            # Mask values before truncating: a part of a value would not be recognized.
            reason = _short(call.masks.mask(failure.fact))
            if failure.trace:
                trace = call.masks.mask(failure.trace)
                self._log.warning("a function failed", function=call.function.label, trace=trace)
            now = self._now()
            return _always(
                due.number, lambda action: machine.failed(action, place, reason, now=now)
            )
        except asyncio.CancelledError:
            alive = known.alive.get(due.number)
            stopped = alive.reason if alive is not None and alive.task is own else ""
            if not stopped:
                # the controller shuts down; the next leader handles this call as an interrupted
                # call
                raise
            own.uncancel()
            return _always(due.number, lambda action: machine.failed(action, place, stopped))
        return partial(self._returned, due, output, known, self._now())

    async def _returned(
        self,
        due: _Due,
        output: Mapping[str, Any],
        known: RunningActionSet,
        now: str,
        written: _Written,
    ) -> ActionRun:
        """Store sensitive outputs of a phase in a Secret. Return the action after this phase."""
        action, place, call = written.run.actions[due.number], due.place, due.call
        shown, hidden = machine.split_output(action, place, call.function, output, call.masks)
        secret = ""
        if hidden:
            call.masks.add_all(hidden)
            known.outputs[due.number][place] = hidden
            part = f"{due.number}-{place}"
            secret = await self._secrets.write(written.action_set, part, hidden)
        return machine.returned(action, place, shown, secret=secret, now=now)

    async def _store_end(
        self, written: _Written, number: int, change: _Change, masks: Masks
    ) -> None:
        """Store the result of a call. Retry until the API server accepts the status."""
        failures = 0
        while True:
            try:
                found = await find(self._client, _ACTION_SETS, written.name, written.namespace)
                run = read_run(found) if found and _uid(found) == written.uid else None
                if found is None or run is None:
                    return
                now = _Written(self, found, run)
                ended = run.with_action(number, await change(now))
                if self._is_too_large(ended):
                    large = partial(_without_output, reason=_TOO_LARGE, now=self._now())
                    ended = run.with_action(number, large(run.actions[number]))
                await now.store(ended)
            except PolyverError as error:
                failures += 1
                said = masks.mask(str(error))
                if _is_untaken(error):
                    reason = f"its result cannot be stored: {said}"
                    untaken = partial(_without_output, reason=reason, now=self._now())
                    change = _always(number, untaken)
                elif not isinstance(error, ApiError) or error.code != 409:
                    fact = "the result of a phase cannot be stored yet"
                    self._log.warning(fact, actionset=written.name, error=said)
                await sleep(self._clock, _STORING.delay(failures, spread=chance()))
            else:
                return

    # End.

    async def _conclude(
        self, written: _Written, number: int, known: RunningActionSet, cancelled: str
    ) -> None:
        action = written.run.actions[number]
        has_failed = any(call.state is machine.RunState.FAILED for call in action.calls)
        artifacts, error = None, ""
        if not has_failed:
            try:
                params = await self._params(written, number, known)
                artifacts = await asyncio.to_thread(machine.render_artifacts, action, params)
                action, artifacts = await self._masked(written, number, artifacts, known)
            except PolyverError as problem:
                if not is_final(problem):
                    raise
                error = _short(known.masks[number].mask(str(problem)))
        ended = machine.concluded(action, artifacts, error=error, cancelled=cancelled)
        if self._is_too_large(written.run.with_action(number, ended)):
            ended = machine.concluded(action, error=_TOO_LARGE, cancelled=cancelled)
        # Emit the event before storing the end. If the controller stops between the two, it repeats
        # both: a repeated event is merged with the first event. In the other order, the event could
        # be missing, because an ended ActionSet is not reconciled again.
        await self._tell_end(written.action_set, written.run.with_action(number, ended))
        await written.store_action(number, ended)

    async def _masked(
        self,
        written: _Written,
        number: int,
        artifacts: dict[str, Any] | None,
        known: RunningActionSet,
    ) -> tuple[ActionRun, dict[str, Any] | None]:
        """Mask values from Secrets in artifacts. Store the unmasked artifacts in a Secret."""
        action, masks = written.run.actions[number], known.masks[number]
        if artifacts is None or not masks.is_in(artifacts):
            return action, artifacts
        part = f"{number}-artifacts"
        secret = await self._secrets.write(written.action_set, part, artifacts)
        warning = (
            f"action {action.name}: its artifacts contain values from Secrets, which are masked in "
            f"the status; Secret {secret} has the unmasked values"
        )
        await self._warn(written.action_set, [warning])
        shown = masks.mask_all(artifacts)
        assert isinstance(shown, dict)
        written.run = replace(written.run, warnings=(*written.run.warnings, warning))
        return replace(action, artifacts_secret=secret), shown

    def _is_too_large(self, run: ActionSetRun) -> bool:
        return len(encode_json(status_of(run, now=""))) > self._limits.status

    async def write(self, action_set: Object, run: ActionSetRun) -> Object:
        """Write a run to the status of its ActionSet; a concurrent write causes a conflict."""
        status = status_of(run, now=self._clock.now().strftime("%Y-%m-%dT%H:%M:%SZ"))
        content = {**action_set, "status": {**(action_set.get("status") or {}), **status}}
        return await self._client.update(_ACTION_SETS, content, subresource="status")


@dataclass(frozen=True, slots=True)
class _Due:
    """A call to make, with the indexes of its action and its phase."""

    number: int
    place: int
    call: FunctionCall


@dataclass(slots=True)
class _Written:
    """An ActionSet and its run, as stored in the API server. Each write updates them."""

    controller: ActionSetController
    action_set: Object
    run: ActionSetRun

    @property
    def uid(self) -> str:
        return _uid(self.action_set)

    @property
    def name(self) -> str:
        return str(self.action_set["metadata"]["name"])

    @property
    def namespace(self) -> str:
        return str(self.action_set["metadata"].get("namespace", ""))

    async def store_action(self, number: int, action: ActionRun) -> None:
        await self.store(self.run.with_action(number, action))

    async def store(self, run: ActionSetRun) -> None:
        self.action_set = await self.controller.write(self.action_set, run)
        self.run = run


def _about(action_set: Object) -> str:
    metadata = action_set["metadata"]
    return f"{metadata.get('namespace', '')}/{metadata['name']}"


_Change = Callable[[_Written], Awaitable[ActionRun]]
"""Computes the state of an action after a call, from the stored state of the ActionSet."""


def _always(number: int, change: Callable[[ActionRun], ActionRun]) -> _Change:
    """Build a change that applies a function to one action of the stored run."""

    async def changed(written: _Written) -> ActionRun:
        return change(written.run.actions[number])

    return changed


def _is_untaken(error: PolyverError) -> bool:
    """Report whether the result can never be stored, because the API server refuses its content."""
    refused = isinstance(error, ApiError) and error.code in _UNTAKEN
    return refused or isinstance(error, NotKept)


def _next_place(action: ActionRun) -> int:
    """Return the index of the phase that is called next, or called again."""
    open_ones = [n for n, call in enumerate(action.calls) if not call.state.is_over]
    return open_ones[0] if open_ones else action.last


def _uid(action_set: Object) -> str:
    return str(action_set["metadata"]["uid"])


def _without_output(action: ActionRun, *, reason: str, now: str) -> ActionRun:
    """Fail the running phase of an action, because the output of the phase cannot be stored."""
    running = [n for n, call in enumerate(action.calls) if call.state is machine.RunState.RUNNING]
    return machine.failed(action, running[0], _short(reason), now=now) if running else action


def _short(reason: str) -> str:
    return reason if len(reason) <= _LONGEST_REASON else f"{reason[: _LONGEST_REASON - 1]}…"


def _cancelled(action_set: Object) -> str:
    """Return the reason to cancel an ActionSet; empty if there is none."""
    metadata = action_set["metadata"]
    if "deletionTimestamp" in metadata:
        return "it was cancelled: the ActionSet was deleted"
    if (metadata.get("annotations") or {}).get(CANCEL) == "true":
        return f"it was cancelled by the annotation {CANCEL}"
    return ""


def _state(kind: ResourceKind, obj: Object) -> tuple[str, bool]:
    del kind
    state = (obj.get("status") or {}).get("state")
    is_over = state in ("complete", "failed")
    holds = has_finalizer(obj, FINALIZER)
    return obj["metadata"]["resourceVersion"], is_over and not holds


def _observe(kind: ResourceKind, change: Change[tuple[str, bool]]) -> Sequence[Key]:
    del kind
    return () if change.after is not None and change.after[1] else (change.key,)
