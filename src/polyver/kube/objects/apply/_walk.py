"""The fields of objects, and the differences between two objects, as sets of fields."""

from __future__ import annotations

from typing import Any, Final, NamedTuple, TypeAlias

from polyver.core.plain import Object
from polyver.kube.objects.apply._fields import LEAF, SELF, Fields, in_order, member
from polyver.kube.objects.apply._types import ApplySchema, Mistyped, element_of, form_of, type_of
from polyver.kube.objects.type_shapes import Shape

__all__ = ["Comparison", "compare", "fields_of", "owned", "same"]


class Comparison(NamedTuple):
    """The difference between two objects; no field is in more than one of the sets."""

    removed: Fields
    modified: Fields
    added: Fields


_Nodes: TypeAlias = "tuple[Fields | None, Fields | None, Fields | None]"
_EQUAL: Final[_Nodes] = (None, None, None)
_MODIFIED: Final[_Nodes] = (None, LEAF, None)
_MISSING: Final = object()


def fields_of(value: Object, shape: Shape) -> Fields:
    """Return the fields that a manager owns after applying this object.

    Declared fields are owned through the values in them; keys of maps and items of lists are also
    owned themselves.

    >>> fields_of({"spec": {"color": "red"}}, Shape("object", preserves=True))
    {'f:spec': {'.': {}, 'f:color': {}}}
    """
    return owned(value, type_of(shape))


def owned(value: Object, schema: ApplySchema) -> Fields:
    """Return the owned fields like `fields_of`, for a schema that was made before."""
    return _owned_map(value, schema)


def _owned(value: Any, schema: ApplySchema) -> Fields | None:
    """Return the owned fields of a value; None if there are none: then its parent is owned."""
    form = form_of(value, schema) or _form_of_null(schema)
    if form == "map" and not schema.atomic:
        return _owned_map(value or {}, schema) or None
    if form == "list" and schema.associative:
        return _owned_list(value or [], schema) or None
    return LEAF


def _form_of_null(schema: ApplySchema) -> str:
    return "map" if schema.mapping else "scalar" if schema.scalar else "list"


def _owned_map(value: Object, schema: ApplySchema) -> Fields:
    found: Fields = {}
    for key in sorted(value):
        each = value[key]
        node = _owned(each, schema.within(key))
        if each is None or each == {} or key not in schema.fields:
            found[f"f:{key}"] = member(node)
        elif node is not None:
            found[f"f:{key}"] = node
    return found


def _owned_list(items: list[Any], schema: ApplySchema) -> Fields:
    within = _items_type(schema)
    found: Fields = {}
    for element, twins in _by_element(items, schema).items():
        found[element] = member(_owned(twins[0], within)) if len(twins) == 1 else LEAF
    return in_order(found)


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
    """Return the difference between two objects.

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
    """Compare values of different types: fields below the old one are removed, new ones added."""
    removed = _below(old, was, schema)
    added = _below(new, became, schema)
    modified = LEAF if removed is None or added is None else None
    return removed, modified, added


def _below(value: Any, form: str, schema: ApplySchema) -> Fields | None:
    """Return all fields below a value; None if it is a leaf."""
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
        nodes = _compare_items(were.get(element, []), are.get(element, []), within)
        _note(element, nodes, removed, modified, added)
    return _nodes(removed, modified, added)


def _compare_items(old: list[Any], new: list[Any], schema: ApplySchema) -> _Nodes:
    """Compare items with one key; items with a duplicate key are owned as one."""
    if len(old) == 1 and len(new) == 1:
        return _compare(old[0], new[0], schema)
    if len(old) > 1 and len(new) > 1:
        return _EQUAL if same(old, new) else _MODIFIED
    removed = LEAF if len(old) > 1 else _whole(old[0], schema) if old else None
    added = LEAF if len(new) > 1 else _whole(new[0], schema) if new else None
    return removed, None, added


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
    """Return the node of a value with all fields below it, for a value that is added or removed."""
    if type(value) is dict and value and schema.mapping and not schema.atomic:
        return _whole_map(value, schema)
    if type(value) is list and value and schema.associative:
        within = _items_type(schema)
        found = {
            element: _whole(twins[0], within) if len(twins) == 1 else LEAF
            for element, twins in _by_element(value, schema).items()
        }
        return {SELF: LEAF, **in_order(found)}
    form_of(value, schema)
    return LEAF


def _whole_map(value: Object, schema: ApplySchema) -> Fields:
    named, values = schema.fields, schema.values
    found: Fields = {SELF: LEAF}
    for key in sorted(value):
        within = named.get(key) or values
        if within is None:
            raise Mistyped(f".{key}: field not declared in schema")
        each = value[key]
        is_leaf = type(each) is str and within.scalar  # the usual case
        found[f"f:{key}"] = LEAF if is_leaf else _whole(each, within)
    return found


def same(one: Any, other: Any) -> bool:
    """Report whether values are equal as JSON: 1 equals 1.0, and true is not 1."""
    if isinstance(one, bool) or isinstance(other, bool):
        return one is other
    if isinstance(one, dict) and isinstance(other, dict):
        return one.keys() == other.keys() and all(same(one[key], other[key]) for key in one)
    if isinstance(one, list) and isinstance(other, list):
        return len(one) == len(other) and all(map(same, one, other))
    return bool(one == other)
