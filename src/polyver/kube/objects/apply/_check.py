"""Checks that an applied configuration fits its schema, with kube-apiserver's messages."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from polyver.kube.objects.apply._fields import element_text
from polyver.kube.objects.apply._types import ApplySchema, Mistyped, element_of

__all__ = ["misfits"]


def misfits(value: object, place: ApplySchema) -> str:
    """Return the errors in a configuration; an empty string if there are none.

    >>> misfits({"size": "big"}, ApplySchema(mapping=True, fields={"size": ApplySchema("numeric")}))
    '.size: expected numeric (int or float), got string'
    """
    found = [f"{where}: {what}" if where else what for where, what in _misfits(value, place)]
    if len(found) < 2:
        return "".join(found)
    return "\n  ".join(["errors:", *found])


_Misfit = tuple[str, str]


def _misfits(value: Any, place: ApplySchema) -> Iterator[_Misfit]:
    if value is None:
        return
    if isinstance(value, dict) and place.mapping:
        yield from _in_map(value, place)
    elif isinstance(value, list) and place.sequence:
        yield from _in_list(value, place)
    elif place.mapping and (isinstance(value, dict | list) or not place.scalar):
        yield "", f"expected map, got &{{{_printed(value)}}}"
    elif place.scalar:
        problem = _scalar_misfit(value, place.scalar)
        if problem:
            yield "", problem
    else:
        yield "", f"expected list, got &{{{_printed(value)}}}"


def _in_map(value: dict[str, Any], place: ApplySchema) -> Iterator[_Misfit]:
    for key in sorted(value):
        within = place.fields.get(key) or place.values
        if within is None:
            yield f".{key}", "field not declared in schema"
            return
        for where, what in _misfits(value[key], within):
            yield f".{key}{where}", what


def _in_list(items: list[Any], place: ApplySchema) -> Iterator[_Misfit]:
    seen = set()
    for number, item in enumerate(items):
        name = f"i:{number}"
        if place.associative:
            try:
                name = element_of(item, place)
            except Mistyped as error:
                yield "", f"element {number}: {error}"
                return
        if name in seen:
            yield "", f"duplicate entries for key {element_text(name)}"
        seen.add(name)
        if place.items is not None:
            for where, what in _misfits(item, place.items):
                yield f"{element_text(name)}{where}", what


def _scalar_misfit(value: object, scalar: str) -> str:
    number = isinstance(value, int | float) and not isinstance(value, bool)
    if scalar == "numeric" and not number:
        return f"expected numeric (int or float), got {_go_type(value)}"
    if scalar == "string" and not isinstance(value, str):
        return f"expected string, got &value.valueUnstructured{{Value:{_literal(value)}}}"
    if scalar == "boolean" and not isinstance(value, bool):
        return f"expected boolean, got &{{{_printed(value)}}}"
    if scalar == "untyped" and isinstance(value, dict | list):
        return f"expected any scalar, got &{{{_printed(value)}}}"
    return ""


def _go_type(value: object) -> str:
    match value:
        case dict():
            return "map[string]interface {}"
        case list():
            return "[]interface {}"
        case bool():
            return "bool"
        case str():
            return "string"
    return "float64"


def _printed(value: object) -> str:
    """Return a value as Go prints it with %v."""
    match value:
        case dict():
            return f"map[{' '.join(f'{key}:{_printed(value[key])}' for key in sorted(value))}]"
        case list():
            return f"[{' '.join(map(_printed, value))}]"
        case None:
            return "<nil>"
        case bool():
            return str(value).lower()
    return str(value)


def _literal(value: object) -> str:
    """Return a value as Go prints it with %#v."""
    match value:
        case dict():
            pairs = ", ".join(f'"{key}":{_literal(value[key])}' for key in sorted(value))
            return f"{_go_type(value)}{{{pairs}}}"
        case list():
            return f"{_go_type(value)}{{{', '.join(map(_literal, value))}}}"
        case None:
            return "interface {}(nil)"
        case str():
            return f'"{value}"'
    return _printed(value)
