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
    """A node of a parsed template. `at` and `end` are the positions of its text in the source."""

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
    """One name in a chain of fields, such as `b` in `.a.b`."""

    name: str
    at: int


@dataclass(slots=True)
class TemplateField(TemplateNode):
    """One or more fields of the current value, such as `.a.b`."""

    parts: list[TemplateFieldName]


@dataclass(slots=True)
class TemplateVariable(TemplateNode):
    """A variable such as `$x`, or fields of a variable such as `$x.a`."""

    name: str
    parts: list[TemplateFieldName]


@dataclass(slots=True)
class TemplateChain(TemplateNode):
    """Fields of a value that is neither the current value nor a variable, such as `(f .a).b`."""

    operand: TemplateNode
    parts: list[TemplateFieldName]


@dataclass(slots=True)
class TemplateCommand(TemplateNode):
    """One part of a pipeline: a value such as `.name`, or a function and its arguments."""

    words: list[TemplateNode]


@dataclass(slots=True)
class TemplatePipeline(TemplateNode):
    """Commands with `|` between them, such as `.name | upper`; each takes the value before the `|`.

    If there are `variables`, as in `$x := .name`, they get the value of the last command.
    """

    commands: list[TemplateCommand]
    variables: list[str] = field(default_factory=list)
    assigns: bool = False


# Actions


@dataclass(slots=True)
class TemplateText(TemplateNode):
    """Text outside of `{{ }}`, which is rendered unchanged."""

    text: str


@dataclass(slots=True)
class TemplateAction(TemplateNode):
    """A template action: `{{ … }}` with a pipeline.

    The value of the pipeline is rendered, or assigned to a variable.
    """

    pipeline: TemplatePipeline


@dataclass(slots=True)
class TemplateBranch(TemplateNode):
    """An `if` or a `with`, and its `else`."""

    narrows: bool
    """True for `with`: inside its block, the current value (`.`) is the value of the pipeline."""
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
