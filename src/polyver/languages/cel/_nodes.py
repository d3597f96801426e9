"""Expressions as trees: what the parser reads, the checker types and the evaluator walks over."""

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
    """A part of an expression; `at` is where it is told of, counted in characters."""

    at: int
    type: CelType | None = None
    """Known once it has been checked."""


@dataclass(slots=True, eq=False)
class CelLiteral(CelNode):
    """A value that is written out."""

    value: Any


@dataclass(slots=True, eq=False)
class CelIdentifier(CelNode):
    """A name."""

    name: str


@dataclass(slots=True, eq=False)
class CelSelect(CelNode):
    """A field; `test` asks only whether it is there."""

    operand: CelNode
    field: str
    test: bool = False


@dataclass(slots=True, eq=False)
class CelCall(CelNode):
    """A function, with what stands before its dot if it is one of a value; an operator, too."""

    function: str
    args: list[CelNode]
    target: CelNode | None = None
    overloads: tuple[str, ...] = ()
    """Known once it has been checked."""


@dataclass(slots=True, eq=False)
class ListNode(CelNode):
    """A list that is written out; some items may be there only if they have a value."""

    items: list[CelNode]
    optional: frozenset[int] = frozenset()


@dataclass(slots=True, eq=False)
class CelEntry:
    """A key, or the name of a field, with its value."""

    at: int
    key: CelNode | str
    value: CelNode
    optional: bool = False


@dataclass(slots=True, eq=False)
class MapNode(CelNode):
    """A mapping that is written out."""

    entries: list[CelEntry]


@dataclass(slots=True, eq=False)
class CelStruct(CelNode):
    """An object of a named type; there are none in Kubernetes, but the syntax has them."""

    name: str
    entries: list[CelEntry]


@dataclass(slots=True, eq=False)
class CelComprehension(CelNode):
    """What the macros for lists and mappings become: a loop that carries a value along."""

    over: CelNode
    var: str
    var2: str
    carried: str
    init: CelNode
    condition: CelNode
    step: CelNode
    result: CelNode


def inside(node: CelNode) -> list[CelNode]:
    """The parts right inside of another."""
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
