"""The report about a rollout in the terminal, once or live until the rollout ends.

A terminal shows the report in colours and redraws it. Other outputs, such as the log of a CI job,
get one line for each change, and the whole report at the end.
"""

from __future__ import annotations

import asyncio
import itertools
import math
import sys
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import nullcontext
from typing import TYPE_CHECKING, Final

from polyver.cli.output import print_lines, printable, printing, warn
from polyver.client.cluster import Unreachable
from polyver.core.plain import Object, ReadOnlyObject
from polyver.core.rollout import RolloutState
from polyver.rollouts.description import (
    StepDescription,
    StepState,
    state_text,
    step_number,
    steps_of,
    suggested_commands,
)

if TYPE_CHECKING:
    from rich.console import Console
    from rich.text import Text

__all__ = ["follow", "show_report"]

_BAR: Final = 30
_EVERY: Final = 0.5
_MOST_GROUPS: Final = 5
_PATIENCE: Final = 60.0
"""Maximum seconds for which a request to an unreachable server is repeated."""
_RETURN: Final = 30.0
"""After a rollback or an abort, the command waits at most this number of seconds until the
followers have returned to their earlier releases.
"""
_STEPS: Final[dict[StepState, tuple[str, str]]] = {
    "done": ("✓", "green"),
    "in progress": ("▶", "bold"),
    "paused": ("▶", "bold yellow"),
    "failed": ("✗", "bold red"),
    "taken back": ("↩", "red"),
    "not started": (" ", "dim"),
}
_RESULTS: Final = {"Passed": ("✓", "green"), "Failed": ("✗", "bold red")}
_STATES: Final = {
    "Completed": "bold green",
    "Paused": "bold yellow",
    "Held": "bold yellow",
    "RolledBack": "bold red",
    "Aborted": "bold red",
    "Invalid": "bold red",
}

Line = tuple[tuple[str, str], ...]
"""One line of the report: strings, each with its style on a terminal."""


def show_report(obj: ReadOnlyObject) -> None:
    """Print the report about a rollout."""
    if sys.stdout.isatty():
        with printing():
            _console().print(_rich(obj), soft_wrap=True)
    else:
        print_lines(*_plain(obj))


def _console() -> Console:
    from rich.console import Console

    return Console(markup=False, highlight=False, emoji=False)


def _rich(obj: ReadOnlyObject) -> Text:
    from rich.text import Text

    lines = [Text.assemble(*line) for line in _report(obj)]
    return Text("\n", no_wrap=True, overflow="ellipsis").join(lines)


def _plain(obj: ReadOnlyObject) -> list[str]:
    return ["".join(text for text, _ in line).rstrip() for line in _report(obj)]


# The report.


def _report(obj: ReadOnlyObject) -> Iterator[Line]:
    metadata, spec = obj["metadata"], obj["spec"]
    status, target = obj.get("status") or {}, spec["target"]
    name = f"{metadata['namespace']}/{metadata['name']}"
    yield ((name, "bold"), (f"   {target['kind']} {target['name']} → {spec['to']}", ""))
    state, reason = state_text(status), printable(status.get("reason") or "")
    yield ((state, _STATES.get(state, "bold")), (f": {reason}" if reason else "", ""))
    yield from _section(map(_step, steps_of(status)))
    yield from _section(_followers(status))
    yield from _section(map(_check, status.get("checks") or ()))
    yield from _section(_preflight(status.get("preflight") or {}, metadata["name"]))
    yield from _section(_next(obj))


def _section(lines: Iterator[Line]) -> Iterator[Line]:
    """Yield an empty line and then the lines of a section; yield nothing if it has no lines."""
    found = [*lines]
    if found:
        yield ()
        yield from found


def _step(step: StepDescription) -> Line:
    mark, style = _STEPS[step.state]
    pause = f", then a pause {'' if step.pause.startswith('until') else 'of '}{step.pause}"
    text = f"{mark} step {step.number}: {printable(step.adds)}{pause if step.pause else ''}"
    state = "" if step.state in ("done", "not started") else f"  ({step.state})"
    return ((text, style), (state, style))


def _followers(status: ReadOnlyObject) -> Iterator[Line]:
    counts = status.get("dependents")
    if not counts:
        return
    total, moved = counts["total"], counts["moved"]
    if _is_closed(status):
        yield _bar("moved", 0, moved, total, f"{moved} of {total} still use it")
        return
    cohort, bad = counts["cohort"], counts["failing"] + counts["held"]
    told = f"{counts['failing']} failing, {counts['held']} held"
    told += f", {counts['idle']} not run yet" if counts.get("idle") else ""
    yield _bar("cohort", cohort, 0, total, f"{cohort} of {total} may use it")
    yield _bar("moved", moved, 0, total, f"{moved} of {cohort}, {counts['waiting']} waiting")
    healthy = counts["healthy"]
    yield _bar("healthy", healthy, bad, total, f"{healthy} of {cohort}, {told}")


def _is_closed(status: ReadOnlyObject) -> bool:
    state = status.get("state")
    return bool(state) and RolloutState(state).is_closed


