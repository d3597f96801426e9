"""Evaluation of the pipelines in a template: fields, variables, constants and function calls.

A pipeline is the content of a template action: `.name | upper` in `{{ .name | upper }}`. The
arguments of functions are checked against Go's types.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from difflib import get_close_matches
from typing import Final

from polyver.core import listed
from polyver.languages.gotemplate._budget import RenderBudget
from polyver.languages.gotemplate._errors import RenderFailed, located
from polyver.languages.gotemplate._functions import TemplateFunction, fits
from polyver.languages.gotemplate._methods import method_of
from polyver.languages.gotemplate._nodes import (
    TemplateChain,
    TemplateCommand,
    TemplateConstant,
    TemplateDot,
    TemplateField,
    TemplateFieldName,
    TemplateIdentifier,
    TemplateNil,
    TemplateNode,
    TemplatePipeline,
    TemplateVariable,
)
from polyver.languages.gotemplate._tokens import TemplateNumber
from polyver.languages.gotemplate._values import (
    Int,
    NilDict,
    TemplateFailure,
    Texts,
    is_true,
    type_of,
)

__all__ = ["Evaluation", "GoTemplateSource"]


@dataclass(frozen=True, slots=True)
class GoTemplateSource:
    """The name and the source of a template."""

    name: str
    text: str


class _None:
    """Stands for the piped value of the first command in a pipeline, which gets no such value."""


_NONE: Final = _None()
_NILABLE = frozenset(("any", "map[string]interface {}", "*semver.Version"))


class Evaluation:
    """Evaluates the pipelines of a template during a rendering, and stores its variables."""

    def __init__(
        self,
        source: GoTemplateSource,
        functions: Mapping[str, TemplateFunction],
        budget: RenderBudget,
        missing: str,
    ) -> None:
        self._source = source
        self._functions = functions
        self._budget = budget
        self._missing = missing
        self._variables: list[tuple[str, object]] = []

    # Errors

    def _failed(
        self, fact: str, node: TemplateNode | TemplateFieldName, hint: str = ""
    ) -> RenderFailed:
        line, column, near = located(self._source.text, node.at)
        return RenderFailed(
            fact, name=self._source.name, line=line, column=column, near=near, hint=hint
        )

    @contextmanager
    def _at(self, node: TemplateNode | TemplateFieldName, what: str = "") -> Iterator[None]:
        """Convert errors in the `with` block to `RenderFailed`, with the position of the node.

        The message begins with `what`.
        """
        try:
            yield
        except TemplateFailure as failure:
            raise self._failed(f"{what}{failure.fact}", node, failure.hint) from None
        except (ArithmeticError, ValueError) as problem:
            raise self._failed(f"{what}{problem}", node) from None

    def _charge(self, node: TemplateNode) -> None:
        try:
            self._budget.spend()
        except TemplateFailure as failure:
            raise self._failed(failure.fact, node, failure.hint) from None

    def _text_of(self, node: TemplateNode) -> str:
        return self._source.text[node.at : node.end]

    # Pipelines

    def _pipeline(self, pipeline: TemplatePipeline, dot: object) -> object:
        value: object = _NONE
        for command in pipeline.commands:
            value = self._command(command, dot, value)
        for name in pipeline.variables:
            if pipeline.assigns:
                self._assign(name, value, pipeline)
            else:
                self._variables.append((name, value))
        return value

    def _command(self, command: TemplateCommand, dot: object, piped: object) -> object:
        self._charge(command)
        first, words = command.words[0], command.words[1:]
        if isinstance(first, TemplateIdentifier):
            return self._call(first, words, dot, piped)
        if isinstance(first, TemplateField | TemplateChain) or (
            isinstance(first, TemplateVariable) and first.parts
        ):
            return self._fields(first, words, dot, piped)
        if words or piped is not _NONE:
            fact = f"can't give argument to non-function {self._text_of(first)}"
            raise self._failed(fact, first)
        if isinstance(first, TemplateNil):
            raise self._failed("nil is not a command", first)
        return self._value(first, dot)

    def _value(self, node: TemplateNode, dot: object) -> object:
        """Return the value of one operand, such as `.a`, `$x`, `"text"` or `(len .a)`."""
        match node:
            case TemplateConstant():
                return self._plain_constant(node)
            case TemplateDot() | TemplateNil():
                return dot if isinstance(node, TemplateDot) else None
            case TemplateIdentifier():
                return self._call(node, [], dot, _NONE)
            case TemplatePipeline():
                return self._pipeline(node, dot)
            case TemplateVariable(parts=[]):
                return self._look_up(node)
        return self._fields(node, [], dot, _NONE)

    def _plain_constant(self, node: TemplateConstant) -> object:
        if not isinstance(node.value, TemplateNumber):
            return node.value
        if node.value.is_real:
            return node.value.real
        if node.value.whole is None:
            raise self._failed(f"{node.value.text} overflows int", node)
        return Int(node.value.whole)

    # Variables

    def _look_up(self, node: TemplateVariable) -> object:
        for name, value in reversed(self._variables):
            if name == node.name:
                return value
        raise self._failed(f"undefined variable: {node.name}", node)

    def _assign(self, name: str, value: object, node: TemplateNode) -> None:
        for index in range(len(self._variables) - 1, -1, -1):
            if self._variables[index][0] == name:
                self._variables[index] = (name, value)
                return
        raise self._failed(f"undefined variable: {name}", node)

    # Fields

    def _fields(
        self, node: TemplateNode, words: Sequence[TemplateNode], dot: object, piped: object
    ) -> object:
        match node:
            case TemplateField():
                value, parts, shown = dot, node.parts, ""
            case TemplateVariable():
                value, parts, shown = self._look_up(node), node.parts, node.name
            case TemplateChain():
                if isinstance(node.operand, TemplateNil):
                    raise self._failed("indirection through explicit nil", node)
                value, parts = self._value(node.operand, dot), node.parts
                shown = self._text_of(node.operand)
            case _:
                raise AssertionError(node)
        for index, part in enumerate(parts):
            last = index == len(parts) - 1
            given = [self._value(word, dot) for word in words] if last else []
            if last and piped is not _NONE:
                given.append(piped)
            if value is _NONE or (value is None and index == 0 and self._missing != "error"):
                value = _NONE
                continue
            value = self._field(value, part, shown or ".", given)
            shown = f"{shown}.{part.name}"
        return None if value is _NONE else value

    def _field(
        self, value: object, part: TemplateFieldName, shown: str, given: list[object]
    ) -> object:
        method = method_of(value, part.name)
        if method is not None:
            with self._at(part, f"error calling {part.name}: "):
                return method.run(value, *self._checked(method, given, part))
        if given and isinstance(value, dict):
            raise self._failed(f"{part.name} is not a method but has arguments", part)
        if isinstance(value, dict):
            return value[part.name] if part.name in value else self._absent(value, part, shown)
        if value is None:
            raise self._failed(f'{shown} is null, so it has no "{part.name}"', part)
        fact = f"can't evaluate field {part.name} in type {type_of(value)}"
        raise self._failed(f"{shown}: {fact}", part)

    def _absent(self, value: dict[str, object], part: TemplateFieldName, shown: str) -> object:
        if self._missing == "default":
            return _NONE
        if self._missing == "zero":
            return "" if isinstance(value, Texts) else None
        near = get_close_matches(part.name, value, 1)
        known = f"known: {listed(sorted(value))}" if value else "it is empty"
        hint = f"did you mean {near[0]}?" if near else known
        raise self._failed(f'{shown} has no entry for key "{part.name}"', part, hint)

    # Calls

    def _call(
        self, node: TemplateIdentifier, words: Sequence[TemplateNode], dot: object, piped: object
    ) -> object:
        if node.name in ("and", "or"):
            return self._decide(node, words, dot, piped)
        function = self._functions[node.name]
        count = len(words) + (piped is not _NONE)
        self._check_count(function, count, node)
        values = [
            self._argument(function.type_at(index), word, dot) for index, word in enumerate(words)
        ]
        if piped is not _NONE:
            values.append(self._fitting(function.type_at(len(words)), piped, node))
        if node.name == "include":
            return self._include(node, str(values[0]), values[1])
        with self._at(node, f"error calling {node.name}: "):
            self._budget.read(values)
            result = function.run(*([self._budget] if function.budgeted else []), *values)
            self._budget.keep(result)
        return result

    def _include(self, node: TemplateIdentifier, name: str, value: object) -> str:
        """Render another template and return its text; the subclass `Rendering` implements this."""
        raise NotImplementedError

    def _decide(
        self, node: TemplateIdentifier, words: Sequence[TemplateNode], dot: object, piped: object
    ) -> object:
        """Evaluate `and` or `or`; stop at the first argument that decides the result."""
        if not words and piped is _NONE:
            raise self._failed(f"wrong number of args for {node.name}: want at least 1 got 0", node)
        value: object = None
        for word in words:
            value = self._argument("any", word, dot)
            if is_true(value) == (node.name == "or"):
                return value
        return value if piped is _NONE else piped

    def _check_count(
        self, function: TemplateFunction, count: int, node: TemplateNode | TemplateFieldName
    ) -> None:
        wanted = len(function.takes)
        if function.variadic:
            if count >= wanted - 1:
                return
            wants = f"at least {wanted - 1}"
        elif count == wanted:
            return
        else:
            wants = str(wanted)
        fact = f"wrong number of args for {function.name}: want {wants} got {count}"
        raise self._failed(fact, node)

    def _checked(
        self, function: TemplateFunction, given: list[object], part: TemplateFieldName
    ) -> list[object]:
        self._check_count(function, len(given), part)
        for index, value in enumerate(given):
            self._fitting(function.type_at(index), value, part)
        return given

    def _argument(self, wanted: str, node: TemplateNode, dot: object) -> object:
        """Evaluate an argument of a function that wants the Go type `wanted`.

        A constant is converted to this type. A value of another type is an error.
        """
        if isinstance(node, TemplateNil):
            if wanted not in _NILABLE:
                raise self._failed(f"cannot assign nil to {wanted}", node)
            return NilDict() if wanted.startswith("map") else None
        if isinstance(node, TemplateConstant) and wanted != "any":
            return self._constant(wanted, node)
        return self._fitting(wanted, self._value(node, dot), node)

    def _constant(self, wanted: str, node: TemplateConstant) -> object:
        value = node.value
        if isinstance(value, TemplateNumber) and wanted == "int" and value.whole is not None:
            return Int(value.whole)
        if isinstance(value, TemplateNumber) and wanted == "float64":
            return value.real
        if not isinstance(value, TemplateNumber) and fits(wanted, value):
            return value
        names = {"int": "integer", "float64": "float"}
        fact = f"expected {names.get(wanted, wanted)}; found {self._text_of(node)}"
        raise self._failed(fact, node)

    def _fitting(
        self, wanted: str, value: object, node: TemplateNode | TemplateFieldName
    ) -> object:
        if fits(wanted, value):
            return value
        if value is None:
            if wanted.startswith("map") and not isinstance(
                node, TemplateField | TemplateChain | TemplateFieldName
            ):
                return NilDict()
            raise self._failed(f"invalid value; expected {wanted}, got nothing", node)
        hint = _ADVICE.get(wanted, "")
        fact = f"wrong type for value; expected {wanted}; got {type_of(value)}"
        raise self._failed(fact, node, hint)


_ADVICE = {"int": "convert it: (int …)", "string": "convert it: (toString …)"}
