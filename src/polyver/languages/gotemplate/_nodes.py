"""Nodes of a parsed template, each with its position."""

from __future__ import annotations

from dataclasses import dataclass, field

from polyver.languages.gotemplate._tokens import TemplateNumber

__all__ = [
    "TemplateAction",
    "TemplateBranch",
    "TemplateChain",
    "TemplateCommand",
    "TemplateConstant",
    "TemplateDot",
    "TemplateField",
    "TemplateFieldName",
    "TemplateIdentifier",
    "TemplateInvocation",
    "TemplateJump",
    "TemplateNil",
    "TemplateNode",
    "TemplatePipeline",
    "TemplateRange",
    "TemplateText",
    "TemplateVariable",
]


@dataclass(slots=True)
class TemplateNode:
    """A node, from one position in the source to another."""

    at: int
    end: int


# Operands and pipelines


@dataclass(slots=True)
class TemplateDot(TemplateNode):
    """The current value, `.`."""


@dataclass(slots=True)
class TemplateNil(TemplateNode):
    """The word `nil` as an argument."""


@dataclass(slots=True)
class TemplateConstant(TemplateNode):
    """A number, a string, true or false."""

    value: TemplateNumber | str | bool


@dataclass(slots=True)
class TemplateIdentifier(TemplateNode):
    """The name of a function."""

    name: str


@dataclass(slots=True)
class TemplateFieldName:
    """One field name in a chain of fields."""

    name: str
    at: int


@dataclass(slots=True)
class TemplateField(TemplateNode):
    """Fields of the current value."""

    parts: list[TemplateFieldName]


@dataclass(slots=True)
class TemplateVariable(TemplateNode):
    """A variable, or fields of a variable."""

    name: str
    parts: list[TemplateFieldName]


@dataclass(slots=True)
class TemplateChain(TemplateNode):
    """Fields of a value that is neither the current value nor a variable, such as `(f .a).b`."""

    operand: TemplateNode
    parts: list[TemplateFieldName]


@dataclass(slots=True)
class TemplateCommand(TemplateNode):
    """One part of a pipeline: a value, or a function and its arguments."""

    words: list[TemplateNode]


@dataclass(slots=True)
class TemplatePipeline(TemplateNode):
    """A chain of commands: each command takes the value of the previous one, as in `.name | upper`.

    If there are `variables`, the value of the last command is assigned to them.
    """

    commands: list[TemplateCommand]
    variables: list[str] = field(default_factory=list)
    assigns: bool = False


# Actions


@dataclass(slots=True)
class TemplateText(TemplateNode):
    """The text between actions."""

    text: str


@dataclass(slots=True)
class TemplateAction(TemplateNode):
    """An action with a pipeline, whose value is written to the text or assigned to a variable."""

    pipeline: TemplatePipeline


@dataclass(slots=True)
class TemplateBranch(TemplateNode):
    """An `if` or a `with`."""

    narrows: bool
    """True for `with`: inside the block, the value is the current value (`.`)."""
    pipeline: TemplatePipeline
    inside: list[TemplateNode]
    otherwise: list[TemplateNode] | None


@dataclass(slots=True)
class TemplateRange(TemplateNode):
    """A `range` loop."""

    pipeline: TemplatePipeline
    inside: list[TemplateNode]
    otherwise: list[TemplateNode] | None


@dataclass(slots=True)
class TemplateJump(TemplateNode):
    """A `break` or a `continue`."""

    word: str


@dataclass(slots=True)
class TemplateInvocation(TemplateNode):
    """A call of another template: `template` or `block`."""

    name: str
    pipeline: TemplatePipeline | None
