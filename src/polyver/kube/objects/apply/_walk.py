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


def owned(value: Object, place: ApplySchema) -> Fields:
    """Return the owned fields like `fields_of`, for a schema that is already read."""
    return _owned_map(value, place)


def _owned(value: Any, place: ApplySchema) -> Fields | None:
    """Return the owned fields of a value; None if there are none, so that its parent may own it."""
    form = form_of(value, place) or _form_of_null(place)
    if form == "map" and not place.atomic:
        return _owned_map(value or {}, place) or None
    if form == "list" and place.associative:
        return _owned_list(value or [], place) or None
    return LEAF


def _form_of_null(place: ApplySchema) -> str:
    return "map" if place.mapping else "scalar" if place.scalar else "list"


def _owned_map(value: Object, place: ApplySchema) -> Fields:
    found: Fields = {}
    for key in sorted(value):
        each = value[key]
        node = _owned(each, place.within(key))
        if each is None or each == {} or key not in place.fields:
            found[f"f:{key}"] = member(node)
        elif node is not None:
            found[f"f:{key}"] = node
    return found


def _owned_list(items: list[Any], place: ApplySchema) -> Fields:
    within = _items_type(place)
    found: Fields = {}
    for element, twins in _by_element(items, place).items():
        found[element] = member(_owned(twins[0], within)) if len(twins) == 1 else LEAF
    return in_order(found)


def _items_type(place: ApplySchema) -> ApplySchema:
    if place.items is None:
        raise Mistyped("a list that may hold nothing")
    return place.items


def _by_element(items: list[Any], place: ApplySchema) -> dict[str, list[Any]]:
    found: dict[str, list[Any]] = {}
    for item in items:
        found.setdefault(element_of(item, place), []).append(item)
    return found


def compare(old: Object, new: Object, place: ApplySchema) -> Comparison:
    """Return the difference between two objects.

    >>> sets = compare({"a": 1, "b": 2}, {"b": 3, "c": {"d": 4}}, type_of(Shape(preserves=True)))
    >>> sets.removed, sets.modified, sets.added
    ({'f:a': {}}, {'f:b': {}}, {'f:c': {'.': {}, 'f:d': {}}})
    """
    removed, modified, added = _compare_maps(old, new, place)
    return Comparison(removed or {}, modified or {}, added or {})


def _compare(old: Any, new: Any, place: ApplySchema) -> _Nodes:
    if old is new:
        return _EQUAL
    was, became = form_of(old, place), form_of(new, place)
    form = was or became
    if was and became and was != became:
        return _compare_forms(old, new, was, became, place)
    if form == "map" and not place.atomic and (old or new):
        return _compare_maps(old or {}, new or {}, place)
    if form == "list" and place.associative and (old or new):
        return _compare_lists(old or [], new or [], place)
    return _EQUAL if same(old, new) else _MODIFIED


def _compare_forms(old: Any, new: Any, was: str, became: str, place: ApplySchema) -> _Nodes:
    """Compare values of different forms: fields below the old one are removed, the others added."""
    removed = _below(old, was, place)
    added = _below(new, became, place)
    modified = LEAF if removed is None or added is None else None
    return removed, modified, added


def _below(value: Any, form: str, place: ApplySchema) -> Fields | None:
    """Return all fields below a value; None if it is a leaf."""
    if not value or not (not place.atomic if form == "map" else place.associative):
        return None
    if form == "scalar":
        return None
    return {element: node for element, node in _whole(value, place).items() if element != SELF}


def _compare_maps(old: Object, new: Object, place: ApplySchema) -> _Nodes:
    removed: Fields = {}
    modified: Fields = {}
    added: Fields = {}
    for key, was in old.items():
        became = new.get(key, _MISSING)
        if became is was or (type(was) is str and was == became):
            continue
        element = f"f:{key}"
        if became is _MISSING:
            removed[element] = _whole(was, place.within(key))
        else:
            nodes = _compare(was, became, place.within(key))
            if nodes is not _EQUAL:
                _note(element, nodes, removed, modified, added)
    for key, became in new.items():
        if key not in old:
            added[f"f:{key}"] = _whole(became, place.within(key))
    return _nodes(removed, modified, added)


def _compare_lists(old: list[Any], new: list[Any], place: ApplySchema) -> _Nodes:
    were, are = _by_element(old, place), _by_element(new, place)
    within = _items_type(place)
    removed: Fields = {}
    modified: Fields = {}
    added: Fields = {}
    for element in {**were, **are}:
        nodes = _compare_items(were.get(element, []), are.get(element, []), within)
        _note(element, nodes, removed, modified, added)
    return _nodes(removed, modified, added)


def _compare_items(old: list[Any], new: list[Any], place: ApplySchema) -> _Nodes:
    """Compare items with one key; items with a duplicate key are owned as one."""
    if len(old) == 1 and len(new) == 1:
        return _compare(old[0], new[0], place)
    if len(old) > 1 and len(new) > 1:
        return _EQUAL if same(old, new) else _MODIFIED
    removed = LEAF if len(old) > 1 else _whole(old[0], place) if old else None
    added = LEAF if len(new) > 1 else _whole(new[0], place) if new else None
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


def _whole(value: Any, place: ApplySchema) -> Fields:
    """Return a value's node with all fields below it, as for one that is added or removed."""
    if type(value) is dict and value and place.mapping and not place.atomic:
        return _whole_map(value, place)
    if type(value) is list and value and place.associative:
        within = _items_type(place)
        found = {
            element: _whole(twins[0], within) if len(twins) == 1 else LEAF
            for element, twins in _by_element(value, place).items()
        }
        return {SELF: LEAF, **in_order(found)}
    form_of(value, place)
    return LEAF


def _whole_map(value: Object, place: ApplySchema) -> Fields:
    named, values = place.fields, place.values
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
