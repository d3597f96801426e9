"""Sets of fields in the wire format of managedFields, and set operations on them.

A set is a nested mapping: `{"f:spec": {".": {}, "f:color": {}}}` has the members `.spec` and
`.spec.color`. The field of a node is a member of the set if the node is empty or has the key `.`.
Each node is a member or has a member below it, so equal sets are equal mappings. Sets share their
nodes, so never change a set.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from functools import lru_cache
from typing import Any, TypeAlias

import msgspec

from polyver.core import PolyverError
from polyver.kube.objects.codec import encode_sorted
from polyver.languages.values.strings import float_text

__all__ = [
    "LEAF",
    "SELF",
    "Fields",
    "InvalidFields",
    "common",
    "difference",
    "element_text",
    "has",
    "in_order",
    "json_text",
    "leaves",
    "member",
    "path_text",
    "paths",
    "read_fields",
    "union",
    "without",
]

Fields: TypeAlias = "dict[str, Fields]"
Path: TypeAlias = tuple[str, ...]

SELF = "."
LEAF: Fields = {}
"""The node of a field that is a member and has no members below it."""


class InvalidFields(PolyverError):
    """Raised if a client has sent a value that is not a valid set of fields."""


def union(one: Fields, other: Fields) -> Fields:
    """Return the set of all members of the two sets.

    >>> union({"f:a": {}}, {"f:a": {"f:b": {}}})
    {'f:a': {'.': {}, 'f:b': {}}}
    """
    if not other or one is other:
        return one
    return _joined(one, other) if one else other


def difference(one: Fields, other: Fields) -> Fields:
    """Return the members of `one` that are not members of `other`.

    A member of `one` stays even if a field above it is a member of `other`.

    >>> difference({"f:a": {".": {}, "f:b": {}}}, {"f:a": {}})
    {'f:a': {'f:b': {}}}
    """
    return _children_less(one, other) if one and other else one


def without(one: Fields, other: Fields) -> Fields:
    """Return `one` without the members of `other`, and without all members below them.

    >>> without({"f:a": {".": {}, "f:b": {}}, "f:c": {}}, {"f:a": {}})
    {'f:c': {}}
    """
    left: Fields = {}
    for element, node in one.items():
        apart = other.get(element)
        if apart is None:
            left[element] = node
        elif not _is_member(apart):
            below = without({key: each for key, each in node.items() if key != SELF}, apart)
            if _is_member(node):
                left[element] = member(below)
            elif below:
                left[element] = below
    return left


def common(one: Fields, other: Fields) -> Fields:
    """Return the set of the members that are in both sets."""
    shared: Fields = {}
    for element, node in one.items():
        twin = other.get(element)
        if twin is None or element == SELF:
            continue
        below = common(node, twin)
        if _is_member(node) and _is_member(twin):
            shared[element] = member(below)
        elif below:
            shared[element] = below
    return shared


def leaves(fields: Fields) -> Fields:
    """Return the members that have no other member below them, as a set.

    >>> leaves({"f:a": {".": {}, "f:b": {}}})
    {'f:a': {'f:b': {}}}
    """
    return {key: leaves(node) for key, node in fields.items() if key != SELF}


def has(fields: Fields, path: Path) -> bool:
    """Report whether the field at a path is a member of the set."""
    node: Fields | None = fields
    for element in path:
        node = node.get(element) if node else None
        if node is None:
            return False
    return bool(path) and node is not None and _is_member(node)


def paths(fields: Fields, prefix: Path = ()) -> Iterator[Path]:
    """Yield the paths of all members in kube-apiserver's order.

    The members of one level come before the members below that level.
    """
    fields = in_order(fields)  # stored sets may have another order
    for element, node in fields.items():
        if element != SELF and _is_member(node):
            yield (*prefix, element)
    for element, node in fields.items():
        if node:
            yield from paths(node, (*prefix, element))


def member(node: Fields | None) -> Fields:
    """Return a copy of the node whose own field is a member; the members below it stay."""
    return {SELF: LEAF, **node} if node and SELF not in node else node or LEAF


def _is_member(node: Fields) -> bool:
    return not node or SELF in node


def _joined(one: Fields, other: Fields) -> Fields:
    joined, grown = dict(one), False
    for element, node in other.items():
        mine = joined.get(element)
        if mine is None:
            joined[element], grown = node, True
        elif mine is not node:
            joined[element] = _joined(mine, node) if mine and node else member(mine or node)
    return in_order(joined) if grown else joined


def _children_less(one: Fields, other: Fields) -> Fields:
    left: Fields = {}
    for element, node in one.items():
        if element == SELF:
            continue
        apart = other.get(element)
        if apart is None:
            left[element] = node
            continue
        below = _children_less(node, apart)
        if _is_member(node) and not _is_member(apart):
            left[element] = member(below)
        elif below:
            left[element] = below
    return left


def in_order(fields: Fields) -> Fields:
    """Sort the top level of a set in kube-apiserver's order."""
    if len(fields) < 2:
        return fields
    rank = {each: (1, each) if each[0] == "f" else _rank(each) for each in fields}
    return {each: fields[each] for each in sorted(fields, key=rank.__getitem__)}


