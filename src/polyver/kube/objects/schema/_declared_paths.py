"""Checks of JSON paths in a CustomResourceDefinition.

These are the paths of the scale subresource, printer columns, selectable fields and CEL rules.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Any

from polyver.kube.objects.status import Cause, duplicate, invalid_field, required, too_many

__all__ = ["check_columns", "check_scale", "check_selectable", "rule_path"]

_TYPES = ("boolean", "date", "integer", "number", "string")
_FORMATS = ("byte", "date", "date-time", "double", "float", "int32", "int64", "password")
_MOST_SELECTABLE = 8
_STEP = re.compile(r"[.\[\]]|[^.\[\]]+")


def check_scale(scale: Mapping[str, Any], path: str) -> Iterable[Cause]:
    """Yield the errors in the paths of the scale subresource."""
    for name, root in (("specReplicasPath", ".spec"), ("statusReplicasPath", ".status")):
        if not scale.get(name):
            yield required(f"{path}.{name}")
        else:
            text = f"should be a json path under {root}"
            yield from _check_under(scale[name], (f"{root}.",), f"{path}.{name}", text)
    if selector := scale.get("labelSelectorPath"):
        text = "should be a json path under either .spec or .status"
        roots = (".spec.", ".status.")
        yield from _check_under(selector, roots, f"{path}.labelSelectorPath", text)


def _check_under(found: str, roots: tuple[str, ...], path: str, problem: str) -> Iterable[Cause]:
    wrong = list(_check_simple(found, path))
    yield from wrong
    if not wrong and not found.startswith(roots):
        yield invalid_field(path, found, problem)


def _check_simple(found: str, path: str) -> Iterable[Cause]:
    if not found.startswith("."):
        yield invalid_field(path, found, "must be a simple json path starting with .")


def check_columns(columns: Iterable[Mapping[str, Any]], path: str) -> Iterable[Cause]:
    """Yield the errors in the printer columns."""
    for number, column in enumerate(columns):
        yield from _check_column(column, f"{path}[{number}]")


def _check_column(column: Mapping[str, Any], path: str) -> Iterable[Cause]:
    kind, shape, where = column.get("type"), column.get("format"), column.get("jsonPath")
    if not column.get("name"):
        yield required(f"{path}.name")
    one_of = f"must be one of {','.join(_TYPES)}"
    if not kind:
        yield required(f"{path}.type", one_of)
    elif kind not in _TYPES:
        yield invalid_field(f"{path}.type", kind, one_of)
    if shape and shape not in _FORMATS:
        yield invalid_field(f"{path}.format", shape, f"must be one of {','.join(_FORMATS)}")
    if not where:
        yield required(f"{path}.JSONPath")
    else:
        yield from _check_simple(where, f"{path}.JSONPath")


def check_selectable(
    fields: Iterable[Mapping[str, Any]], schema: Mapping[str, Any], path: str
) -> Iterable[Cause]:
    """Yield the errors in the selectable fields."""
    seen: set[tuple[str, ...]] = set()
    for number, field in enumerate(fields):
        found, field_path = field.get("jsonPath") or "", f"{path}[{number}].jsonPath"
        if not found:
            yield required(field_path)
            continue
        try:
            names, inside = _reached(found, schema)
        except ValueError as error:
            yield invalid_field(field_path, found, f"is an invalid path: {error}")
            continue
        yield from _check_selected(found, names, inside, field_path)
        if names in seen:
            yield duplicate(field_path, found)
        seen.add(names)
    if len(seen) > _MOST_SELECTABLE:
        yield too_many(path, len(seen), _MOST_SELECTABLE)


def _check_selected(
    found: str, names: tuple[str, ...], schema: object, field_path: str
) -> Iterable[Cause]:
    if names[:1] == ("metadata",):
        yield invalid_field(field_path, found, "must not point to fields in metadata")
    kind = schema.get("type") if isinstance(schema, Mapping) else None
    if kind not in ("string", "boolean", "integer"):
        text = "must point to a field of type string, boolean or integer."
        more = "Enum string fields and strings with formats are allowed."
        yield invalid_field(field_path, found, f"{text} {more}")


def _reached(path: str, schema: object) -> tuple[tuple[str, ...], object]:
    """Follow a path in a schema; return the field names on it, and the schema of the last field.

    Raise ValueError if the path is invalid.
    """
    names: list[str] = []
    steps = iter(_STEP.findall(path))
    for step in steps:
        if step == "[":
            raise ValueError("array notation is not allowed")
        if step != ".":
            raise ValueError(f"expected [ or . but got: {step}")
        name = next(steps, None)
        if name is None:
            raise ValueError("unexpected end of JSON path")
        schema = _inside(schema, name)
        names.append(name)
    return tuple(names), schema


def _inside(schema: object, name: str) -> object:
    if isinstance(schema, Mapping):
        fields, others = schema.get("properties"), schema.get("additionalProperties")
        if fields and name in fields:
            return fields[name]
        if not fields and others is not None:
            return others
    raise ValueError("does not refer to a valid field")


_WORD = re.compile(r"'(?:[^'\\]|\\.)*'|[.\[\]]|[^.\[\]]+", re.DOTALL)
_ESCAPES = dict(zip("abfnrtv'\\", "\a\b\f\n\r\t\v'\\", strict=True))


def rule_path(schema: Mapping[str, Any], path: str) -> str | None:
    """Write the fieldPath of a CEL rule as error messages show it; return None if it is invalid.

    >>> schema = {"type": "object", "properties": {"a.b": {"type": "string"}}}
    >>> rule_path(schema, "['a.b']"), rule_path(schema, ".c")
    ('a.b', None)
    """
    words = _WORD.findall(path)
    inner: Any = schema
    found, at = "", 0
    while at < len(words):
        name, used = _step(words[at:])
        if name is None or not isinstance(inner, Mapping):
            return None
        fields, others = inner.get("properties"), inner.get("additionalProperties")
        if fields is not None:
            if name not in fields:
                return None
            found, inner = f"{found}.{name}" if found else name, fields[name]
        elif others is not None:
            found, inner = f"{found}[{name}]", others
        else:
            return None
        at += used
    return found


def _step(words: list[str]) -> tuple[str | None, int]:
    """Return the next name on a path, and the number of tokens that form it.

    The name is None if the path is invalid.
    """
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
