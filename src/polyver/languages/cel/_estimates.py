"""Estimates the cost of an expression before it runs, from the maximum sizes of values.

A CustomResourceDefinition is refused if one of its rules could cost too much.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from polyver.languages.cel._bounds import ENDLESS, NOTHING, ONE, UNKNOWN, Bounds, Called, fixed
from polyver.languages.cel._call_estimates import call_estimate
from polyver.languages.cel._nodes import (
    CelCall,
    CelComprehension,
    CelIdentifier,
    CelLiteral,
    CelNode,
    CelSelect,
    ListNode,
    MapNode,
)
from polyver.languages.cel._schema_types import DeclaredType
from polyver.languages.cel._types import CelType

__all__ = ["estimate"]

_TEXT = 0.1


@dataclass(frozen=True, slots=True)
class _Entries:
    """The sizes of the keys and values in a list or map that the expression itself builds."""

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


def estimate(tree: CelNode, root: DeclaredType) -> Bounds:
    """Estimate the cost of an expression for a value of a declared type."""
    return _Estimator(root).cost(tree)


class _Estimator:
    def __init__(self, root: DeclaredType) -> None:
        self._root = root
        self._paths: dict[int, tuple[str, ...]] = {}
        self._sizes: dict[int, Bounds] = {}
        self._entries: dict[int, _Entries] = {}
        self._locals: dict[str, list[_Local]] = {}

    def cost(self, node: CelNode) -> Bounds:
        known: dict[type[CelNode], Callable[[Any], Bounds]] = {
            CelIdentifier: self._ident,
            CelSelect: self._select,
            CelCall: self._call,
            ListNode: self._list,
            MapNode: self._map,
            CelComprehension: self._fold,
        }
        found = known.get(type(node))
        return NOTHING if found is None else found(node)

    def _ident(self, node: CelIdentifier) -> Bounds:
        local = self._local(node.name)
        self._paths[id(node)] = local.path if local else (node.name,)
        return ONE

    # Sizes

    def _local(self, name: str) -> _Local | None:
        known = self._locals.get(name)
        return known[-1] if known else None

    def _path(self, node: CelNode) -> tuple[str, ...]:
        if isinstance(node, CelIdentifier):
            local = self._local(node.name)
            if local is not None:
                return local.path
        return self._paths.get(id(node), ())

    def _size(self, node: CelNode) -> Bounds | None:
        known = self._sizes.get(id(node)) or _written_size(node)
        if known is not None:
            return known
        found = self._declared_size(self._path(node))
        if found is not None:
            self._sizes[id(node)] = found
            return found
        if node.type is not None and _is_scalar(node.type):
            return ONE
        local = self._local(node.name) if isinstance(node, CelIdentifier) else None
        return local.size if local else None

    def _node_size(self, node: CelNode) -> Bounds:
        """Return the size of an argument; UNKNOWN if no schema declares it.

        For example, no schema declares the size of the accumulator of a loop.
        """
        found = self._size(node)
        return UNKNOWN if found is None else found

    def _declared_size(self, path: tuple[str, ...]) -> Bounds | None:
        if not path:
            return None
        declared_type: DeclaredType | None = self._root
        for name in path[1:]:
            if declared_type is None:
                return None
            if name in ("@items", "@values"):
                declared_type = declared_type.inside
            elif name == "@keys":
                # No schema declares a maximum length of keys, so keys count as empty.
                return NOTHING if declared_type.type.kind == "map" else None
            else:
                declared_type = declared_type.fields.get(name)
        return None if declared_type is None else Bounds(0, declared_type.most)

    def _made_of(self, node: CelNode) -> _Entries | None:
        known = self._entries.get(id(node))
        if known is None and isinstance(node, CelIdentifier):
            local = self._local(node.name)
            return local.entries if local else None
        return known

    # Nodes

    def _select(self, node: CelSelect) -> Bounds:
        cost = self.cost(node.operand)
        if node.test:
            return cost
        kind = node.operand.type.kind if node.operand.type else ""
        if kind in ("map", "struct", "param"):
            cost = cost.plus(ONE)
        self._paths[id(node)] = (*self._path(node.operand), node.field)
        return cost

    def _list(self, node: ListNode) -> Bounds:
        cost, size = fixed(10), Bounds(ENDLESS if node.items else 0, 0)
        for item in node.items:
            cost = cost.plus(self.cost(item))
            size = size.union(self._node_size(item))
        self._entries[id(node)] = _Entries("list", ONE, size)
        return cost

    def _map(self, node: MapNode) -> Bounds:
        nothing = Bounds(ENDLESS if node.entries else 0, 0)
        cost, keys, values = fixed(30), nothing, nothing
        for entry in node.entries:
            assert isinstance(entry.key, CelNode)
            cost = cost.plus(self.cost(entry.key)).plus(self.cost(entry.value))
            keys = keys.union(self._node_size(entry.key))
            values = values.union(self._node_size(entry.value))
        self._entries[id(node)] = _Entries("map", keys, values)
        return cost

    def _fold(self, node: CelComprehension) -> Bounds:
        if _is_bind(node):
            return self._bind(node)
        cost = self.cost(node.over).plus(self.cost(node.init))
        self._push(node.accumulator, self._as_local(node.init))
        self._push_variables(node)
        each = self.cost(node.condition).plus(self.cost(node.step))
        self._locals[node.var].pop()
        if node.var2:
            self._locals[node.var2].pop()
        cost = cost.plus(self.cost(node.result))
        self._locals[node.accumulator].pop()
        count = self._node_size(node.over)
        if isinstance(node.init, CelLiteral):
            self._keep(node, self._size(node.init))
        elif isinstance(node.init, ListNode | MapNode):
            self._keep(node, count)
            self._keep_entries(node, self._made_of(node.step))
        return cost.plus(count.times(each))

    def _push(self, name: str, local: _Local) -> None:
        self._locals.setdefault(name, []).append(local)

    def _as_local(self, node: CelNode) -> _Local:
        return _Local(self._path(node), self._size(node), self._made_of(node))

    def _push_variables(self, node: CelComprehension) -> None:
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

    def _bind(self, node: CelComprehension) -> Bounds:
        cost = self.cost(node.over).plus(self.cost(node.init))
        self._push(node.accumulator, self._as_local(node.init))
        cost = cost.plus(self.cost(node.result))
        self._locals[node.accumulator].pop()
        self._keep(node, self._size(node.result))
        self._keep_entries(node, self._made_of(node.result))
        return cost

    def _keep(self, node: CelNode, size: Bounds | None) -> None:
        if size is not None:
            self._sizes[id(node)] = size

    def _keep_entries(self, node: CelNode, entries: _Entries | None) -> None:
        if entries is not None:
            self._entries[id(node)] = entries

    # Calls

    def _call(self, node: CelCall) -> Bounds:
        if node.function == "dyn":
            cost = self.cost(node.args[0])
            self._keep(node, self._size(node.args[0]))
            self._keep_entries(node, self._made_of(node.args[0]))
            return cost.plus(ONE)
        costs = [self.cost(arg) for arg in node.args]
        if not node.overloads:
            return NOTHING
        cost = self.cost(node.target) if node.target else NOTHING
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

    def _indexed(self, node: CelCall, overload: str, size: Bounds | None) -> Bounds | None:
        """Return the size of the item that `[]` selects, and record the path of this item.

        Return `size` for all other overloads. None means that the size is unknown.
        """
        names = {"index_list": "@items", "index_map": "@values"}
        if overload not in names:
            return size
        entries = self._made_of(node.args[0])
        self._paths[id(node)] = (*self._path(node.args[0]), names[overload])
        return entries.value if entries else None

    def _called(self, node: CelCall, overload: str, costs: Sequence[Bounds]) -> Called:
        total = NOTHING
        for each in costs:
            total = total.plus(each)
        match overload:
            case "logical_and" | "logical_or":
                return Called(Bounds(costs[0].least, costs[0].plus(costs[1]).most))
            case "conditional":
                return self._conditional(node, costs)
            case "add_string" | "add_bytes" | "add_list":
                found = self._added(node, overload)
            case _:
                found = self._of_items(node) or self._plain(node, overload)
        return Called(found.cost.plus(total), found.size)

    def _plain(self, node: CelCall, overload: str) -> Called:
        given = [*([node.target] if node.target else []), *node.args]
        return call_estimate(node, overload, [self._node_size(each) for each in given])

    def _conditional(self, node: CelCall, costs: Sequence[Bounds]) -> Called:
        size = self._node_size(node.args[1]).union(self._node_size(node.args[2]))
        one, other = self._made_of(node.args[1]), self._made_of(node.args[2])
        self._keep_entries(node, one.union(other) if one else None)
        return Called(costs[0].plus(costs[1].union(costs[2])), size)

    def _added(self, node: CelCall, overload: str) -> Called:
        size = self._node_size(node.args[0]).plus(self._node_size(node.args[1]))
        one, other = self._made_of(node.args[0]), self._made_of(node.args[1])
        self._keep_entries(node, one.union(other) if one else None)
        return Called(ONE if overload == "add_list" else size.by(_TEXT), size)

    def _of_items(self, node: CelCall) -> Called | None:
        """Estimate a call such as `join`, whose cost depends on the sizes of list items.

        Return None for other calls.
        """
        if node.target is None or node.function not in (*_WALKED, "join"):
            return None
        count, each = self._node_size(node.target), self._item_size(node.target)
        if node.function == "join":
            size = self._joined(count, each, node.args)
            return Called(size.by(_TEXT), size)
        if each is None:
            return Called(count.by(_TEXT))
        kind = node.target.type.params[0].kind if node.target.type else ""
        cost = ONE.plus(each.by(_TEXT)) if kind in ("string", "bytes") else ONE
        return Called(count.times(cost))

    def _item_size(self, node: CelNode) -> Bounds | None:
        """Return the size of the items of a list; None if the type of the node is not a list."""
        if node.type is None or not node.type.params:
            return None
        path = self._path(node)
        known = path and path[0] != "@result"
        return (self._declared_size((*path, "@items")) if known else None) or UNKNOWN

    def _joined(self, count: Bounds, each: Bounds | None, args: Sequence[CelNode]) -> Bounds:
        size = NOTHING if each is None else count.times(each)
        if not args:
            return size
        between = Bounds(max(count.least - 1, 0), max(count.most - 1, 0))
        return size.plus(self._node_size(args[0]).times(between))


def _is_bind(node: CelComprehension) -> bool:
    over, condition = node.over, node.condition
    empty = isinstance(over, ListNode) and not over.items
    return empty and isinstance(condition, CelLiteral) and condition.value is False


def _written_size(node: CelNode) -> Bounds | None:
    match node:
        case CelLiteral(str() | bytes() as value):
            return fixed(len(value))
        case CelLiteral():
            return ONE
        case ListNode():
            return fixed(len(node.items))
        case MapNode():
            return fixed(len(node.entries))
    return None


_SCALARS = frozenset(("bool", "double", "duration", "int", "timestamp", "uint"))
_WALKED = frozenset("isSorted sum max min indexOf lastIndexOf".split())


def _is_scalar(kind: CelType) -> bool:
    if kind.name == "optional_type":
        return _is_scalar(kind.params[0])
    return kind.kind in _SCALARS
