"""The text of a rollout in the terminal, once or live until it ends."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Awaitable, Callable, Iterator
from typing import Final

from polyver.cli.output import print_lines
from polyver.core.plain import Object
from polyver.core.rollout import RolloutState

__all__ = ["follow", "report_lines"]

_BAR: Final = 30
_EVERY: Final = 0.5


def report_lines(obj: Object) -> list[str]:
    """Return the steps, followers and checks of a rollout as lines of text."""
    return [*_lines(obj)]


def _lines(obj: Object) -> Iterator[str]:
    spec, status = obj["spec"], obj.get("status") or {}
    target = spec["target"]
    yield f"{target['kind']} {target['name']} → {spec['to']}"
    state, reason = status.get("state") or "Waiting", status.get("reason") or ""
    yield f"{state}{f': {reason}' if reason else ''}"
    yield from _steps(status)
    counts = status.get("dependents") or {}
    if counts:
        yield (
            f"{counts['cohort']} of {counts['total']} followers may use it: "
            f"{counts['healthy']} healthy, {counts['moved'] - counts['healthy']} not ready, "
            f"{counts['waiting']} waiting, {counts['failing']} failing, {counts['held']} held"
            + (f", {counts['idle']} not run yet" if counts.get("idle") else "")
        )
        yield _bar(counts["healthy"], counts["failing"] + counts["held"], counts["total"])
    for each in status.get("checks") or ():
        yield f"check {each['name']}: {each['result']} ({each.get('message') or ''})"
    found = status.get("preflight") or {}
    if found:
        yield (
            f"preflight: {found['unchanged']} unchanged, {found['changed']} changed, "
            f"{found['loses']} would lose objects, {found['fails']} would fail"
        )
        yield from (f"  {each['change']}" for each in found.get("groups") or ())
        yield from (f"  fails: {each['message']}" for each in found.get("failures") or ())


def _steps(status: Object) -> Iterator[str]:
    current = int((status.get("step") or "0/0").partition("/")[0])
    done = status.get("state") == RolloutState.COMPLETED.value
    for number, each in enumerate((status.get("policy") or {}).get("steps") or (), start=1):
        mark = "✓" if number < current or done else "▶" if number == current else " "
        labels = each.get("labels") or {}
        reach = each.get("share") or (f"{each['count']} followers" if each.get("count") else "")
        reach = reach or ", ".join(f"{name}={value}" for name, value in labels.items())
        pause = each.get("pause") or {}
        told = ", then a pause" if pause else ""
        told += f" of {pause['for']}" if pause.get("for") else ""
        told += " until it is approved" if pause.get("until") else ""
        yield f"{mark} step {number}: {reach}{told}"


def _bar(healthy: int, failing: int, total: int) -> str:
    if not total:
        return f"[{' ' * _BAR}]"
    good, bad = round(_BAR * healthy / total), round(_BAR * failing / total)
    return f"[{('#' * good + '!' * bad)[:_BAR].ljust(_BAR, '.')}] {healthy}/{total}"


async def follow(read: Callable[[], Awaitable[Object]]) -> Object:
    """Show a rollout until it ends: live on a terminal, else whenever its text changes."""
    shown: list[str] = []
    while True:
        obj = await read()
        lines = report_lines(obj)
        if lines != shown:
            if sys.stdout.isatty() and shown:
                # Up to the first line of the last text, and clear everything below.
                sys.stdout.write(f"\x1b[{len(shown)}A\x1b[J")
            print_lines(*lines, *([] if sys.stdout.isatty() else [""]))
            shown = lines
        state = (obj.get("status") or {}).get("state")
        if state and RolloutState(state).is_final:
            return obj
        await asyncio.sleep(_EVERY)
