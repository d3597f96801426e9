"""What a template consists of, each part with the place where it stands."""

from __future__ import annotations

from dataclasses import dataclass, field

from polyver.languages.gotemplate._literals import TemplateNumber

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
    """A part of a template."""

    at: int
    end: int


# What stands inside of actions


@dataclass(slots=True)
class TemplateDot(TemplateNode):
    """The value that everything is about."""


@dataclass(slots=True)
class TemplateNil(TemplateNode):
    """Nothing, as an argument."""


@dataclass(slots=True)
class TemplateConstant(TemplateNode):
    """A number, a text, true or false."""

    value: TemplateNumber | str | bool


@dataclass(slots=True)
class TemplateIdentifier(TemplateNode):
    """A function."""

    name: str


@dataclass(slots=True)
class TemplateFieldName:
    """A field in a chain of them."""

    name: str
    at: int


@dataclass(slots=True)
class TemplateField(TemplateNode):
    """Fields of what everything is about."""

    parts: list[TemplateFieldName]


@dataclass(slots=True)
class TemplateVariable(TemplateNode):
    """A variable, or fields of it."""

    name: str
    parts: list[TemplateFieldName]


@dataclass(slots=True)
class TemplateChain(TemplateNode):
    """Fields of what something in parentheses, or a function, results in."""

    operand: TemplateNode
    parts: list[TemplateFieldName]


@dataclass(slots=True)
class TemplateCommand(TemplateNode):
    """A value, or a function and its arguments."""

    words: list[TemplateNode]


@dataclass(slots=True)
class TemplatePipeline(TemplateNode):
    """Commands, each of which gets the value before it; and the variables that get the last."""

    commands: list[TemplateCommand]
    variables: list[str] = field(default_factory=list)
    assigns: bool = False


# Actions


@dataclass(slots=True)
class TemplateText(TemplateNode):
    """What stands between actions."""

    text: str


@dataclass(slots=True)
class TemplateAction(TemplateNode):
    """A value that is written, or kept in a variable."""

    pipeline: TemplatePipeline


@dataclass(slots=True)
class TemplateBranch(TemplateNode):
    """An `if` or a `with`."""

    narrows: bool
    """Whether what is inside is about the value."""
    pipeline: TemplatePipeline
    inside: list[TemplateNode]
    otherwise: list[TemplateNode] | None


@dataclass(slots=True)
class TemplateRange(TemplateNode):
    """A loop."""

    pipeline: TemplatePipeline
    inside: list[TemplateNode]
    otherwise: list[TemplateNode] | None


@dataclass(slots=True)
class TemplateJump(TemplateNode):
    """A `break` or a `continue`."""

    word: str


@dataclass(slots=True)
class TemplateInvocation(TemplateNode):
    """Another template at this place."""

    name: str
    pipeline: TemplatePipeline | None
