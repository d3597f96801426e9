"""What a template consists of, each part with the place where it stands."""

from __future__ import annotations

from dataclasses import dataclass, field

from polyver.languages.gotemplate._literals import Number

__all__ = [
    "Action",
    "Block",
    "Chain",
    "Command",
    "Constant",
    "Dot",
    "Field",
    "Jump",
    "Name",
    "Nil",
    "Node",
    "Part",
    "Pipeline",
    "Range",
    "Text",
    "Use",
    "Variable",
]


@dataclass(slots=True)
class Node:
    """A part of a template."""

    at: int
    end: int


# What stands inside of actions


@dataclass(slots=True)
class Dot(Node):
    """The value that everything is about."""


@dataclass(slots=True)
class Nil(Node):
    """Nothing, as an argument."""


@dataclass(slots=True)
class Constant(Node):
    """A number, a text, true or false."""

    value: Number | str | bool


@dataclass(slots=True)
class Name(Node):
    """A function."""

    name: str


@dataclass(slots=True)
class Part:
    """A field in a chain of them."""

    name: str
    at: int


@dataclass(slots=True)
class Field(Node):
    """Fields of what everything is about."""

    parts: list[Part]


@dataclass(slots=True)
class Variable(Node):
    """A variable, or fields of it."""

    name: str
    parts: list[Part]


@dataclass(slots=True)
class Chain(Node):
    """Fields of what something in parentheses, or a function, results in."""

    operand: Node
    parts: list[Part]


@dataclass(slots=True)
class Command(Node):
    """A value, or a function and its arguments."""

    words: list[Node]


@dataclass(slots=True)
class Pipeline(Node):
    """Commands, each of which gets the value before it; and the variables that get the last."""

    commands: list[Command]
    variables: list[str] = field(default_factory=list)
    assigns: bool = False


# Actions


@dataclass(slots=True)
class Text(Node):
    """What stands between actions."""

    text: str


@dataclass(slots=True)
class Action(Node):
    """A value that is written, or kept in a variable."""

    pipeline: Pipeline


@dataclass(slots=True)
class Block(Node):
    """An `if` or a `with`."""

    narrows: bool
    """Whether what is inside is about the value."""
    pipeline: Pipeline
    inside: list[Node]
    otherwise: list[Node] | None


@dataclass(slots=True)
class Range(Node):
    """A loop."""

    pipeline: Pipeline
    inside: list[Node]
    otherwise: list[Node] | None


@dataclass(slots=True)
class Jump(Node):
    """A `break` or a `continue`."""

    word: str


@dataclass(slots=True)
class Use(Node):
    """Another template at this place."""

    name: str
    pipeline: Pipeline | None
