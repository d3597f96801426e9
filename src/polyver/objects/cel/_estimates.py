"""What an expression may cost at worst, before it ever runs, from how large values may be.

A rule that could cost too much is refused when its definition is written.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from polyver.objects.cel._nodes import (
    Call,
    Fold,
    Ident,
    ListNode,
    Literal,
    MapNode,
    Node,
    Select,
)
from polyver.objects.cel._places import Declared
from polyver.objects.cel._types import Type

__all__ = ["ENDLESS", "Bounds", "estimate"]

ENDLESS: Final = 2**64 - 1
_TEXT, _PATTERN = 0.1, 0.25


@dataclass(frozen=True, slots=True)
class Bounds:
    """The least and the most that something costs, or that is in something."""

    least: int
    most: int

    def plus(self, other: Bounds) -> Bounds:
        return Bounds(_cut(self.least + other.least), _cut(self.most + other.most))

    def times(self, other: Bounds) -> Bounds:
        return Bounds(_cut(self.least * other.least), _cut(self.most * other.most))

    def by(self, factor: float) -> Bounds:
        return Bounds(_scaled(self.least, factor), _scaled(self.most, factor))

    def union(self, other: Bounds) -> Bounds:
        return Bounds(min(self.least, other.least), max(self.most, other.most))


def _cut(number: int) -> int:
    return min(number, ENDLESS)


def _scaled(number: int, factor: float) -> int:
    return _cut(math.ceil(float(number) * factor))


def _fixed(number: int) -> Bounds:
    return Bounds(number, number)


_UNKNOWN: Final = Bounds(0, ENDLESS)
_ONE, _NOTHING = _fixed(1), _fixed(0)


@dataclass(frozen=True, slots=True)
class _Entries:
    """How large keys and values are in something that was made by the expression."""

    kind: str
    key: Bounds
    value: Bounds

    def union(self, other: _Entries | None) -> _Entries | None:
        if other is None:
            return None
        return _Entries(self.kind, self.key.union(other.key), self.value.union(other.value))


@dataclass(frozen=True, slots=True)
class _Local:
    path: tuple[str, ...] = ()
    size: Bounds | None = None
    entries: _Entries | None = None


@dataclass(frozen=True, slots=True)
class _Called:
    cost: Bounds
    size: Bounds | None = None


def estimate(tree: Node, root: Declared) -> Bounds:
    """What an expression costs about a value of a declared place."""
    return _Estimator(root).cost(tree)


class _Estimator:
    def __init__(self, root: Declared) -> None:
        self._root = root
        self._paths: dict[int, tuple[str, ...]] = {}
        self._sizes: dict[int, Bounds] = {}
        self._entries: dict[int, _Entries] = {}
        self._locals: dict[str, list[_Local]] = {}

    def cost(self, node: Node) -> Bounds:
        match node:
            case Ident():
                local = self._local(node.name)
                self._paths[id(node)] = local.path if local else (node.name,)
                return _ONE
            case Select():
                return self._select(node)
            case Call():
                return self._call(node)
            case ListNode():
                return self._list(node)
            case MapNode():
                return self._map(node)
            case Fold():
                return self._bind(node) if _is_bind(node) else self._fold(node)
        return _NOTHING

    # Sizes

    def _local(self, name: str) -> _Local | None:
        known = self._locals.get(name)
        return known[-1] if known else None

    def _path(self, node: Node) -> tuple[str, ...]:
        if isinstance(node, Ident):
            local = self._local(node.name)
            if local is not None:
                return local.path
        return self._paths.get(id(node), ())

    def _size(self, node: Node) -> Bounds | None:
        known = self._sizes.get(id(node)) or _written_size(node)
        if known is not None:
            return known
        found = self._declared_size(self._path(node))
        if found is not None:
            self._sizes[id(node)] = found
            return found
        if node.type is not None and _is_scalar(node.type):
            return _ONE
        local = self._local(node.name) if isinstance(node, Ident) else None
        return local.size if local else None

    def _node_size(self, node: Node) -> Bounds:
        """The size of an argument of a function; what is carried through a loop has no place."""
        found = self._size(node)
        return _UNKNOWN if found is None else found

    def _declared_size(self, path: tuple[str, ...]) -> Bounds | None:
        if not path:
            return None
        place: Declared | None = self._root
        for name in path[1:]:
            if place is None:
                return None
            if name in ("@items", "@values"):
                place = place.inside
            elif name == "@keys":
                # The texts that are keys have no bound of their own, and count as nothing.
                return _NOTHING if place.type.kind == "map" else None
            else:
                place = place.fields.get(name)
        return None if place is None else Bounds(0, place.most)

    def _made_of(self, node: Node) -> _Entries | None:
        known = self._entries.get(id(node))
        if known is None and isinstance(node, Ident):
            local = self._local(node.name)
            return local.entries if local else None
        return known

    # Parts

    def _select(self, node: Select) -> Bounds:
        cost = self.cost(node.operand)
        if node.test:
            return cost
        kind = node.operand.type.kind if node.operand.type else ""
        if kind in ("map", "struct", "param"):
            cost = cost.plus(_ONE)
        self._paths[id(node)] = (*self._path(node.operand), node.field)
        return cost

    def _list(self, node: ListNode) -> Bounds:
        cost, size = _fixed(10), Bounds(ENDLESS if node.items else 0, 0)
        for item in node.items:
            cost = cost.plus(self.cost(item))
            size = size.union(self._node_size(item))
        self._entries[id(node)] = _Entries("list", _ONE, size)
        return cost

    def _map(self, node: MapNode) -> Bounds:
        nothing = Bounds(ENDLESS if node.entries else 0, 0)
        cost, keys, values = _fixed(30), nothing, nothing
        for entry in node.entries:
            assert isinstance(entry.key, Node)
            cost = cost.plus(self.cost(entry.key)).plus(self.cost(entry.value))
            keys = keys.union(self._node_size(entry.key))
            values = values.union(self._node_size(entry.value))
        self._entries[id(node)] = _Entries("map", keys, values)
        return cost

    def _fold(self, node: Fold) -> Bounds:
        cost = self.cost(node.over).plus(self.cost(node.init))
        self._push(node.carried, self._as_local(node.init))
        self._push_variables(node)
        each = self.cost(node.condition).plus(self.cost(node.step))
        self._locals[node.var].pop()
        if node.var2:
            self._locals[node.var2].pop()
        cost = cost.plus(self.cost(node.result))
        self._locals[node.carried].pop()
        count = self._node_size(node.over)
        if isinstance(node.init, Literal):
            self._keep(node, self._size(node.init))
        elif isinstance(node.init, ListNode | MapNode):
            self._keep(node, count)
            self._keep_entries(node, self._made_of(node.step))
        return cost.plus(count.times(each))

    def _push(self, name: str, local: _Local) -> None:
        self._locals.setdefault(name, []).append(local)

    def _as_local(self, node: Node) -> _Local:
        return _Local(self._path(node), self._size(node), self._made_of(node))

    def _push_variables(self, node: Fold) -> None:
        entries, path = self._made_of(node.over), self._path(node.over)
        kind = entries.kind if entries else node.over.type.kind if node.over.type else ""
        key = entries.key if entries else None
        value = entries.value if entries else None
        inside = _Local((*path, "@items" if kind == "list" else "@values"), value)
        if node.var2:
            self._push(node.var, _Local((*path, "@indices" if kind == "list" else "@keys"), key))
            self._push(node.var2, inside)
        elif kind == "list":
            self._push(node.var, inside)
        else:
            self._push(node.var, _Local((*path, "@keys"), key))

    def _bind(self, node: Fold) -> Bounds:
        cost = self.cost(node.over).plus(self.cost(node.init))
        self._push(node.carried, self._as_local(node.init))
        cost = cost.plus(self.cost(node.result))
        self._locals[node.carried].pop()
        self._keep(node, self._size(node.result))
        self._keep_entries(node, self._made_of(node.result))
        return cost

    def _keep(self, node: Node, size: Bounds | None) -> None:
        if size is not None:
            self._sizes[id(node)] = size

    def _keep_entries(self, node: Node, entries: _Entries | None) -> None:
        if entries is not None:
            self._entries[id(node)] = entries

    # Calls

    def _call(self, node: Call) -> Bounds:
        if node.function == "dyn":
            cost = self.cost(node.args[0])
            self._keep(node, self._size(node.args[0]))
            self._keep_entries(node, self._made_of(node.args[0]))
            return cost.plus(_ONE)
        costs = [self.cost(arg) for arg in node.args]
        if not node.overloads:
            return _NOTHING
        cost = self.cost(node.target) if node.target else _NOTHING
        called = Bounds(ENDLESS, 0)
        size: Bounds | None = None
        for overload in node.overloads:
            found = self._called(node, overload, costs)
            called = called.union(found.cost)
            if found.size is not None:
                size = found.size if size is None else size.union(found.size)
            size = self._indexed(node, overload, size)
            if size is None:
                size = self._size(node)
        self._keep(node, size)
        return cost.plus(called)

    def _indexed(self, node: Call, overload: str, size: Bounds | None) -> Bounds | None:
        """An item of something has the size and the place of its items."""
        names = {"index_list": "@items", "index_map": "@values"}
        if overload not in names:
            return size
        entries = self._made_of(node.args[0])
        self._paths[id(node)] = (*self._path(node.args[0]), names[overload])
        return entries.value if entries else None

    def _called(self, node: Call, overload: str, costs: Sequence[Bounds]) -> _Called:
        total = _NOTHING
        for each in costs:
            total = total.plus(each)
        found = self._extended(node, overload)
        if found is not None:
            return _Called(found.cost.plus(total), found.size)
        match overload:
            case "logical_and" | "logical_or":
                return _Called(Bounds(costs[0].least, costs[0].plus(costs[1]).most))
            case "conditional":
                return self._conditional(node, costs)
            case "add_string" | "add_bytes" | "add_list":
                return self._added(node, overload, total)
        found = self._standard(node, overload)
        return _Called(found.cost.plus(total), found.size)

    def _conditional(self, node: Call, costs: Sequence[Bounds]) -> _Called:
        size = self._node_size(node.args[1]).union(self._node_size(node.args[2]))
        one, other = self._made_of(node.args[1]), self._made_of(node.args[2])
        self._keep_entries(node, one.union(other) if one else None)
        return _Called(costs[0].plus(costs[1].union(costs[2])), size)

    def _added(self, node: Call, overload: str, total: Bounds) -> _Called:
        size = self._node_size(node.args[0]).plus(self._node_size(node.args[1]))
        one, other = self._made_of(node.args[0]), self._made_of(node.args[1])
        self._keep_entries(node, one.union(other) if one else None)
        cost = _ONE if overload == "add_list" else size.by(_TEXT)
        return _Called(cost.plus(total), size)

    def _standard(self, node: Call, overload: str) -> _Called:
        args, target = node.args, node.target
        match overload:
            case "string_format" if target:
                return _Called(self._node_size(target).by(_TEXT))
            case "string_to_bytes":
                size = self._node_size(args[0])
                return _Called(size.by(_TEXT), Bounds(size.least, size.most * 4 % 2**64))
            case "bytes_to_string":
                size = self._node_size(args[0])
                return _Called(size.by(_TEXT), Bounds(size.least // 4, size.most))
            case "strings_quote":
                size = self._node_size(args[0])
                return _Called(size.by(_TEXT), Bounds(size.least + 2, (size.most * 2 + 2) % 2**64))
            case "starts_with_string" | "ends_with_string":
                return _Called(self._node_size(args[0]).by(_TEXT))
            case "in_list":
                return _Called(self._node_size(args[1]).by(1))
            case "matches" | "matches_string":
                text, pattern = (target, args[0]) if target else (args[0], args[1])
                cost = self._node_size(text).plus(_ONE).by(_TEXT)
                return _Called(cost.times(self._node_size(pattern).by(_PATTERN)))
            case "contains_string" if target:
                cost = self._node_size(target).by(_TEXT)
                return _Called(cost.times(self._node_size(args[0]).by(_TEXT)))
        if overload in _COMPARED:
            most = min(self._node_size(args[0]).most, self._node_size(args[1]).most)
            return _Called(Bounds(1 if most else 0, most).by(_TEXT))
        return _Called(_ONE)

    def _extended(self, node: Call, overload: str) -> _Called | None:
        """Functions that Kubernetes brings along, and those of lists and sets."""
        function = node.function.removeprefix(".")
        if _is_known_equality(node, "kubernetes.NamedFormat"):
            return _Called(Bounds(1, 64).by(_TEXT))
        if function in _ALWAYS_ONE or overload == "cidr_ip" or _is_known_equality(node):
            return _Called(_ONE)
        if function in _WALKED and node.target:
            return self._walked(node, node.target)
        if function in ("url", *_SCANNED) and node.args:
            size = self._node_size(node.args[0])
            factor = 2 * _TEXT if function == "ip.isCanonical" else _TEXT
            return _Called(size.by(factor), size if function == "url" else None)
        if function in _TRANSFORMED and node.target:
            size = self._node_size(node.target)
            return _Called(size.by(_TEXT), size)
        found = self._of_text(function, node)
        return found or self._of_network(function, overload, node) or self._of_list(overload, node)

    def _walked(self, node: Call, target: Node) -> _Called:
        kind = target.type
        if kind is None or not kind.params:
            return _Called(self._node_size(target).by(_TEXT))
        each = _ONE
        if kind.params[0].kind in ("string", "bytes"):
            path = self._path(target)
            found = (
                self._declared_size((*path, "@items")) if path and path[0] != "@result" else None
            )
            each = each.plus((found or _UNKNOWN).by(_TEXT))
        return _Called(self._node_size(target).times(each))

    def _of_text(self, function: str, node: Call) -> _Called | None:
        target, args = node.target, node.args
        if target is None:
            return None
        size = self._node_size(target)
        match function:
            case "replace":
                return _Called(size.by(2 * _TEXT), self._replaced(size, args))
            case "split":
                most = size.most
                if len(args) > 1 and isinstance(args[1], Literal):
                    most = args[1].value % 2**64
                return _Called(size.by(2 * _TEXT), Bounds(0, most))
            case "join":
                joined = self._joined(target, args)
                return _Called(joined.by(_TEXT), joined)
            case "find" | "findAll":
                pattern = self._node_size(args[0]).by(_PATTERN)
                return _Called(size.plus(_ONE).by(_TEXT).times(pattern), Bounds(0, size.most))
            case "validate":
                return _Called(self._node_size(args[0]).by(_TEXT).by(128 * _PATTERN))
        return None

    def _replaced(self, size: Bounds, args: Sequence[Node]) -> Bounds:
        old, new = self._node_size(args[0]), self._node_size(args[1])
        if old.least == 0:
            most, kept = _cut(size.most + 1), size.most
        elif new.most <= old.least:
            most, kept = 0, size.most
        else:
            most, kept = math.ceil(size.most / old.least), 0
        if old.most == 0:
            least, left = _cut(size.least + 1), size.least
        elif old.most <= new.least:
            least, left = 0, size.least
        else:
            least, left = math.ceil(size.least / old.most), 0
        return Bounds(least, most).times(new).plus(Bounds(left, kept))

    def _joined(self, target: Node, args: Sequence[Node]) -> Bounds:
        count = self._node_size(target)
        size = _NOTHING
        if target.type is not None and target.type.params:
            path = self._path(target)
            known = path and path[0] != "@result"
            each = self._declared_size((*path, "@items")) if known else None
            size = count.times(each or _UNKNOWN)
        if not args:
            return size
        between = Bounds(max(count.least - 1, 0), max(count.most - 1, 0))
        return size.plus(self._node_size(args[0]).times(between))

    def _of_network(self, function: str, overload: str, node: Call) -> _Called | None:
        if function not in ("containsIP", "containsCIDR") or not node.args:
            return None
        size = Bounds(4, 16)
        cost = size.plus(size).by(_TEXT)
        if function == "containsCIDR":
            cost = cost.plus(size.by(_TEXT)).plus(_ONE)
        if overload.endswith("_string"):
            cost = cost.plus(self._node_size(node.args[0]).by(_TEXT))
        return _Called(cost)

    def _of_list(self, overload: str, node: Call) -> _Called | None:
        sizes = [
            self._node_size(each) for each in ([node.target] if node.target else []) + node.args
        ]
        match overload:
            case "list_slice":
                start, end = _number(node.args[0], 0), _number(node.args[1], sizes[0].most)
                return _made(_fixed((end - start) % 2**64), 1)
            case "lists_range":
                return _made(_fixed(_number(node.args[0], ENDLESS)), 1)
            case "list_reverse":
                return _made(sizes[0], 1)
            case "list_flatten" | "list_flatten_int":
                depth = _number(node.args[0], ENDLESS) if node.args else 1
                return _made(sizes[0], float(depth))
            case "list_distinct":
                return _made(sizes[0].times(sizes[0]), 2)
        if overload.endswith(("_sort", "_sortByAssociatedKeys")):
            size = sizes[-1]
            factor = 2.1 if overload.startswith(("list_string", "list_bytes")) else 2.0
            return _made(size.times(size), factor)
        if overload.startswith("list_sets_"):
            twice = 2 if overload == "list_sets_equivalent_list" else 1
            return _Called(_ONE.plus(sizes[0].times(sizes[1]).by(twice)))
        return None


def _made(size: Bounds, factor: float) -> _Called:
    return _Called(size.by(factor).plus(_ONE).plus(_fixed(10)), size)


def _number(node: Node, otherwise: int) -> int:
    if not isinstance(node, Literal) or type(node.value) is not int:
        return otherwise
    return max(node.value, 0)


_COMPARED_AT_ONCE = (
    *("net.IP", "net.CIDR", "kubernetes.Quantity", "kubernetes.Semver", "kubernetes.URL"),
)


def _is_known_equality(node: Call, *names: str) -> bool:
    kinds = [each.type.name for each in node.args if each.type is not None]
    return (
        node.function == "_==_" and len({*kinds}) == 1 and kinds[0] in (names or _COMPARED_AT_ONCE)
    )


def _is_bind(node: Fold) -> bool:
    over, condition = node.over, node.condition
    empty = isinstance(over, ListNode) and not over.items
    return empty and isinstance(condition, Literal) and condition.value is False


def _written_size(node: Node) -> Bounds | None:
    match node:
        case Literal(str() | bytes() as value):
            return _fixed(len(value))
        case Literal():
            return _ONE
        case ListNode():
            return _fixed(len(node.items))
        case MapNode():
            return _fixed(len(node.entries))
    return None


_SCALARS = frozenset(("bool", "double", "duration", "int", "timestamp", "uint"))


def _is_scalar(kind: Type) -> bool:
    if kind.name == "optional_type":
        return _is_scalar(kind.params[0])
    return kind.kind in _SCALARS


_COMPARED = frozenset(
    [
        "equals",
        "not_equals",
        *(
            f"{name}_{kind}"
            for kind in ("string", "bytes")
            for name in ("less", "greater", "less_equals", "greater_equals")
        ),
    ]
)
_WALKED = frozenset("isSorted sum max min indexOf lastIndexOf".split())
_SCANNED = frozenset(
    "cidr isIP isCIDR ip ip.isCanonical quantity isQuantity semver isSemver".split()
)
_TRANSFORMED = frozenset("lowerAscii upperAscii substring trim".split())
_ALWAYS_ONE = frozenset(
    "masked prefixLength family isUnspecified isLoopback isLinkLocalMulticast isLinkLocalUnicast "
    "isGlobalUnicast format.named sign asInteger isInteger asApproximateFloat isGreaterThan "
    "isLessThan compareTo add sub major minor patch getScheme getHostname getHost getPort "
    "getEscapedPath getQuery serviceAccount path group resource subresource namespace name allowed "
    "reason error errored".split()
)
