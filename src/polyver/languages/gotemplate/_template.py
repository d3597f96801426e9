"""Templates that are parsed once and rendered many times, and templates in the fields of data."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from functools import lru_cache
from typing import Final, Literal

from polyver.core import PolyverError
from polyver.languages.gotemplate._budget import DEEPEST, RenderBudget, RenderLimits
from polyver.languages.gotemplate._errors import InvalidTemplate, RenderFailed
from polyver.languages.gotemplate._evaluation import GoTemplateSource
from polyver.languages.gotemplate._functions import TemplateFunction
from polyver.languages.gotemplate._library import FUNCTIONS, absence_of
from polyver.languages.gotemplate._nodes import TemplateNode
from polyver.languages.gotemplate._parser import parse
from polyver.languages.gotemplate._runtime import Rendering
from polyver.languages.gotemplate._values import TemplateFailure
from polyver.languages.values.manifests import dotted

__all__ = ["InvalidData", "Template", "compile_template", "render_value"]

Missing = Literal["error", "zero", "default"]
LIMITS: Final = RenderLimits()
_NAMES: Final = frozenset(FUNCTIONS)


class InvalidData(PolyverError):
    """The data for a template is not plain data."""


class Template:
    """A parsed template."""

    def __init__(
        self,
        source: GoTemplateSource,
        templates: Mapping[str, list[TemplateNode]],
        functions: Mapping[str, TemplateFunction],
        missing: Missing,
    ) -> None:
        self._source = source
        self._templates = templates
        self._functions = functions
        self._missing = missing

    @property
    def name(self) -> str:
        return self._source.name

    def render(self, data: object, *, limits: RenderLimits = LIMITS) -> str:
        """Render the template with data, and return the text; raise `RenderFailed` on an error.

        The data is not changed.

        >>> compile_template("{{ .name | upper }}: {{ len .ports }}").render(
        ...     {"name": "web", "ports": [80, 443]}
        ... )
        'WEB: 2'
        """
        return self._rendered(plain(data), RenderBudget(limits))

    def _rendered(self, data: object, budget: RenderBudget) -> str:
        run = Rendering(self._source, self._templates, self._functions, budget, self._missing)
        try:
            return run.run(self._source.name, data)
        except RecursionError:
            fact = "actions, calls and values nest too deeply"
            name = self._source.name
            raise RenderFailed(fact, name=name, line=1, column=1, near="the beginning") from None


def compile_template(
    text: str,
    *,
    name: str = "template",
    functions: Mapping[str, Callable[..., object]] | None = None,
    missing: Missing = "error",
) -> Template:
    """Parse a template; raise `InvalidTemplate` if it is invalid.

    `functions` has functions that the template can call in addition to the known functions, or
    instead of a known function with the same name. These functions take and return plain data.
    `missing` selects the value of a missing field: an error, nil (`default`), or the zero value
    (`zero`).

    >>> compile_template("{{ .a | uper }}")
    Traceback (most recent call last):
    polyver.languages.gotemplate._errors.InvalidTemplate: function "uper" not defined \
(template:1:9, near {{ .a | uper }}); did you mean upper?
    """
    known, names = FUNCTIONS, _NAMES
    if functions:
        known = {**FUNCTIONS, **{each: _given(each, functions[each]) for each in functions}}
        names = frozenset(known)
    try:
        templates = parse(text, name, names, absence_of)
    except RecursionError:
        raise InvalidTemplate(
            "actions nest too deeply", name=name, line=1, column=1, near="the beginning"
        ) from None
    return Template(GoTemplateSource(name, text), templates, known, missing)


def _given(name: str, run: Callable[..., object]) -> TemplateFunction:
    """Wrap a function of `compile_template`'s caller: its exceptions become template errors."""

    def call(*values: object) -> object:
        try:
            return plain(run(*values))
        except PolyverError as problem:
            raise TemplateFailure(str(problem)) from problem
        except (TypeError, ValueError) as problem:
            raise TemplateFailure(str(problem)) from problem

    return TemplateFunction(name, ("any",), variadic=True, run=call, budgeted=False, group="given")


_SURROGATE: Final = re.compile("[\ud800-\udfff]")


def plain(data: object, path: tuple[str | int, ...] = ()) -> object:
    """Copy plain data; raise `InvalidData` if it contains anything except plain data.

    `path` is the path of the data inside the outer data, for the error message.
    """
    match data:
        case None | bool():
            return data
        case str():
            return str(data) if data.isascii() else _SURROGATE.sub("\ufffd", data)
        case int() | float():
            return _number(data)
        case datetime():
            return data if data.tzinfo else data.replace(tzinfo=UTC)
    return _copied(data, path)


def _copied(data: object, path: tuple[str | int, ...]) -> object:
    if len(path) > DEEPEST:
        raise InvalidData(f"data nests more than {DEEPEST} levels deep", at=dotted(path[:8]))
    if isinstance(data, Mapping):
        return {_key(key, path): plain(each, (*path, key)) for key, each in data.items()}
    if isinstance(data, list | tuple):
        return [plain(each, (*path, index)) for index, each in enumerate(data)]
    fact = f"data has a value of type {type(data).__name__}, which templates do not support"
    raise InvalidData(fact, at=dotted(path), hint="pass plain data only")


def _number(number: float) -> int | float:
    """Convert an integer outside of 64 bits to a float, as Go does when it reads JSON."""
    if isinstance(number, int) and -(2**63) <= number < 2**63:
        return int(number)
    try:
        return float(number)
    except OverflowError:
        return math.inf if number > 0 else -math.inf


def _key(key: object, path: tuple[str | int, ...]) -> str:
    if not isinstance(key, str):
        fact = f"data has a key of type {type(key).__name__}, not string"
        raise InvalidData(fact, at=dotted(path))
    return _SURROGATE.sub("\ufffd", str(key))


_compiled = lru_cache(maxsize=1024)(compile_template)


def render_value(
    value: object,
    data: object,
    *,
    name: str = "template",
    missing: Missing = "error",
    limits: RenderLimits = LIMITS,
) -> object:
    """Render each string and each key in plain data as a template; other values are not changed.

    An error states the field, the line and the column: `name.args[0]:1:4`. The limits apply to all
    strings together.

    >>> render_value({"args": ["{{ .pod }}", 3], "{{ .pod }}": True}, {"pod": "a"})
    {'args': ['a', 3], 'a': True}
    """
    return _Values(plain(data), missing, RenderBudget(limits)).rendered(value, name, ())


class _Values:
    """Renders the strings inside a value."""

    def __init__(self, data: object, missing: Missing, budget: RenderBudget) -> None:
        self._data = data
        self._missing: Missing = missing
        self._budget = budget

    def rendered(self, value: object, name: str, path: tuple[str | int, ...]) -> object:
        if isinstance(value, str):
            return self._text(value, name, path)
        if len(path) > DEEPEST:
            raise InvalidData(f"a value nests more than {DEEPEST} levels deep", at=name)
        if isinstance(value, list | tuple):
            return [self.rendered(each, name, (*path, index)) for index, each in enumerate(value)]
        if isinstance(value, Mapping):
            return {
                self.rendered(key, name, (*path, str(key))): self.rendered(
                    each, name, (*path, str(key))
                )
                for key, each in value.items()
            }
        return value

    def _text(self, text: str, name: str, path: tuple[str | int, ...]) -> str:
        if "{{" not in text:
            return text
        shown = dotted(path)
        full_name = f"{name}{'' if shown.startswith('[') or not shown else '.'}{shown}"
        return _compiled(text, name=full_name, missing=self._missing)._rendered(
            self._data, self._budget
        )
