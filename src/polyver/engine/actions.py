"""ActionSets, run: what the state machine says is stored first, then done, then stored again."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

from polyver.capabilities.functions import actions as machine
from polyver.capabilities.functions.actions import ActionRun, Run, read_run, status_of
from polyver.capabilities.functions.kinds import ACTION_SETS, GROUP
from polyver.capabilities.functions.registering import Function, Functions
from polyver.client import (
    Backoff,
    Change,
    Client,
    Clock,
    Key,
    Object,
    Resource,
    SystemClock,
    chance,
    find,
    sleep,
)
from polyver.core import PolyverError, SemVer
from polyver.engine._beginning import begun, is_final
from polyver.engine._calls import CallFailed, Calls
from polyver.engine._controller import Controller, Result, Watch, exactly
from polyver.engine._events import Events
from polyver.engine._gathering import NotThere, gather
from polyver.engine._holding import hold, release
from polyver.engine._under_way import Alive, Call, CallLimits, Known, output_of
from polyver.functions._context import FunctionContext, FunctionLog
from polyver.objects import encode_json
from polyver.objects.kinds import Kind
from polyver.objects.status import ApiError
from polyver.serving.logs import Log

__all__ = ["CANCEL", "FINALIZER", "ActionSetController", "CallLimits"]

FINALIZER = "polyver.dev/actions"
CANCEL = "polyver.dev/cancel"
_ACTION_SETS = Resource(GROUP, "v1alpha1", ACTION_SETS.definition().names.plural)
_LONGEST_REASON = 4096
_STORING = Backoff(first=0.05, most=10.0)
_TOO_LARGE = "what it and others have returned is too large to be recorded in the status"
_UNTAKEN = (400, 413, 422)
_FULL = 0.2
"""How long to wait where as many calls are under way as there may be."""


class ActionSetController(Controller[Key]):
    """Runs the actions of each ActionSet to their end, across restarts."""

    name = "actionsets"

    def __init__(
        self,
        client: Client,
        functions: Functions,
        *,
        clock: Clock | None = None,
        limits: CallLimits | None = None,
        allows: frozenset[str] = frozenset(),
        log: Log | None = None,
    ) -> None:
        self._client = client
        self._functions = functions
        self._clock = clock or SystemClock()
        self._limits = limits or CallLimits()
        self._allows = allows
        self._log = log or Log()
        self._calls = Calls(client, self._log, limit=self._limits.at_once, grace=self._limits.grace)
        self._events = Events(client, self._clock, self._log, component="polyver")
        self._known: dict[str, Known] = {}

    @property
    def watches(self) -> Sequence[Watch[Any, Key]]:
        return [Watch(kinds=exactly(_ACTION_SETS), observe=_observe, keep=_state)]

    async def close(self) -> None:
        """Let calls end within the grace; what is not over then is left to the next controller."""
        tasks = {alive.task for each in self._known.values() for alive in each.alive.values()}
        if tasks:
            _, late = await asyncio.wait(tasks, timeout=self._limits.grace)
            for task in late:
                task.cancel()
            await asyncio.gather(*late, return_exceptions=True)

    async def reconcile(self, key: Key) -> Result | None:
        # Before it is read: a call that ends in between stores that, which wakes us again.
        alive = {
            uid: {number: each.place for number, each in known.alive.items()}
            for uid, known in self._known.items()
            if known.key == key
        }
        found = await find(self._client, _ACTION_SETS, key.name, key.namespace)
        uid = _uid(found) if found is not None else ""
        self._abandon([each for each, known in self._known.items() if known.key == key], but=uid)
        if found is None:
            return None
        run = read_run(found)
        if run is None and "deletionTimestamp" not in found["metadata"]:
            await self._start(found)
        elif run is None or run.state.is_over:
            self._known.pop(uid, None)
            await release(self._client, _ACTION_SETS, found, FINALIZER)
        elif not all(action.snapshot for action in run.actions):
            fact = "an ActionSet was started by something else, and is left to that"
            self._log.warning(fact, actionset=f"{key.namespace}/{key.name}")
        else:
            known = self._known.setdefault(uid, Known(key))
            written = _Written(self, found, run)
            if not await self._advance(written, known, alive.get(uid, {})):
                return Result(_FULL)
        return None

    def _abandon(self, uids: Sequence[str], *, but: str) -> None:
        """Stop the calls of ActionSets that are gone, though a finalizer should have held them."""
        for uid in uids:
            if uid != but:
                for alive in self._known.pop(uid).alive.values():
                    alive.stop("the ActionSet is gone")

    # The start.

    async def _start(self, action_set: Object) -> None:
        time = self._clock.now().strftime("%Y-%m-%dT%H:%M:%S.%fZ")
        run = await begun(self._client, action_set, self._functions, time=time)
        if self._is_too_large(run):
            run = machine.refused("its actions are too large to be recorded in its status")
        if run.actions:
            action_set = await hold(self._client, _ACTION_SETS, action_set, FINALIZER)
        await self._warn(action_set, run.warnings)
        await self._tell_end(action_set, run)
        await _Written(self, action_set, run).store(run)

    async def _warn(self, action_set: Object, warnings: Sequence[str]) -> None:
        for warning in warnings:
            self._log.warning(warning, actionset=_about(action_set))
            await self._events.tell(action_set, "FunctionWarning", warning, type="Warning")

    async def _tell_end(self, action_set: Object, run: Run) -> None:
        about = _about(action_set)
        if run.state is machine.State.FAILED:
            self._log.warning("an ActionSet failed", actionset=about, error=run.error)
            message = f"ActionSet {about} failed: {run.error}"
            await self._events.tell(action_set, "ActionSetFailed", message, type="Warning")
        elif run.state is machine.State.COMPLETE:
            self._log.info("an ActionSet is complete", actionset=about)
            message = f"ActionSet {about} is complete"
            await self._events.tell(action_set, "ActionSetComplete", message)

    # The phases.

    async def _advance(self, written: _Written, known: Known, alive: Mapping[int, int]) -> bool:
        """Go on with every action; whether there was room for all calls that are due."""
        cancelled, room = _cancelled(written.action_set), True
        for number, action in enumerate(written.run.actions):
            match machine.decide(action, alive=alive.get(number), cancelled=cancelled):
                case machine.Call(place=at):
                    room = await self._call(written, number, at, known) and room
                case machine.Recover(place=at):
                    room = await self._recover(written, number, at, known) and room
                case machine.Stop(place=at, reason=reason):
                    under_way = known.alive.get(number)
                    if under_way is not None and under_way.place == at:
                        under_way.stop(reason)
                case machine.Conclude():
                    await self._conclude(written, number, known, cancelled)
                case machine.Await() | machine.Over():
                    pass
        return room

    async def _recover(self, written: _Written, number: int, place: int, known: Known) -> bool:
        """Go on after a call of which nobody knows how far it got."""
        action = written.run.actions[number]
        function = self._function(action, place)
        if function is not None and function.idempotent:
            return await self._call(written, number, place, known)
        called = f"{action.written(place).function} {action.calls[place].version}"
        await written.store_action(number, machine.interrupted(action, place, called))
        return True

    async def _call(self, written: _Written, number: int, place: int, known: Known) -> bool:
        """Call a phase, or store why that cannot be done; False if there is no room for it."""
        if not self._calls.take():
            return False
        try:
            task = await self._called(written, number, place, known)
        except BaseException:
            self._calls.give_back()
            raise
        if task is None:
            self._calls.give_back()
        else:
            known.alive[number] = Alive(place, task)
        return True

    async def _called(
        self, written: _Written, number: int, place: int, known: Known
    ) -> asyncio.Task[None] | None:
        action = written.run.actions[number]
        function = self._function(action, place)
        try:
            if function is None:
                phase, version = action.written(place), action.calls[place].version
                fact = f"{phase.function} {version}, which was chosen at the start, is not there"
                raise NotThere(fact, hint="start polyver with the functions of before")
            params = await self._params(written, number, known)
            arguments = await asyncio.to_thread(
                machine.render_arguments, action, place, function, params
            )
        except PolyverError as error:
            if not is_final(error):
                raise
            await written.store_action(number, machine.failed(action, place, _short(str(error))))
            return None
        await written.store_action(number, machine.called(action, place))
        # Only now, and whatever happens next: it is known that it was called.
        context = self._context(written, number, place, params)
        call = Call(number, place, function, arguments, context)
        return asyncio.create_task(self._perform(written, call, known))

    def _function(self, action: ActionRun, place: int) -> Function | None:
        known = self._functions.known.get(action.written(place).function)
        return known.code.get(SemVer.complete(action.calls[place].version)) if known else None

    async def _params(self, written: _Written, number: int, known: Known) -> dict[str, Any]:
        action = written.run.actions[number]
        if number not in known.objects:
            at = f"spec.actions[{number}]"
            known.objects[number] = await gather(self._client, action, written.namespace, at=at)
        objects = known.objects[number]
        return await asyncio.to_thread(machine.params_of, action, objects)

    def _context(
        self, written: _Written, number: int, place: int, params: Mapping[str, Any]
    ) -> FunctionContext[Client]:
        action = written.run.actions[number]
        phase = action.label(place)
        log = FunctionLog(actionset=written.name, action=action.name, phase=phase)
        key = f"{written.uid}-{number}-{place}"
        now = self._clock.now()
        client, inside = self._client, written.namespace
        return FunctionContext(client, params, log, phase, now, inside, key, self._allows)

    async def _perform(self, written: _Written, call: Call, known: Known) -> None:
        """Call a function, and store what came of it."""
        own = asyncio.current_task()
        assert own is not None
        try:
            change = await self._ended(call, own, known)
            await self._store_end(written, call.number, change)
        except Exception as error:
            # Somebody has to be told, or nobody would ever look at it again.
            self._log.failure("a phase has ended by a bug", error, actionset=written.name)
            reason = f"this is a bug in polyver: {error!r}"
            await self._store_end(written, call.number, partial(_without_output, reason=reason))
        finally:
            alive = known.alive.get(call.number)
            if alive is not None and alive.task is own:
                del known.alive[call.number]

    async def _ended(
        self, call: Call, own: asyncio.Task[None], known: Known
    ) -> Callable[[ActionRun], ActionRun]:
        """How a call changes its action."""
        seconds, function, place = self._limits.seconds, call.function, call.place
        try:
            result = await self._calls.call(function, call.arguments, call.context, seconds=seconds)
            output = output_of(result, function, largest=self._limits.output)
        except CallFailed as failure:
            reason = _short(failure.fact)
            if failure.error is not None and not isinstance(failure.error, PolyverError):
                self._log.failure("a function failed", failure.error, function=function.label)
            return lambda action: machine.failed(action, place, reason)
        except asyncio.CancelledError:
            alive = known.alive.get(call.number)
            stopped = alive.reason if alive is not None and alive.task is own else ""
            if not stopped:
                raise  # the controller ends: how far this got is for the next one to find out
            own.uncancel()
            return lambda action: machine.failed(action, place, stopped)
        return lambda action: machine.returned(action, place, output)

    async def _store_end(
        self, written: _Written, number: int, change: Callable[[ActionRun], ActionRun]
    ) -> None:
        """Store what came of a call, however long the API takes to answer."""
        failures = 0
        while True:
            try:
                found = await find(self._client, _ACTION_SETS, written.name, written.namespace)
                run = read_run(found) if found and _uid(found) == written.uid else None
                if found is None or run is None:
                    return
                ended = run.with_action(number, change(run.actions[number]))
                if self._is_too_large(ended):
                    ended = run.with_action(
                        number, _without_output(run.actions[number], reason=_TOO_LARGE)
                    )
                await _Written(self, found, run).store(ended)
            except PolyverError as error:
                failures += 1
                if isinstance(error, ApiError) and error.code in _UNTAKEN:
                    change = partial(_without_output, reason=f"it cannot be stored: {error}")
                elif not isinstance(error, ApiError) or error.code != 409:
                    fact = "the end of a phase cannot be stored yet"
                    self._log.warning(fact, actionset=written.name, error=str(error))
                await sleep(self._clock, _STORING.delay(failures, spread=chance()))
            else:
                return

    # The end.

    async def _conclude(self, written: _Written, number: int, known: Known, cancelled: str) -> None:
        action = written.run.actions[number]
        has_failed = any(call.state is machine.State.FAILED for call in action.calls)
        artifacts, error = None, ""
        if not has_failed:
            try:
                params = await self._params(written, number, known)
                artifacts = await asyncio.to_thread(machine.render_artifacts, action, params)
            except PolyverError as problem:
                if not is_final(problem):
                    raise
                error = _short(str(problem))
        ended = machine.concluded(action, artifacts, error=error, cancelled=cancelled)
        if self._is_too_large(written.run.with_action(number, ended)):
            ended = machine.concluded(action, error=_TOO_LARGE, cancelled=cancelled)
        # Told before it is stored: told twice is told once, and what is over is not looked at.
        await self._tell_end(written.action_set, written.run.with_action(number, ended))
        await written.store_action(number, ended)

    def _is_too_large(self, run: Run) -> bool:
        return len(encode_json(status_of(run, now=""))) > self._limits.status

    async def write(self, action_set: Object, run: Run) -> Object:
        """Store how far a run is, if nobody was faster."""
        status = status_of(run, now=self._clock.now().strftime("%Y-%m-%dT%H:%M:%SZ"))
        content = {**action_set, "status": {**(action_set.get("status") or {}), **status}}
        return await self._client.update(_ACTION_SETS, content, subresource="status")


@dataclass(slots=True)
class _Written:
    """An ActionSet and its run as they are stored, kept up to date with what is written."""

    controller: ActionSetController
    action_set: Object
    run: Run

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

    async def store(self, run: Run) -> None:
        self.action_set = await self.controller.write(self.action_set, run)
        self.run = run


def _about(action_set: Object) -> str:
    metadata = action_set["metadata"]
    return f"{metadata.get('namespace', '')}/{metadata['name']}"


def _uid(action_set: Object) -> str:
    return str(action_set["metadata"]["uid"])


def _without_output(action: ActionRun, *, reason: str) -> ActionRun:
    """A call that has ended with what cannot be kept."""
    running = [n for n, call in enumerate(action.calls) if call.state is machine.State.RUNNING]
    return machine.failed(action, running[0], _short(reason)) if running else action


def _short(reason: str) -> str:
    return reason if len(reason) <= _LONGEST_REASON else f"{reason[: _LONGEST_REASON - 1]}…"


def _cancelled(action_set: Object) -> str:
    """Why nothing further is wanted; empty if it is."""
    metadata = action_set["metadata"]
    if "deletionTimestamp" in metadata:
        return "it was cancelled: the ActionSet was deleted"
    if (metadata.get("annotations") or {}).get(CANCEL) == "true":
        return f"it was cancelled by the annotation {CANCEL}"
    return ""


def _state(kind: Kind, obj: Object) -> tuple[str, bool]:
    del kind
    state = (obj.get("status") or {}).get("state")
    is_over = state in ("complete", "failed")
    holds = FINALIZER in (obj["metadata"].get("finalizers") or ())
    return obj["metadata"]["resourceVersion"], is_over and not holds


def _observe(kind: Kind, change: Change[tuple[str, bool]]) -> Sequence[Key]:
    del kind
    return () if change.after is not None and change.after[1] else (change.key,)
