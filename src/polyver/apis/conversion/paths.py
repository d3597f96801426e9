"""Paths of fields: `spec.schedule`, or `metadata.annotations["ex.io/mode"]`.

A path names only fields of objects, and no list items. A rule for a list contains further rules for
the fields of its items. In metadata, a conversion may write only labels and annotations, whose
values are strings.
"""

from __future__ import annotations

import re
from functools import lru_cache
from typing import Any, Final

from polyver.apis.conversion.values import MISSING
from polyver.core import PolyverError
from polyver.core.plain import Object
from polyver.languages.values.names import label_value_problems

__all__ = [
    "NAMES",
    "PATTERN",
    "InvalidFieldPath",
    "Path",
    "fits_metadata",
    "names_of",
    "parse_path",
    "pick",
    "put",
    "show_path",
    "take",
]

Path = tuple[str, ...]

_PLAIN: Final = re.compile(r"[A-Za-z0-9_$-]+")
_STEP: Final = re.compile(r'\.?([A-Za-z0-9_$-]+)|\["((?:[^"\\]|\\.)*)"\]')
_QUOTED: Final = r'\["(?:[^"\\]|\\.)*"\]'
PATTERN: Final = rf"^(?:{_PLAIN.pattern}|{_QUOTED})(?:\.{_PLAIN.pattern}|{_QUOTED})*\Z"
"""Matches strings that can be parsed as paths."""


class InvalidFieldPath(PolyverError):
    """A string that is no valid path."""

    def __init__(self, text: str) -> None:
        hint = 'write it as spec.schedule, or metadata.annotations["ex.io/mode"]'
        super().__init__(f"{text!r} is not the path of a field", hint=hint)


@lru_cache(maxsize=4096)
def parse_path(text: str) -> Path:
    """Parse a path.

    >>> parse_path('metadata.annotations["ex.io/mode"]')
    ('metadata', 'annotations', 'ex.io/mode')
    """
    names: list[str] = []
    at = 0
    while at < len(text):
        found = _STEP.match(text, at)
        if found is None or (text[at] == ".") is (at == 0 or found[1] is None):
            raise InvalidFieldPath(text)
        names.append(found[1] if found[1] is not None else re.sub(r"\\(.)", r"\1", found[2]))
        at = found.end()
        if at < len(text) and text[at] not in ".[":
            raise InvalidFieldPath(text)
    if not names:
        raise InvalidFieldPath(text)
    return tuple(names)


@lru_cache(maxsize=4096)
def show_path(path: Path) -> str:
    """Format a path as a string that `parse_path` can parse.

    >>> show_path(("spec", "labels", "a.b"))
    'spec.labels["a.b"]'
    """
    text = ""
    for name in path:
        if _PLAIN.fullmatch(name):
            text += f".{name}" if text else name
        else:
            inside = name.replace("\\", "\\\\").replace('"', '\\"')
            text += f'["{inside}"]'
    return text


def pick(value: Any, path: Path) -> Any:
    """Return the value at a path; MISSING if there is no value."""
    for name in path:
        if type(value) is not dict or name not in value:
            return MISSING
        value = value[name]
    return value


def take(obj: Object, path: Path, *, pinned: int) -> Any:
    """Remove and return the value at a path; also remove parents that become empty.

    The outermost `pinned` parents are kept even if they become empty. Return MISSING if there is no
    value at the path.
    """
    around: list[tuple[Object, str]] = []
    value: Any = obj
    for name in path:
        if type(value) is not dict or name not in value:
            return MISSING
        around.append((value, name))
        value = value[name]
    holder, name = around.pop()
    del holder[name]
    while len(around) > pinned and not holder:
        holder, name = around.pop()
        del holder[name]
    return value


def put(obj: Object, path: Path, value: Any) -> bool:
    """Set a value at a path, and create missing parents.

    If a parent has a value that is not an object, change nothing and return False.
    """
    for name in path[:-1]:
        inside = obj.get(name, MISSING)
        if inside is MISSING:
            inside = obj[name] = {}
        elif type(inside) is not dict:
            return False
        obj = inside
    obj[path[-1]] = value
    return True


def names_of(metadata: Any) -> dict[str, str]:
    """Return the name and the namespace in the metadata of an object, as far as it has them."""
    found = metadata if type(metadata) is dict else {}
    return {name: found[name] for name in NAMES if type(found.get(name)) is str}


NAMES: Final = ("name", "namespace")
"""The fields of metadata to which rules can refer. They are the same in all versions."""


def fits_metadata(path: Path, value: Any) -> bool:
    """Report whether a value is valid for the label or the annotation at a path.

    An API server refuses a converted object with an invalid label or annotation. A list request
    that contains such an object fails completely.
    """
    if value is MISSING:
        return True
    return type(value) is str and (path[1] != "labels" or not label_value_problems(value))
