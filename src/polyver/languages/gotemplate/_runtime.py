"""Rendering: runs the template actions (`{{ }}`) with data, and collects the text."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any, Final

from polyver.languages.gotemplate._budget import DEEPEST, RenderBudget
from polyver.languages.gotemplate._evaluation import Evaluation, GoTemplateSource
from polyver.languages.gotemplate._functions import TemplateFunction
from polyver.languages.gotemplate._nodes import (
    TemplateAction,
    TemplateBranch,
    TemplateIdentifier,
    TemplateInvocation,
    TemplateJump,
    TemplateNode,
    TemplateRange,
    TemplateText,
)
from polyver.languages.gotemplate._printing import printed
from polyver.languages.gotemplate._values import Int, decoded, encoded, is_true, type_of

__all__ = ["Rendering"]


_LONE: Final = re.compile("[\ud800-\udfff]")


class _Jumped(Exception):
    def __init__(self, word: str) -> None:
        super().__init__(word)
        self.word = word


class Rendering(Evaluation):
    """One run of a template."""

    def __init__(
        self,
        source: GoTemplateSource,
        templates: Mapping[str, Sequence[TemplateNode]],
        functions: Mapping[str, TemplateFunction],
        budget: RenderBudget,
        missing: str,
    ) -> None:
        super().__init__(source, functions, budget, missing)
        self._templates = templates
        self._written: list[str] = []
        self._size = 0
        self._depth = 0

    def run(self, name: str, data: object) -> str:
        """Render the template with this name; return the text. In the template, `.` is `data`."""
        self._variables = [("$", data)]
        self._walk(self._templates[name], data)
        text = "".join(self._written)
        # Bytes that are not UTF-8 become U+FFFD. But first, adjacent bytes that are UTF-8 together
        # are joined to a character.
        return text if text.isascii() else _LONE.sub("\ufffd", decoded(encoded(text)))

    def _write(self, text: str, node: TemplateNode) -> None:
        self._size += len(text)
        with self._at(node):
            self._budget.fit(self._size)
            self._budget.hold(len(text))
        self._written.append(text)

    def _walk(self, nodes: Sequence[TemplateNode], dot: object) -> None:
        self._depth += 1
        if self._depth > DEEPEST and nodes:
            fact = f"blocks and templates nest more than {DEEPEST} levels deep"
            raise self._failed(fact, nodes[0])
        for node in nodes:
            self._charge(node)
            match node:
                case TemplateText():
                    self._write(node.text, node)
                case TemplateAction():
                    self._do(node, dot)
                case TemplateBranch():
                    self._block(node, dot)
                case TemplateRange():
                    self._range(node, dot)
                case TemplateInvocation():
                    self._use(node, dot)
                case TemplateJump():
                    raise _Jumped(node.word)
        self._depth -= 1

    def _do(self, node: TemplateAction, dot: object) -> None:
        value = self._pipeline(node.pipeline, dot)
        if node.pipeline.variables:
            return
        with self._at(node):
            text = "<no value>" if value is None else printed(value, self._budget)
        self._write(text, node)

    def _block(self, node: TemplateBranch, dot: object) -> None:
        known = len(self._variables)
        value = self._pipeline(node.pipeline, dot)
        if is_true(value):
            self._walk(node.inside, value if node.narrows else dot)
        elif node.otherwise is not None:
            self._walk(node.otherwise, dot)
        del self._variables[known:]

    def _range(self, node: TemplateRange, dot: object) -> None:
        known = len(self._variables)
        over = self._pipeline(node.pipeline, dot)
        turns = self._turns(node, over)
        try:
            for key, value in turns:
                self._turn(node, key, value)
        except _Jumped as jumped:
            if jumped.word != "break":
                raise
        if not turns and node.otherwise is not None:
            self._walk(node.otherwise, dot)
        del self._variables[known:]

    def _turns(self, node: TemplateRange, over: object) -> Sequence[tuple[object, object]]:
        if over is None:
            return []
        if isinstance(over, list):
            return [(Int(index), value) for index, value in enumerate(over)]
        if isinstance(over, dict):
            return sorted(over.items())
        if isinstance(over, int) and not isinstance(over, bool):
            if len(node.pipeline.variables) > 1:
                fact = f"can't use {over} to iterate over more than one variable"
                raise self._failed(fact, node)
            return _Count(over)
        raise self._failed(f"range can't iterate over a value of type {type_of(over)}", node)

    def _turn(self, node: TemplateRange, key: object, value: object) -> None:
        self._charge(node)
        known, depth = len(self._variables), self._depth
        names = node.pipeline.variables
        if node.pipeline.assigns:
            for name, given in zip(
                names, (key, value) if len(names) > 1 else (value,), strict=True
            ):
                self._assign(name, given, node)
        elif names:
            self._variables[-1] = (names[-1], value)
            if len(names) > 1:
                self._variables[-2] = (names[0], key)
        try:
            self._walk(node.inside, value)
        except _Jumped as jumped:
            if jumped.word != "continue":
                raise
        finally:
            del self._variables[known:]
            self._depth = depth

    def _use(self, node: TemplateInvocation, dot: object) -> None:
        self._template(node.name, node)
        self._run(node.name, self._pipeline(node.pipeline, dot) if node.pipeline else None, node)

    def _template(self, name: str, node: TemplateNode) -> Sequence[TemplateNode]:
        found = self._templates.get(name)
        if found is None:
            known = ", ".join(sorted(self._templates))
            raise self._failed(f'template "{name}" not defined', node, f"defined: {known}")
        return found

    def _include(self, node: TemplateIdentifier, name: str, value: object) -> str:
        written, self._written = self._written, []
        self._run(name, value, node)
        text = "".join(self._written)
        self._written = written
        # The included text is only a value here. Its size counts when an action writes it.
        self._size -= len(text)
        return text

    def _run(self, name: str, value: object, node: TemplateNode) -> None:
        inside = self._template(name, node)
        variables, self._variables = self._variables, [("$", value)]
        self._walk(inside, value)
        self._variables = variables


class _Count(Sequence[tuple[object, object]]):
    """The integers from 0 to `end` - 1 for a loop over a number, created one by one."""

    def __init__(self, end: int) -> None:
        self._type = type(end)
        self._range = range(max(0, int(end)))

    def __len__(self) -> int:
        return len(self._range)

    def __getitem__(self, index: Any) -> Any:
        return (None, self._type(self._range[index]))
