"""Operations on objects by their ApplySchema: owned fields, differences, merging and removal.

Owned fields and differences are returned as sets of fields. No function changes its arguments: a
returned object is new where it differs, and shares all other values with the argument.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final, NamedTuple, TypeAlias

from polyver.core.plain import Object
from polyver.kube.objects.apply._fields import LEAF, SELF, Fields, in_order, member
from polyver.kube.objects.apply._types import (
    DEDUCED,
    ApplySchema,
    Mistyped,
    element_of,
    form_of,
    type_of,
)
from polyver.kube.objects.type_shapes import Shape

__all__ = [
    "DEDUCED",
    "Comparison",
    "compare",
    "fields_of",
    "merge",
    "named",
    "owned",
    "remove",
    "same",
]


class Comparison(NamedTuple):
    """The differences between two objects: the removed, the modified and the added fields.

    No field is in more than one of these sets.
    """

    removed: Fields
    modified: Fields
    added: Fields


_Nodes: TypeAlias = "tuple[Fields | None, Fields | None, Fields | None]"
_EQUAL: Final[_Nodes] = (None, None, None)
_MODIFIED: Final[_Nodes] = (None, LEAF, None)
_MISSING: Final = object()


def fields_of(value: Object, shape: Shape) -> Fields:
    """Return the fields that a manager owns after it has applied this object.

    If a field that the shape declares contains other fields, the manager owns these fields, but not
    the field itself. The manager owns each key of a map, each item of an associative list, and the
    fields inside them.

    >>> fields_of({"spec": {"color": "red"}}, Shape("object", preserves=True))
    {'f:spec': {'.': {}, 'f:color': {}}}
    """
    return owned(value, type_of(shape))


def owned(value: Object, schema: ApplySchema) -> Fields:
    """Return the owned fields of an object or map, like `fields_of`, by its ApplySchema."""
    found: Fields = {}
    for key in sorted(value):
        each = value[key]
        node = _owned(each, schema.within(key))
        if each is None or each == {} or key not in schema.fields:
            found[f"f:{key}"] = member(node)
        elif node is not None:
            found[f"f:{key}"] = node
    return found


def _owned(value: Any, schema: ApplySchema) -> Fields | None:
    """Return the owned fields below a value.

    LEAF means that the value is owned as a whole. None means that there are none.
    """
    form = form_of(value, schema) or _form_of_null(schema)
    if form == "map" and not schema.atomic:
        return owned(value or {}, schema) or None
    if form == "list" and schema.associative:
        within = _items_type(schema)
        found = {
            element: member(_owned(twins[0], within)) if len(twins) == 1 else LEAF
            for element, twins in _by_element(value or [], schema).items()
        }
        return in_order(found) or None
    return LEAF


def _form_of_null(schema: ApplySchema) -> str:
    return "map" if schema.mapping else "scalar" if schema.scalar else "list"


def _items_type(schema: ApplySchema) -> ApplySchema:
    if schema.items is None:
        raise Mistyped("a list without a schema for its items")
    return schema.items


def _by_element(items: list[Any], schema: ApplySchema) -> dict[str, list[Any]]:
    found: dict[str, list[Any]] = {}
    for item in items:
        found.setdefault(element_of(item, schema), []).append(item)
    return found


def compare(old: Object, new: Object, schema: ApplySchema) -> Comparison:
    """Return the fields that differ between two objects.

    >>> sets = compare({"a": 1, "b": 2}, {"b": 3, "c": {"d": 4}}, type_of(Shape(preserves=True)))
    >>> sets.removed, sets.modified, sets.added
    ({'f:a': {}}, {'f:b': {}}, {'f:c': {'.': {}, 'f:d': {}}})
    """
    removed, modified, added = _compare_maps(old, new, schema)
    return Comparison(removed or {}, modified or {}, added or {})


def _compare(old: Any, new: Any, schema: ApplySchema) -> _Nodes:
    if old is new:
        return _EQUAL
    was, became = form_of(old, schema), form_of(new, schema)
    form = was or became
    if was and became and was != became:
        return _compare_forms(old, new, was, became, schema)
    if form == "map" and not schema.atomic and (old or new):
        return _compare_maps(old or {}, new or {}, schema)
    if form == "list" and schema.associative and (old or new):
        return _compare_lists(old or [], new or [], schema)
    return _EQUAL if same(old, new) else _MODIFIED


def _compare_forms(old: Any, new: Any, was: str, became: str, schema: ApplySchema) -> _Nodes:
    """Compare values of the different forms `was` and `became`, such as `map` and `list`.

    All fields of the old value count as removed, and all fields of the new value as added.
    """
    removed = _below(old, was, schema)
    added = _below(new, became, schema)
    modified = LEAF if removed is None or added is None else None
    return removed, modified, added


def _below(value: Any, form: str, schema: ApplySchema) -> Fields | None:
    """Return all fields below a value of the form `form`; None if the value is owned as a whole."""
    if not value or not (not schema.atomic if form == "map" else schema.associative):
        return None
    if form == "scalar":
        return None
    return {element: node for element, node in _whole(value, schema).items() if element != SELF}


def _compare_maps(old: Object, new: Object, schema: ApplySchema) -> _Nodes:
    removed: Fields = {}
    modified: Fields = {}
    added: Fields = {}
    for key, was in old.items():
        became = new.get(key, _MISSING)
        if became is was or (type(was) is str and was == became):
            continue
        element = f"f:{key}"
        if became is _MISSING:
            removed[element] = _whole(was, schema.within(key))
        else:
            nodes = _compare(was, became, schema.within(key))
            if nodes is not _EQUAL:
                _note(element, nodes, removed, modified, added)
    for key, became in new.items():
        if key not in old:
            added[f"f:{key}"] = _whole(became, schema.within(key))
    return _nodes(removed, modified, added)


def _compare_lists(old: list[Any], new: list[Any], schema: ApplySchema) -> _Nodes:
    were, are = _by_element(old, schema), _by_element(new, schema)
    within = _items_type(schema)
    removed: Fields = {}
    modified: Fields = {}
    added: Fields = {}
    for element in {**were, **are}:
        was, became = were.get(element, []), are.get(element, [])
        if len(was) == 1 and len(became) == 1:
            nodes = _compare(was[0], became[0], within)
        elif len(was) > 1 and len(became) > 1:
            # Items with the same key have one entry in the set of fields.
            nodes = _EQUAL if same(was, became) else _MODIFIED
        else:
            gone = LEAF if len(was) > 1 else _whole(was[0], within) if was else None
            come = LEAF if len(became) > 1 else _whole(became[0], within) if became else None
            nodes = gone, None, come
        _note(element, nodes, removed, modified, added)
    return _nodes(removed, modified, added)


def _note(element: str, nodes: _Nodes, *sets: Fields) -> None:
    for node, fields in zip(nodes, sets, strict=True):
        if node is not None:
            fields[element] = node


def _nodes(*sets: Fields) -> _Nodes:
    removed, modified, added = (in_order(each) if each else None for each in sets)
    if removed is None and modified is None and added is None:
        return _EQUAL
    return removed, modified, added


def _whole(value: Any, schema: ApplySchema) -> Fields:
    """Return the node for a value that was added or removed, with all fields below it."""
    if type(value) is dict and value and schema.mapping and not schema.atomic:
        fields: Fields = {SELF: LEAF}
        for key in sorted(value):
            each, within = value[key], schema.within(key)
            is_leaf = type(each) is str and within.scalar  # the most common case
            fields[f"f:{key}"] = LEAF if is_leaf else _whole(each, within)
        return fields
    if type(value) is list and value and schema.associative:
        items = _items_type(schema)
        found = {
            element: _whole(twins[0], items) if len(twins) == 1 else LEAF
            for element, twins in _by_element(value, schema).items()
        }
        return {SELF: LEAF, **in_order(found)}
    form_of(value, schema)
    return LEAF


def same(one: Any, other: Any) -> bool:
    """Report whether values are equal as JSON: 1 equals 1.0, and true is not 1."""
    if isinstance(one, bool) or isinstance(other, bool):
        return one is other
    if isinstance(one, dict) and isinstance(other, dict):
        return one.keys() == other.keys() and all(same(one[key], other[key]) for key in one)
    if isinstance(one, list) and isinstance(other, list):
        return len(one) == len(other) and all(map(same, one, other))
    return bool(one == other)


_NOTHING: Final = object()


def merge(live: Any, config: Any, schema: ApplySchema) -> Any:
    """Merge a configuration into an object.

    Maps and associative lists are merged; other values of the configuration replace the old ones.

    >>> merge({"a": 1, "b": {"c": 2}}, {"b": {"d": 3}}, DEDUCED)
    {'a': 1, 'b': {'c': 2, 'd': 3}}
    """
    if live is config or live is _NOTHING:
        return config
    form = form_of(config, schema) or form_of(live, schema)
    if form == "map" and not schema.atomic and (live or config):
        before = live if isinstance(live, dict) else {}
        merged = dict(before)
        for key, value in (config if isinstance(config, dict) else {}).items():
            merged[key] = merge(before.get(key, _NOTHING), value, schema.within(key))
        return merged
    if form == "list" and schema.associative and (live or config):
        theirs = live if isinstance(live, list) else []
        return _merge_lists(theirs, config if isinstance(config, list) else [], schema)
    return config


def _merge_lists(live: list[Any], config: list[Any], schema: ApplySchema) -> list[Any]:
    mine = {element_of(item, schema): item for item in config}
    names = [element_of(item, schema) for item in live]
    theirs: dict[str, Any] = {}
    for name, item in zip(names, live, strict=True):
        # Several live items with the same key have one entry in managedFields. Do not merge the
        # configuration into one of these items: the item of the configuration replaces all of them.
        theirs[name] = None if name in theirs else item
    items = []
    for index, name in _order(names, list(mine)):
        if name not in mine:
            items.append(live[index])
        elif schema.items is not None:
            items.append(merge(theirs.get(name, _NOTHING), mine[name], schema.items))
    return items


def _order(live: list[str], config: list[str]) -> Iterator[tuple[int, str]]:
    """Yield the items of a merged list in order, each as its index in the live list and its name.

    The index is -1 for an item from the configuration. These items keep their order. An item that
    only the live list has stays before the next item that both lists have.
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
            left += 1  # this item comes later, where the configuration has it
            continue
        yield -1, wanted
        left += name == wanted or name in done
        right += 1
        done.add(wanted)
        if shared and shared[-1] == wanted:
            shared.pop()


