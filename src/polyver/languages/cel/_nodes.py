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
    """A node of an expression; `at` is the character position for error messages."""

    at: int
    type: CelType | None = None
    """Set by the checker."""


@dataclass(slots=True, eq=False)
class CelLiteral(CelNode):
    """A literal value."""

    value: Any


@dataclass(slots=True, eq=False)
class CelIdentifier(CelNode):
    """A name."""

    name: str


@dataclass(slots=True, eq=False)
class CelSelect(CelNode):
    """A field selection such as `a.b`; with `test`, the value is true if the field exists."""

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
    """Set by the checker."""


@dataclass(slots=True, eq=False)
class ListNode(CelNode):
    """A list literal; an optional item that has no value is left out."""

    items: list[CelNode]
    optional: frozenset[int] = frozenset()


@dataclass(slots=True, eq=False)
class CelEntry:
    """A key or a field name, with its value."""

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
    """An object of a named type.

    The syntax allows such an object, but Kubernetes has no named types.
    """

    name: str
    entries: list[CelEntry]


@dataclass(slots=True, eq=False)
class CelComprehension(CelNode):
    """The expansion of the macros for lists and maps: a loop with an accumulator."""

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
