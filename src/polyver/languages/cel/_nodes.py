"""Nodes of a parsed CEL expression. The checker sets the types of the nodes for the compiler."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from polyver.languages.cel._types import CelType

__all__ = [
    "CelCall",
    "CelComprehension",
    "CelEntry",
    "CelIdentifier",
    "CelLiteral",
    "CelNode",
    "CelSelect",
    "CelStruct",
    "ListNode",
    "MapNode",
    "inside",
]


@dataclass(slots=True, eq=False, kw_only=True)
class CelNode:
    """A node of an expression; `at` is its position in the text, counted in characters from 0."""

    at: int
    type: CelType | None = None
    """The type of the node's value; None until the checker sets it."""


@dataclass(slots=True, eq=False)
class CelLiteral(CelNode):
    """A literal, such as `1` or `"a"`."""

    value: Any


@dataclass(slots=True, eq=False)
class CelIdentifier(CelNode):
    """A name in an expression, such as the variable `self`."""

    name: str


@dataclass(slots=True, eq=False)
class CelSelect(CelNode):
    """A field selection such as `a.b`.

    With `test`, the node is true if the field exists; the macro `has` expands to such a node.
    """

    operand: CelNode
    field: str
    test: bool = False


@dataclass(slots=True, eq=False)
class CelCall(CelNode):
    """A call of a function or of an operator, or of a method if there is a `target`."""

    function: str
    args: list[CelNode]
    target: CelNode | None = None
    overloads: tuple[str, ...] = ()
    """The names of the overloads whose types fit the arguments.

    Empty until the checker sets them.
    """


@dataclass(slots=True, eq=False)
class ListNode(CelNode):
    """A list literal. `optional` has the indexes of items such as `?a`, which may have no value.

    An optional item without a value is left out of the list.
    """

    items: list[CelNode]
    optional: frozenset[int] = frozenset()


@dataclass(slots=True, eq=False)
class CelEntry:
    """An entry of a map literal: a key and its value."""

    at: int
    key: CelNode | str
    value: CelNode
    optional: bool = False


@dataclass(slots=True, eq=False)
class MapNode(CelNode):
    """A map literal."""

    entries: list[CelEntry]


@dataclass(slots=True, eq=False)
class CelStruct(CelNode):
    """An object of a named type, such as `a.B{c: 1}`.

    The grammar allows such an object, but Kubernetes has no named types, so the checker refuses it.
    """

    name: str
    entries: list[CelEntry]


@dataclass(slots=True, eq=False)
class CelComprehension(CelNode):
    """A loop with an accumulator.

    The macros for lists and maps, such as `all`, expand to such loops.
    """

    over: CelNode
    var: str
    var2: str
    accumulator: str
    init: CelNode
    condition: CelNode
    step: CelNode
    result: CelNode


def inside(node: CelNode) -> list[CelNode]:
    """Return the direct children of a node."""
    match node:
        case CelSelect():
            return [node.operand]
        case CelCall():
            return [*([node.target] if node.target else []), *node.args]
        case ListNode():
            return node.items
        case MapNode() | CelStruct():
            keys = [each.key for each in node.entries if isinstance(each.key, CelNode)]
            return [*keys, *(each.value for each in node.entries)]
        case CelComprehension():
            return [node.over, node.init, node.condition, node.step, node.result]
    return []