@lru_cache(maxsize=4096)
def _rank(element: str) -> tuple[Any, ...]:
    match element[0]:
        case ".":
            return (0,)
        case "k":
            pairs = sorted(msgspec.json.decode(element[2:]).items())
            return (2, tuple((name, *_value_rank(value)) for name, value in pairs))
        case "v":
            return (3, *_value_rank(msgspec.json.decode(element[2:])))
        case _:
            return (4, int(element[2:]))


def _value_rank(value: object) -> tuple[int, Any]:
    """Return a sort key: numbers come first, then strings, then booleans, then other values."""
    match value:
        case bool():
            return (2, value)
        case int() | float():
            return (0, value)
        case str():
            return (1, value)
        case _:
            return (3, json_text(value))


def json_text(value: object) -> str:
    """Write a value as JSON in the form of Go: `<`, `>` and `&` are escaped, and 80.0 is 80."""
    if isinstance(value, float):
        return float_text(value)
    if type(value) is str and len(value) < MOST_REMEMBERED:
        return _string_text(value)
    return _escaped(value)


def _escaped(value: object) -> str:
    return encode_sorted(value).decode().translate(_ESCAPES)


@lru_cache(maxsize=4096)
def _string_text(value: str) -> str:
    """Write a string as JSON. Results are cached, because many list items have the same names."""
    return _escaped(value)


MOST_REMEMBERED = 80
_mapping = msgspec.json.Decoder(dict[str, Any])
_ESCAPES = {ord(each): f"\\u{ord(each):04x}" for each in "<>&\u2028\u2029"}


def path_text(path: Path) -> str:
    """Write a path as error messages show it.

    >>> path_text(("f:spec", "f:ports", 'k:{"name":"http"}', "f:port"))
    '.spec.ports[name="http"].port'
    """
    return "".join(map(element_text, path))


def element_text(element: str) -> str:
    """Write one element of a path as error messages show it."""
    rest = element[2:]
    match element[0]:
        case "f":
            return f".{rest}"
        case "k":
            values: dict[str, object] = msgspec.json.decode(rest)
            return f"[{','.join(f'{name}={_shown(values[name])}' for name in sorted(values))}]"
        case "v":
            return f"[={_shown(msgspec.json.decode(rest))}]"
        case _:
            return f"[{rest}]"


def _shown(value: object) -> str:
    """Write a value as JSON, but escape control characters as Go does."""
    text = msgspec.json.encode(value).decode()
    return _CONTROL.sub(lambda found: f"\\x{found[1]}" if found[1] else found[0], text)


_CONTROL = re.compile(r"\\\\|\\u00([01][0-9a-f])")


def read_fields(given: object) -> Fields:
    """Convert a set from a client to its canonical form; raise `InvalidFields` if it is invalid.

    Path elements of unknown types are dropped.
    """
    return _read(given)[0]


def _read(given: object) -> tuple[Fields, bool]:
    """Convert the nodes below the node `given`.

    Also return True if the field of `given` itself is a member.
    """
    if not isinstance(given, Mapping):
        raise InvalidFields(f"a node of a field set is not a mapping: {given!r}")
    read: Fields = {}
    belongs = False
    for element, node in given.items():
        if element == SELF:
            belongs = True
            continue
        proper = _read_element(element)
        if proper:
            below, is_member = _read(node)
            read[proper] = member(below) if is_member else below
    return in_order(read), belongs or not read


def _read_element(element: str) -> str:
    if len(element) < 2 or element[1] != ":":
        raise InvalidFields(f"a path element of a field set has no type: {element!r}")
    try:
        return _proper(element[0], element[2:])
    except (msgspec.DecodeError, ValueError) as error:
        raise InvalidFields(f"a path element of a field set cannot be read: {element!r}") from error


def _proper(sort: str, rest: str) -> str:
    match sort:
        case "f":
            return f"f:{rest}"
        case "k":
            values = _mapping.decode(rest)
            pairs = [f"{json_text(key)}:{json_text(values[key])}" for key in sorted(values)]
            return f"k:{{{','.join(pairs)}}}"
        case "v":
            return f"v:{json_text(msgspec.json.decode(rest))}"
        case "i":
            return f"i:{int(rest)}"
        case _:
            return ""
