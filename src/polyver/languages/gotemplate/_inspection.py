"""Find the fields that a template reads, without rendering the template.

The template is evaluated with shapes instead of values. A shape names the known fields of a value,
and states whether the value may have other fields. A function may return any value, so fields of
its result are not checked. All branches of the template are evaluated, although a rendering may
skip a branch. Therefore a read of a field is marked as not certain if it is inside a branch.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field

from polyver.languages.gotemplate._errors import InvalidTemplate, located
from polyver.languages.gotemplate._library import FUNCTIONS, absence_of
from polyver.languages.gotemplate._nodes import (
    TemplateAction,
    TemplateBranch,
    TemplateChain,
    TemplateCommand,
    TemplateConstant,
    TemplateDot,
    TemplateField,
    TemplateFieldName,
    TemplateIdentifier,
    TemplateInvocation,
    TemplateNode,
    TemplatePipeline,
    TemplateRange,
    TemplateVariable,
)
from polyver.languages.gotemplate._parser import parse

__all__ = ["ANYTHING", "TEXT", "DataShape", "FieldAccess", "inspect_template"]

_DEEPEST = 8
"""The maximum depth to which nested template calls are followed."""


@dataclass(frozen=True, slots=True)
class DataShape:
    """The fields that a value will have when the template is rendered, as far as they are known."""

    fields: Mapping[str, DataShape] = field(default_factory=dict)
    others: bool = False
    """True if the value may have fields other than `fields`."""
    maybe: bool = False
    """True if the value may be absent."""


ANYTHING = DataShape(others=True)
TEXT = DataShape()


@dataclass(frozen=True, slots=True)
class FieldAccess:
    """A place in a template that reads a field which may not exist."""

    path: tuple[str, ...]
    known: tuple[str, ...]
    """The names of the known fields of the object whose field is read."""
    missing: bool
    """True if the field certainly does not exist; False if it may exist."""
    certain: bool
    """True if every rendering reads the field; False if the read is inside a branch."""
    place: str
    """The position of the field in the template, with the `{{ … }}` around the field.

    An example is `2:7, near {{ .x }}`: line 2, column 7.
    """


@dataclass(frozen=True, slots=True)
class _Value:
    """A value in a pipeline: its shape, and its path in the data of the template.

    `path` is None if a function returned the value.
    """

    shape: DataShape
    path: tuple[str, ...] | None = None


_MADE = _Value(ANYTHING)


def inspect_template(text: str, shape: DataShape, *, name: str = "template") -> list[FieldAccess]:
    """Find the fields that a template reads and that may not exist.

    Raise `InvalidTemplate` if the template itself is invalid.

    >>> shape = DataShape({"Options": ANYTHING, "Phases": DataShape({"a": TEXT})})
    >>> [(each.path, each.missing) for each in inspect_template(
    ...     "{{ .Options.x }} {{ if .Phases.b }}{{ end }}", shape)]
    [(('Options', 'x'), False), (('Phases', 'b'), True)]
    """
    try:
        templates = parse(text, name, frozenset(FUNCTIONS), absence_of)
    except RecursionError:
        start = {"name": name, "line": 1, "column": 1, "near": "the beginning"}
        raise InvalidTemplate("actions nest too deeply", **start) from None  # type: ignore[arg-type]
    run = _Inspection(text, templates, _Value(shape, ()))
    run.nodes(templates.get(name, []), run.root)
    return [*dict.fromkeys(run.found)]


class _Inspection:
    """One inspection of a template, in which shapes stand for values."""

    def __init__(
        self, text: str, templates: Mapping[str, list[TemplateNode]], root: _Value
    ) -> None:
        self.found: list[FieldAccess] = []
        self.root = root
        self._text = text
        self._templates = templates
        self._variables: list[tuple[str, _Value]] = [("$", root)]
        self._certain = True
        self._depth = 0

    def nodes(self, nodes: Iterable[TemplateNode], dot: _Value) -> None:
        for node in nodes:
            match node:
                case TemplateAction():
                    self._pipeline(node.pipeline, dot)
                case TemplateBranch():
                    self._block(node, dot)
                case TemplateRange():
                    self._range(node, dot)
                case TemplateInvocation():
                    self._use(node, dot)

    def _block(self, node: TemplateBranch, dot: _Value) -> None:
        with self._scope():
            value = self._pipeline(node.pipeline, dot)
            with self._branch():
                self.nodes(node.inside, value if node.narrows else dot)
            with self._branch():
                self.nodes(node.otherwise or (), dot)

    def _range(self, node: TemplateRange, dot: _Value) -> None:
        with self._scope():
            self._pipeline(node.pipeline, dot)
            names = node.pipeline.variables
            self._variables += [(name, _MADE) for name in names]
            with self._branch():
                self.nodes(node.inside, _MADE)
            with self._branch():
                self.nodes(node.otherwise or (), dot)

    def _use(self, node: TemplateInvocation, dot: _Value) -> None:
        value = self._pipeline(node.pipeline, dot) if node.pipeline else _MADE
        if self._depth >= _DEEPEST:
            return
        self._depth += 1
        variables, self._variables = self._variables, [("$", value)]
        self.nodes(self._templates.get(node.name, ()), value)
        self._variables = variables
        self._depth -= 1

    @contextmanager
    def _scope(self) -> Iterator[None]:
        before = len(self._variables)
        yield
        del self._variables[before:]

    @contextmanager
    def _branch(self) -> Iterator[None]:
        """Mark all reads in the `with` block as not certain: a rendering may skip the branch."""
        certain, self._certain = self._certain, False
        with self._scope():
            yield
        self._certain = certain

    # Values

    def _pipeline(self, pipeline: TemplatePipeline, dot: _Value) -> _Value:
        value = _MADE
        for command in pipeline.commands:
            value = self._command(command, dot)
        for name in pipeline.variables:
            if pipeline.assigns:
                self._assign(name)
            else:
                self._variables.append((name, value))
        return value

    def _assign(self, name: str) -> None:
        """Make the value of an assigned variable unknown: a rendering may skip the assignment."""
        for index in reversed(range(len(self._variables))):
            if self._variables[index][0] == name:
                self._variables[index] = (name, _MADE)
                return

    def _command(self, command: TemplateCommand, dot: _Value) -> _Value:
        first, *words = command.words
        if not isinstance(first, TemplateIdentifier):
            for word in words:
                self._value(word, dot)
            return self._value(first, dot)
        if first.name in ("and", "or"):
            return self._decide(words, dot)
        values = [self._value(word, dot) for word in words]
        if first.name == "index" and values:
            return _indexed(values[0], words[1:])
        return _MADE

    def _decide(self, words: list[TemplateNode], dot: _Value) -> _Value:
        """Inspect the arguments of `and` or `or`; only the first argument is always evaluated."""
        for word in words[:1]:
            self._value(word, dot)
        with self._branch():
            for word in words[1:]:
                self._value(word, dot)
        return _MADE

    def _value(self, node: TemplateNode, dot: _Value) -> _Value:
        match node:
            case TemplateDot():
                return dot
            case TemplatePipeline():
                return self._pipeline(node, dot)
            case TemplateField():
                return self._fields(dot, node.parts)
            case TemplateVariable():
                return self._fields(self._look_up(node.name), node.parts)
            case TemplateChain():
                return self._fields(self._value(node.operand, dot), node.parts)
        return _MADE

    def _look_up(self, name: str) -> _Value:
        return next((value for each, value in reversed(self._variables) if each == name), _MADE)

    def _fields(self, value: _Value, parts: list[TemplateFieldName]) -> _Value:
        if value.path is None:
            return _MADE
        shape, path, unknown = value.shape, value.path, False
        for number, part in enumerate(parts):
            path = (*path, part.name)
            inside = shape.fields.get(part.name)
            if inside is None and not shape.others:
                self._note(path, shape, part, missing=True)
                return _MADE
            if inside is None:
                whole = (*path, *(each.name for each in parts[number + 1 :]))
                self._note(whole, shape, part, missing=False)
                return _MADE
            unknown = unknown or inside.maybe
            shape = inside
        if unknown:
            self._note(path, shape, parts[-1], missing=False)
        return _Value(shape, path)

    def _note(
        self, path: tuple[str, ...], shape: DataShape, part: TemplateFieldName, *, missing: bool
    ) -> None:
        line, column, near = located(self._text, part.at)
        place = f"{line}:{column}, near {near}"
        known = tuple(sorted(shape.fields))
        self.found.append(FieldAccess(path, known, missing, self._certain, place))


def _indexed(value: _Value, words: list[TemplateNode]) -> _Value:
    """Return the value that `index` finds in a value with literal strings as keys.

    If a key is unknown, the result is an unknown value, and no error is reported.
    """
    for word in words:
        name = word.value if isinstance(word, TemplateConstant) else None
        if value.path is None or not isinstance(name, str) or name not in value.shape.fields:
            return _MADE
        value = _Value(value.shape.fields[name], (*value.path, name))
    return value
