"""What an API server would take away from what functions made: fields that a schema lacks.

It is made for a schema once, and passes over what that leaves to anybody.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from typing import Any

from polyver.capabilities.apis.conversion._implied import (
    child,
    is_open,
    items,
    knows,
    names_in,
)
from polyver.objects.schema._structure import Structure

__all__ = ["Prune", "pruner"]

Prune = Callable[[Any], None]
"""Takes away, in place."""


@lru_cache(maxsize=4096)
def pruner(place: Structure | None) -> Prune | None:
    """What takes away what may not be at a place; None if anything may.

    >>> prune = pruner(Structure(fields={"a": Structure(preserves=True)}))
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
    named = {name: pruner(child(place, name)) for name in names_in(place) if knows(place, name)}
    inside = [(name, prune) for name, prune in named.items() if prune is not None]
    other = child(place, _NO_FIELD) if is_open(place) else None
    values, listed = pruner(other), pruner(items(place))
    if names is None and not inside and values is None and listed is None:
        return None
    return _pruner(names, inside, frozenset(named), values, listed)


_NO_FIELD = "\0"
"""What no schema names."""


def _pruner(
    names: frozenset[str] | None,
    inside: list[tuple[str, Prune]],
    named: frozenset[str],
    values: Prune | None,
    listed: Prune | None,
) -> Prune:
    leaves = [name for name, prune in inside if prune is _empty]
    deeper = [(name, prune) for name, prune in inside if prune is not _empty]

    def prune(value: Any) -> None:
        if type(value) is list:
            if listed is not None:
                for item in value:
                    listed(item)
            return
        if type(value) is not dict:
            return
        if names is not None and not value.keys() <= names:
            for name in value.keys() - names:
                del value[name]
        for name in leaves:
            found = value.get(name)
            if type(found) is dict or type(found) is list:
                _empty(found)
        for name, each in deeper:
            if name in value:
                each(value[name])
        if values is not None:
            for name in value.keys() - named:
                values(value[name])

    return prune


def _empty(value: Any) -> None:
    """Take all fields away from whatever is no object, or a list, and has some."""
    if type(value) is dict:
        value.clear()
    elif type(value) is list:
        for item in value:
            _empty(item)
