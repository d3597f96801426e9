"""The fieldPath of rules: names after dots, or in brackets and quotes."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

__all__ = ["rule_path"]

_WORD = re.compile(r"'(?:[^'\\]|\\.)*'|[.\[\]]|[^.\[\]]+", re.DOTALL)
_ESCAPES = dict(zip("abfnrtv'\\", "\a\b\f\n\r\t\v'\\", strict=True))


def rule_path(schema: Mapping[str, Any], path: str) -> str | None:
    """Return a fieldPath as error messages show it; None if it leads nowhere.

    >>> schema = {"type": "object", "properties": {"a.b": {"type": "string"}}}
    >>> rule_path(schema, "['a.b']"), rule_path(schema, ".c")
    ('a.b', None)
    """
    words = _WORD.findall(path)
    place: Any = schema
    found, at = "", 0
    while at < len(words):
        name, used = _step(words[at:])
        if name is None or not isinstance(place, Mapping):
            return None
        fields, others = place.get("properties"), place.get("additionalProperties")
        if fields is not None:
            if name not in fields:
                return None
            found, place = f"{found}.{name}" if found else name, fields[name]
        elif others is not None:
            found, place = f"{found}[{name}]", others
        else:
            return None
        at += used
    return found


def _step(words: list[str]) -> tuple[str | None, int]:
    """Return the next name on the path, and the number of tokens that it takes."""
    match words:
        case [".", name, *_]:
            return name, 2
        case ["[", name, "]", *_] if len(name) >= 2 and name[0] == "'" == name[-1]:
            return _unquoted(name[1:-1]), 3
    return None, 0


def _unquoted(text: str) -> str | None:
    if any(each not in _ESCAPES for each in re.findall(r"\\(.)", text, re.DOTALL)):
        return None
    return re.sub(r"\\(.)", lambda found: _ESCAPES[found[1]], text)