def remove(value: Any, fields: Fields, schema: ApplySchema) -> Any:
    """Remove the fields of a set from a value; a map or list that becomes empty becomes null.

    >>> remove({"a": 1, "b": {"c": 2}}, {"f:a": {}, "f:b": {"f:c": {}}}, DEDUCED)
    {'b': None}
    """
    form = form_of(value, schema)
    if form == "scalar":
        return value
    if form == "map" and value and not schema.atomic:
        left = {}
        for key, each in value.items():
            node = fields.get(f"f:{key}")
            if node is None:
                left[key] = each
            elif node and SELF not in node:
                left[key] = remove(each, node, schema.within(key))
        return left or None
    if form == "list" and value and schema.associative:
        items = []
        for item in value:
            node = fields.get(element_of(item, schema))
            if node is None or schema.items is None:
                items.append(item)
            elif node and SELF not in node:
                items.append(remove(item, node, schema.items))
        return items or None
    return None


def named(fields: Fields, schema: ApplySchema | None) -> Fields:
    """Return a copy of a set, with each declared field added that has a member below it."""
    found: Fields = {}
    for element, node in fields.items():
        if not node:
            found[element] = node
            continue
        key = element[2:]
        by_name = element[0] == "f" and schema is not None and key in schema.fields
        inner = None
        if schema is not None and element[0] == "f" and schema.mapping:
            inner = schema.fields.get(key) or schema.values
        elif schema is not None and element[0] == "k":
            inner = schema.items
        below = named(node, inner)
        found[element] = member(below) if by_name else below
    return found
