"""The output of `polyver retire`: the plan, and the progress of a retirement in the terminal."""

from __future__ import annotations

import asyncio
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Final

from polyver.apis.controllers.retirement_observing import RETIREMENTS_ON
from polyver.apis.retirement import PlannedStep, RetirementPlan, RetirementState
from polyver.cli.exit_codes import ProblemsFound, UnknownName
from polyver.cli.output import print_lines, printable, warn
from polyver.client import Client, find
from polyver.client.cluster import Unreachable
from polyver.core.plain import Object

if TYPE_CHECKING:
    from rich.progress import Progress

__all__ = ["counting", "follow", "plan_lines", "refuse_unfinished", "summary_lines"]

_EVERY: Final = 0.3
_UNTAKEN: Final = 60.0
"""Seconds after which the command gives up if no controller has set the status."""
_TEMPORARY: Final = {"ObjectRefused", "RequestRefused"}
_GRACE: Final = 10.0
"""Seconds for which the command waits while a server refuses a request, because polyver repeats it.
"""
_PATIENCE: Final = 60.0
_MANY: Final = 10


@contextmanager
def counting(name: str) -> Iterator[Callable[[int, int], None]]:
    """Show a progress bar on a terminal while objects are counted; elsewhere do nothing."""
    if not sys.stderr.isatty():
        yield lambda _done, _total: None
        return
    with _bar() as bar:
        task = bar.add_task(f"reading {name}", total=None)
        yield lambda done, total: bar.update(task, completed=done, total=total)


def _bar() -> Progress:
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn

    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn())
    return Progress(*columns, console=Console(stderr=True), transient=True)


# The plan.


def plan_lines(plan: RetirementPlan) -> Iterator[str]:
    """Yield the lines of a plan."""
    snapshot, counts = plan.snapshot, plan.counts
    yield f"plan to retire {plan.version} of {plan.definition}; nothing is changed"
    yield ""
    # Objects are read in another version, so without one that is served they are not counted.
    others = any(served for name, served in snapshot.served.items() if name != plan.version)
    number = counts.total if others else "not counted, because no other version is served"
    yield f"objects: {number}; storage version: {snapshot.storage or 'unknown'}"
    if snapshot.stored:
        yield f"status.storedVersions: {', '.join(snapshot.stored)}"
    yield from _section("field managers with fields in this version", _managers(plan))
    yield from _section("preserved fields that only this version can restore", _preserved(plan))
    yield from _section("clients that used this version", _clients(plan))
    yield from _section("objects of polyver that use this version", snapshot.dependents)
    yield from _section("field managers that apply the definition", snapshot.appliers)
    yield from _section("field managers that apply the Conversion", snapshot.conversion_appliers)
    if plan.steps:
        steps = [f"{number}. {_step(each)}" for number, each in enumerate(plan.steps, 1)]
        yield from _section("steps", steps, most=len(steps))
    if not plan.blockers and plan.steps:
        yield ""
        yield f"to execute this plan: polyver retire {plan.definition} {plan.version} --confirm"


def _section(title: str, rows: Any, *, most: int = _MANY) -> Iterator[str]:
    rows = [*rows]
    if not rows:
        return
    yield ""
    yield f"{title}:"
    for row in rows[:most]:
        yield f"  {printable(row)}"
    if len(rows) > most:
        yield f"  and {len(rows) - most} more; -o json lists all"


def _managers(plan: RetirementPlan) -> Iterator[str]:
    for (manager, operation), number in plan.counts.managers.most_common():
        last = plan.counts.last_write[manager, operation]
        time_text = f", last write {last}" if last else ""
        yield f"{manager} ({operation}) in {_objects(number)}{time_text}"


def _preserved(plan: RetirementPlan) -> Iterator[str]:
    for path, number in plan.counts.preserved.most_common():
        yield f"{path} in {_objects(number)}"


def _clients(plan: RetirementPlan) -> Iterator[str]:
    for each in plan.clients.clients:
        agent = f" with {each['userAgent']}" if each.get("userAgent") else ""
        yield f"{each['user']}{agent}: {each['requests']} requests, last {each['lastRequest']}"
    if plan.clients.others:
        yield f"other clients: {plan.clients.others} requests"


