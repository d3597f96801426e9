"""Merges an applied configuration into an object, and removes fields from one.

Results are new where they differ and share the rest; arguments are not changed.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

from polyver.kube.objects.apply._fields import SELF, Fields, member
from polyver.kube.objects.apply._types import DEDUCED, ApplySchema, element_of, form_of

__all__ = ["DEDUCED", "merge", "named", "remove"]

_NOTHING: Final = object()


def merge(live: Any, config: Any, schema: ApplySchema) -> Any:
    """Merge a configuration into an object: maps and associative lists merge, others replace.

    >>> merge({"a": 1, "b": {"c": 2}}, {"b": {"d": 3}}, DEDUCED)
    {'a': 1, 'b': {'c': 2, 'd': 3}}
    """
    if live is config or live is _NOTHING:
        return config
    form = form_of(config, schema) or form_of(live, schema)
    if form == "map" and not schema.atomic and (live or config):
        return _merge_maps(_as(live, dict), _as(config, dict), schema)
    if form == "list" and schema.associative and (live or config):
        return _merge_lists(_as(live, list), _as(config, list), schema)
    return config


def _as(value: Any, kind: type[Any]) -> Any:
    return value if isinstance(value, kind) else kind()


def _merge_maps(
    live: dict[str, Any], config: dict[str, Any], schema: ApplySchema
) -> dict[str, Any]:
    merged = dict(live)
    for key, value in config.items():
        merged[key] = merge(live.get(key, _NOTHING), value, schema.within(key))
    return merged


def _merge_lists(live: list[Any], config: list[Any], schema: ApplySchema) -> list[Any]:
    mine = {element_of(item, schema): item for item in config}
    names = [element_of(item, schema) for item in live]
    theirs: dict[str, Any] = {}
    for name, item in zip(names, live, strict=True):
        # Items with a duplicate key are not merged: their previous owner did not distinguish them.
        theirs[name] = None if name in theirs else item
    items = []
    for index, name in _order(names, list(mine)):
        if name not in mine:
            items.append(live[index])
        elif schema.items is not None:
            items.append(merge(theirs.get(name, _NOTHING), mine[name], schema.items))
    return items


def _order(live: list[str], config: list[str]) -> Iterator[tuple[int, str]]:
    """Yield the items of a merged list: the configuration's in its order, others in place.

    Each has its index in the live list, or -1 if it comes from the configuration. An item of both
    lists has the position of the configuration; live items before the next such item come first.
    """
    ours, known, done = set(config), set(live), set[str]()
    shared = [name for name in reversed(config) if name in known]
    left = right = 0
    while left < len(live) or right < len(config):
        name = live[left] if left < len(live) else None
        if name is not None and name not in ours:
            yield left, name
            left += 1
            continue
        if right == len(config):
            left += 1
            continue
        wanted = config[right]
        if name is not None and name != wanted and shared and shared[-1] != name:
            left += 1  # it is placed where the configuration has it
            continue
        yield -1, wanted
        left += name == wanted or name in done
        right += 1
        done.add(wanted)
        if shared and shared[-1] == wanted:
            shared.pop()


def remove(value: Any, fields: Fields, schema: ApplySchema) -> Any:
    """Return a value without the fields of a set; a value that becomes empty becomes null.

    >>> remove({"a": 1, "b": {"c": 2}}, {"f:a": {}, "f:b": {"f:c": {}}}, DEDUCED)
    {'b': None}
    """
    form = form_of(value, schema)
    if form == "scalar":
        return value
    if form == "map" and value and not schema.atomic:
        return _remove_keys(value, fields, schema) or None
    if form == "list" and value and schema.associative:
        return _remove_items(value, fields, schema) or None
    return None


def _remove_keys(value: dict[str, Any], fields: Fields, schema: ApplySchema) -> dict[str, Any]:
    left = {}
    for key, each in value.items():
        node = fields.get(f"f:{key}")
        if node is None:
            left[key] = each
        elif node and SELF not in node:
            left[key] = remove(each, node, schema.within(key))
    return left


def _remove_items(items: list[Any], fields: Fields, schema: ApplySchema) -> list[Any]:
    left = []
    for item in items:
        node = fields.get(element_of(item, schema))
        if node is None or schema.items is None:
            left.append(item)
        elif node and SELF not in node:
            left.append(remove(item, node, schema.items))
    return left


def named(fields: Fields, schema: ApplySchema | None) -> Fields:
    """Return a set that also has each declared field with a member below it."""
    found: Fields = {}
    for element, node in fields.items():
        if not node:
            found[element] = node
            continue
        key = element[2:]
        by_name = element[0] == "f" and schema is not None and key in schema.fields
        below = named(node, _inner(element, schema))
        found[element] = member(below) if by_name else below
    return found


def _inner(element: str, schema: ApplySchema | None) -> ApplySchema | None:
    if schema is None:
        return None
    if element[0] == "f" and schema.mapping:
        return schema.fields.get(element[2:]) or schema.values
    return schema.items if element[0] == "k" else None
