"""Paths into plain data, as cases write them: `items[metadata.name=a].spec.ports[0]`."""

from __future__ import annotations

import re
from typing import Any

_STEP = re.compile(r'\.?(?:"([^"]+)"|([^.\[\]"]+))|\[(\d+)\]|\[([^=\]]+)=([^\]]*)\]')


def steps(path: str) -> list[str | int | tuple[str, str]]:
    found: list[str | int | tuple[str, str]] = []
    for quoted, name, number, key, value in _STEP.findall(path):
        if number:
            found.append(int(number))
        elif key:
            found.append((key, value))
        else:
            found.append(quoted or name)
    return found


def pick(value: Any, path: str) -> Any:
    """What is at the path, or None."""
    for step in steps(path):
        match step:
            case (key, wanted):
                items = value if isinstance(value, list) else []
                value = next((item for item in items if str(pick(item, key)) == wanted), None)
            case int():
                value = value[step] if isinstance(value, list) and step < len(value) else None
            case _:
                value = value.get(step) if isinstance(value, dict) else None
    return value


def omit(value: Any, path: str) -> None:
    """Take out what is at the path; a list on the way means each of its items."""
    *way, last = steps(path)
    found = [value]
    for step in way:
        found = [inner for one in found for inner in _inside(one, step)]
    for one in found:
        for item in one if isinstance(one, list) else [one]:
            if isinstance(item, dict):
                item.pop(last, None)


def _inside(value: Any, step: Any) -> list[Any]:
    if isinstance(value, list) and isinstance(step, str):
        return [inner for item in value for inner in _inside(item, step)]
    found = value.get(step) if isinstance(value, dict) else None
    return [] if found is None else [found]