def _objects(number: int) -> str:
    return "1 object" if number == 1 else f"{number} objects"


def _step(step: PlannedStep) -> str:
    if step.objects is None:
        return step.text
    return f"{step.text} ({_objects(step.objects)}, about {step.seconds} s)"


# Following a retirement.


async def follow(client: Client, retirement: Object, *, shown: bool) -> Object:
    """Wait until a retirement has ended, or until something blocks it; return its last state."""
    generation = retirement["metadata"].get("generation", 0)
    name, since = retirement["metadata"]["name"], time.monotonic()
    blocked_since = None
    with _following(shown) as show:
        while True:
            retirement = await _asked(client, name)
            status = retirement.get("status") or {}
            if not _is_current(status, generation):
                if time.monotonic() - since > _UNTAKEN:
                    hint = "is polyver running? see `polyver run` and `polyver up`"
                    raise ProblemsFound(f"no controller has taken {name}", hint=hint)
                await asyncio.sleep(_EVERY)
                continue
            show(status)
            if status["state"] in (RetirementState.COMPLETED, RetirementState.ABORTED):
                return retirement
            if status["state"] == RetirementState.BLOCKED:
                blocked_since = blocked_since or time.monotonic()
                if _stays_blocked(status) or time.monotonic() - blocked_since > _GRACE:
                    return retirement
            else:
                blocked_since = None
            await asyncio.sleep(_EVERY)


def _is_current(status: Object, generation: int) -> bool:
    """Report whether a controller has seen this generation of the Retirement."""
    conditions = status.get("conditions") or ()
    return any(each.get("observedGeneration", 0) >= generation for each in conditions)


def _stays_blocked(status: Object) -> bool:
    return any(each["reason"] not in _TEMPORARY for each in status.get("blockers") or ())


async def _asked(client: Client, name: str) -> Object:
    """Read a Retirement; if the server is unreachable, try again for a while."""
    since = time.monotonic()
    while True:
        try:
            found = await find(client, RETIREMENTS_ON, name)
        except Unreachable:
            if time.monotonic() - since > _PATIENCE:
                raise
            await asyncio.sleep(_EVERY)
            continue
        if found is None:
            raise UnknownName(f"the Retirement {name} was deleted")
        return found


@contextmanager
def _following(shown: bool) -> Iterator[Callable[[Object], None]]:
    """Show the progress: a bar on a terminal, one line for each step elsewhere."""
    if not shown:
        yield lambda _status: None
        return
    if sys.stderr.isatty():
        with _bar() as bar:
            task = bar.add_task("", total=None)

            def update(status: Object) -> None:
                done, _, total = (status.get("progress") or "").partition("/")
                bar.update(
                    task,
                    description=status.get("step") or status["state"],
                    completed=int(done or 0),
                    total=int(total) if total else None,
                )

            yield update
        return
    printed = 0

    def print_new(status: Object) -> None:
        nonlocal printed
        entries = status.get("history") or []
        for each in entries[printed:]:
            print_lines(": ".join(filter(None, (each["step"], printable(each["message"])))))
        printed = len(entries)

    yield print_new


def refuse_unfinished(retirement: Object) -> None:
    """Raise an error unless a retirement is completed; report what it has changed."""
    status, spec = retirement.get("status") or {}, retirement["spec"]
    name = f"{spec['version']} of {spec['definition']}"
    if status.get("state") == RetirementState.COMPLETED:
        return
    if status.get("state") == RetirementState.ABORTED:
        raise ProblemsFound(f"the retirement of {name} was aborted")
    text = "; ".join(each["message"] for each in status.get("blockers") or ())
    hint = "polyver continues as soon as this is resolved; --abort serves the version again"
    warn(hint)
    raise ProblemsFound(f"the retirement of {name} is blocked: {text}")


def summary_lines(retirement: Object) -> Iterator[str]:
    """Yield the lines that report what a completed retirement has changed."""
    status, spec = retirement.get("status") or {}, retirement["spec"]
    yield f"{spec['version']} of {spec['definition']} is removed"
    for each in status.get("purged") or ():
        yield f"purged {printable(each['path'])} in {_objects(each['objects'])}"
