"""Expressions as trees: what the parser reads, the checker types and the evaluator walks over."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from polyver.languages.cel._types import Type

__all__ = [
    "Call",
    "Entry",
    "Fold",
    "Ident",
    "ListNode",
    "Literal",
    "MapNode",
    "Node",
    "Select",
    "Struct",
    "inside",
]


@dataclass(slots=True, eq=False, kw_only=True)
class Node:
    """A part of an expression; `at` is where it is told of, counted in characters."""

    at: int
    type: Type | None = None
    """Known once it has been checked."""


@dataclass(slots=True, eq=False)
class Literal(Node):
    """A value that is written out."""

    value: Any


@dataclass(slots=True, eq=False)
class Ident(Node):
    """A name."""

    name: str


@dataclass(slots=True, eq=False)
class Select(Node):
    """A field; `test` asks only whether it is there."""

    operand: Node
    field: str
    test: bool = False


@dataclass(slots=True, eq=False)
class Call(Node):
    """A function, with what stands before its dot if it is one of a value; an operator, too."""

    function: str
    args: list[Node]
    target: Node | None = None
    overloads: tuple[str, ...] = ()
    """Known once it has been checked."""


@dataclass(slots=True, eq=False)
class ListNode(Node):
    """A list that is written out; some items may be there only if they have a value."""

    items: list[Node]
    optional: frozenset[int] = frozenset()


@dataclass(slots=True, eq=False)
class Entry:
    """A key, or the name of a field, with its value."""

    at: int
    key: Node | str
    value: Node
    optional: bool = False


@dataclass(slots=True, eq=False)
class MapNode(Node):
    """A mapping that is written out."""

    entries: list[Entry]


@dataclass(slots=True, eq=False)
class Struct(Node):
    """An object of a named type; there are none in Kubernetes, but the syntax has them."""

    name: str
    entries: list[Entry]


@dataclass(slots=True, eq=False)
class Fold(Node):
    """What the macros for lists and mappings become: a loop that carries a value along."""

    over: Node
    var: str
    var2: str
    carried: str
    init: Node
    condition: Node
    step: Node
    result: Node


def inside(node: Node) -> list[Node]:
    """The parts right inside of another."""
    match node:
        case Select():
            return [node.operand]
        case Call():
            return [*([node.target] if node.target else []), *node.args]
        case ListNode():
            return node.items
        case MapNode() | Struct():
            keys = [each.key for each in node.entries if isinstance(each.key, Node)]
            return [*keys, *(each.value for each in node.entries)]
        case Fold():
            return [node.over, node.init, node.condition, node.step, node.result]
    return []
