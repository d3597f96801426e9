"""Prune the objects that functions return, as an API server does: drop fields that a schema lacks.

A pruner is built once for each schema, and skips the parts of objects in which anything is allowed.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import lru_cache
from typing import Any

from polyver.apis.conversion.implied import child, is_open, items, names_in
from polyver.kube.objects.schema.structure import StructuralSchema

__all__ = ["Prune", "pruner"]

Prune = Callable[[Any], None]
"""Prunes a value in place."""


@lru_cache(maxsize=4096)
def pruner(place: StructuralSchema | None) -> Prune | None:
    """Return a function that drops the fields which a schema lacks; None if it allows anything.

    >>> prune = pruner(StructuralSchema(fields={"a": StructuralSchema(preserves=True)}))
    >>> obj = {"a": {"b": 1}, "c": 2}
    >>> prune(obj) if prune else None
    >>> obj
    {'a': {'b': 1}}
    """
    if place is None:
        return None
    if not names_in(place) and not is_open(place) and place.items is None:
        return _empty
    names = None if is_open(place) else names_in(place)
    inside = {name: pruner(child(place, name)) for name in names_in(place)}
    other = pruner(child(place, _NO_FIELD)) if is_open(place) else None
    listed = pruner(items(place))
    if names is None and other is None and listed is None and not any(inside.values()):
        return None
    known = {name: found or _leave for name, found in inside.items()}
    return _pruner(names, known, other or _leave, listed or _leave)


_NO_FIELD = "\0"
"""A field name that occurs in no schema."""


def _pruner(
    names: frozenset[str] | None,
    inside: Mapping[str, Prune],
    other: Prune,
    listed: Prune,
) -> Prune:
    def prune(value: Any) -> None:
        if type(value) is list:
            for each in value:
                listed(each)
        if type(value) is not dict:
            return
        if names is not None and not value.keys() <= names:
            for name in value.keys() - names:
                del value[name]
        for name, each in value.items():
            if type(each) is dict or type(each) is list:
                inside.get(name, other)(each)

    return prune


def _leave(_: Any) -> None:
    """Leave a value as it is."""


def _empty(value: Any) -> None:
    """Remove all fields of a value, for a schema without fields."""
    if type(value) is dict:
        value.clear()
    elif type(value) is list:
        for item in value:
            _empty(item)