def _bar(name: str, good: int, bad: int, total: int, text: str) -> Line:
    """Return a bar whose full length is `total`: `good` followers, `bad` followers, and the rest.

    >>> "".join(text for text, _ in _bar("healthy", 1, 1, 4, "1 of 2"))
    'healthy  [########!!!!!!!!..............]  1 of 2'
    """
    # A single follower is visible, whatever their number is.
    wide, red = (min(_BAR, max(round(_BAR * n / total), 1)) if n else 0 for n in (good, bad))
    wide = min(wide, _BAR - red)
    rest = "." * (_BAR - wide - red)
    return (
        (f"{name:7}  [", ""),
        ("#" * wide, "green"),
        ("!" * red, "red"),
        (rest, "dim"),
        (f"]  {text}", ""),
    )


def _check(check: ReadOnlyObject) -> Line:
    mark, style = _RESULTS.get(check["result"], ("…", "bold"))
    message = printable(check.get("message") or "")
    return ((f"{mark} check {check['name']}: {check['result']}", style), (f", {message}", ""))


def _preflight(found: ReadOnlyObject, name: str) -> Iterator[Line]:
    if not found:
        return
    counts = (
        f"preflight: {found['unchanged']} unchanged, {found['changed']} changed, "
        f"{found['loses']} would lose objects, {found['fails']} would fail"
    )
    yield ((counts, ""),)
    groups = [printable(each["change"]) for each in found.get("groups") or ()]
    failures = [
        f"{each['dependents']} would fail: {printable(each['message'])}"
        for each in found.get("failures") or ()
    ]
    texts = [*((each, "red") for each in failures), *((each, "") for each in groups)]
    for text, style in texts[:_MOST_GROUPS]:
        yield ((f"  {text}", style),)
    if len(texts) > _MOST_GROUPS:
        more = len(texts) - _MOST_GROUPS
        yield ((f"  and {more} more; polyver rollout preflight {name} lists all", ""),)


def _next(obj: ReadOnlyObject) -> Iterator[Line]:
    commands = [*suggested_commands(obj)]
    width = max((len(each.command) for each in commands), default=0)
    for each in commands:
        yield ((f"{each.command:{width}}", ""), (f"  # {each.effect}", "dim"))


# Following a rollout.


async def follow(read: Callable[[], Awaitable[Object]]) -> Object:
    """Show a rollout until it ends, and return the rollout in its last state.

    After a rollback or an abort, wait until the followers have returned, at most 30 seconds.
    """
    is_live = sys.stdout.isatty() and not _console().is_dumb_terminal
    shown: Object | None = None
    try:
        with _Screen() if is_live else nullcontext() as screen:
            async for obj in _changes(read):
                _show_line(obj, shown) if screen is None else screen.show(obj)
                shown = obj
    finally:
        # The report stays on the terminal, without the cuts that redrawing needs.
        if shown is not None and is_live:
            show_report(shown)
    assert shown is not None
    if not is_live:
        print_lines("")
        show_report(shown)
    return shown


async def _changes(read: Callable[[], Awaitable[Object]]) -> AsyncIterator[Object]:
    """Yield a rollout after each change, until it has ended.

    After a rollback or an abort, continue until the followers have returned, at most 30 seconds.
    """
    before, ended_at = None, math.inf
    while True:
        obj = await _asked(read)
        if obj != before:
            yield obj
        before, status = obj, obj.get("status") or {}
        if status.get("state") and RolloutState(status["state"]).is_final:
            ended_at = min(ended_at, time.monotonic())
            has_moved = bool((status.get("dependents") or {}).get("moved"))
            returns = has_moved and _is_closed(status)
            if not returns or time.monotonic() - ended_at > _RETURN:
                return
        await asyncio.sleep(_EVERY)


class _Screen:
    """The report on a terminal, which is drawn again after each change."""

    def __init__(self) -> None:
        from rich.live import Live

        self._live = Live(console=_console(), auto_refresh=False, transient=True)

    def __enter__(self) -> _Screen:
        with printing():
            self._live.start()
        return self

    def __exit__(self, *_: object) -> None:
        with printing():
            self._live.stop()

    def show(self, obj: ReadOnlyObject) -> None:
        with printing():
            self._live.update(_rich(obj), refresh=True)


def _show_line(obj: ReadOnlyObject, before: ReadOnlyObject | None) -> None:
    """Print the progress of a rollout in one line, unless this line would be the same as before."""
    line = _line(obj)
    if before is None or line != _line(before):
        print_lines(line)


def _line(obj: ReadOnlyObject) -> str:
    status: ReadOnlyObject = obj.get("status") or {}
    counts = status.get("dependents") or {}
    steps = len((status.get("policy") or {}).get("steps") or ())
    parts = [state_text(status)]
    parts += [f"step {step_number(status)} of {steps}"] if step_number(status) else []
    if counts and step_number(status):
        parts.append(f"{counts['moved']} of {counts['cohort']} moved")
        parts += [f"{counts[name]} {name}" for name in ("healthy", "failing", "held")]
    reason = printable(status.get("reason") or "")
    return ", ".join(parts) + (f": {reason}" if reason else "")


async def _asked(read: Callable[[], Awaitable[Object]]) -> Object:
    """Read a rollout; if the server is unreachable, try again for at most `_PATIENCE` seconds."""
    since = time.monotonic()
    for number in itertools.count():
        try:
            return await read()
        except Unreachable as error:
            if time.monotonic() - since > _PATIENCE:
                raise
            if not number:
                warn(f"{error}; asking again")
        await asyncio.sleep(_EVERY)
    raise AssertionError
