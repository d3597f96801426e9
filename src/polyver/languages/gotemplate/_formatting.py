"""The template function `printf`, which fills a format string such as `%05d` as Go does."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime

from polyver.languages.gotemplate._budget import RenderBudget
from polyver.languages.gotemplate._printing import (
    FormatSpec,
    printed,
    written_float,
    written_int,
    written_text,
)
from polyver.languages.gotemplate._times import source_text, time_text
from polyver.languages.gotemplate._values import (
    NilList,
    NilStrings,
    TemplateFailure,
    encoded,
    type_of,
)

__all__ = ["print_formatted"]

_MOST_DIGITS = 1_000_000
_FLAGS = {"#": "sharp", "0": "zero", "+": "plus", "-": "minus", " ": "space"}
_INDEX = re.compile(r"\[([^\]]*)\]")


def print_formatted(budget: RenderBudget, layout: str, *values: object) -> str:
    """Replace the verbs of a format string, such as `%d`, by values.

    >>> from polyver.languages.gotemplate._budget import RenderLimits
    >>> print_formatted(RenderBudget(RenderLimits()), "%05d|%-4s|%d", 42, "a", "b")
    '00042|a   |%!d(string=b)'
    """
    return _Formatter(budget, layout, values).run()


@dataclass(slots=True)
class _Formatter:
    """Reads a format string from left to right; each verb, such as `%d`, takes the next value."""

    budget: RenderBudget
    layout: str
    values: Sequence[object]
    at: int = 0
    used: int = 0
    reordered: bool = False
    fits: bool = True
    indexed: bool = False
    """True directly after an index in brackets, such as `[2]` in `%[2]d`."""

    def run(self) -> str:
        parts: list[str] = []
        size = 0
        while self.at < len(self.layout):
            sign = self.layout.find("%", self.at)
            end = sign if sign >= 0 else len(self.layout)
            parts.append(self.layout[self.at : end])
            self.at = end + 1
            if sign >= 0:
                parts.append(self._place())
            size += sum(map(len, parts[-2:]))
            self.budget.fit(size)
        if not self.reordered and self.used < len(self.values):
            parts.append(self._extra())
        return "".join(parts)

    def _extra(self) -> str:
        shown = [
            "<nil>" if value is None else f"{type_of(value)}={printed(value, self.budget)}"
            for value in self.values[self.used :]
        ]
        return f"%!(EXTRA {', '.join(shown)})"

    def _place(self) -> str:
        self.fits, self.indexed = True, False
        shape = FormatSpec()
        while self.layout[self.at : self.at + 1] in _FLAGS and self.at < len(self.layout):
            shape = replace(shape, **{_FLAGS[self.layout[self.at]]: True})
            self.at += 1
        self._choose()
        shape, wrong = self._width(shape)
        shape, also = self._precision(shape)
        if not self.indexed:
            self._choose()
        if self.at >= len(self.layout):
            return f"{wrong}{also}%!(NOVERB)"
        verb = self.layout[self.at]
        self.at += 1
        return f"{wrong}{also}{self._shown(verb, shape)}"

    def _shown(self, verb: str, shape: FormatSpec) -> str:
        if verb == "%":
            return "%"
        if not self.fits:
            return f"%!{verb}(BADINDEX)"
        if self.used >= len(self.values):
            return f"%!{verb}(MISSING)"
        value = self.values[self.used]
        self.used += 1
        if verb == "v":
            shape = replace(shape, source=shape.sharp, sharp=False, plus=False)
        return _Writer(self.budget, verb, shape).write(value)

    def _width(self, shape: FormatSpec) -> tuple[FormatSpec, str]:
        if self.layout.startswith("*", self.at):
            self.at += 1
            width = self._number_given()
            self.indexed = False
            if width is None:
                return shape, "%!(BADWIDTH)"
            if width < 0:
                return replace(shape, width=-width, minus=True, zero=False), ""
            return replace(shape, width=width), ""
        digits = self._digits()
        if not digits:
            return shape, ""
        self.fits = self.fits and not self.indexed
        return replace(shape, width=int(digits)), ""

    def _precision(self, shape: FormatSpec) -> tuple[FormatSpec, str]:
        if not self.layout.startswith(".", self.at) or self.at + 1 >= len(self.layout):
            return shape, ""
        self.at += 1
        self.fits = self.fits and not self.indexed
        self._choose()
        if self.layout.startswith("*", self.at):
            self.at += 1
            self.indexed = False
            digits = self._number_given()
            if digits is None or digits < 0:
                return shape, "%!(BADPREC)"
            return replace(shape, precision=digits), ""
        return replace(shape, precision=int(self._digits() or 0)), ""

    def _digits(self) -> str:
        found = re.compile("[0-9]*").match(self.layout, self.at)
        assert found is not None
        if len(found[0]) > 7 or int(found[0] or 0) > _MOST_DIGITS:
            raise TemplateFailure(f"a width of {found[0][:20]} is more than {_MOST_DIGITS}")
        self.at = found.end()
        return found[0]

    def _number_given(self) -> int | None:
        if self.used >= len(self.values):
            return None
        value = self.values[self.used]
        self.used += 1
        if isinstance(value, bool) or not isinstance(value, int):
            return None
        return int(value) if abs(value) <= _MOST_DIGITS else None

    def _choose(self) -> None:
        """Read an index in brackets, such as `[2]` in `%[2]d`: the verb takes the second value."""
        if not self.layout.startswith("[", self.at):
            return
        self.reordered = True
        found = _INDEX.match(self.layout, self.at)
        if found is None:
            self.fits = False
            self.at += 1
            return
        self.at = found.end()
        number = int(found[1]) if re.fullmatch("[0-9]{1,7}", found[1]) else 0
        if not 1 <= number <= len(self.values):
            self.fits = False
            return
        self.used, self.indexed = number - 1, True


@dataclass(frozen=True, slots=True)
class _Writer:
    """Writes values as one verb and its flags require, such as `%05d`."""

    budget: RenderBudget
    verb: str
    shape: FormatSpec

    def write(self, value: object) -> str:
        text = self._top(value)
        self.budget.hold(len(text))
        return text

    def _top(self, value: object) -> str:
        if value is None and self.verb in "Tv":
            return self.shape.padded("<nil>")
        if value is None:
            return f"%!{self.verb}(<nil>)"
        if self.verb == "T":
            return self.shape.padded(self.shape.cut(type_of(value)))
        return self._value(value, 0)

    def _value(self, value: object, depth: int) -> str:
        match value:
            case None:
                return "interface {}(nil)" if self.shape.source else "<nil>"
            case list():
                return self._list(value, depth)
            case dict():
                return self._dict(value, depth)
            case bool() | int() | float() | str():
                text = self._scalar(value)
                return self._bad(value) if text is None else text
        return self._special(value)

    def _scalar(self, value: bool | float | str) -> str | None:
        match value:
            case bool():
                text = "true" if value else "false"
                return self.shape.padded(text) if self.verb in "tv" else None
            case int():
                return written_int(value, self.verb, self.shape)
            case float():
                return written_float(value, self.verb, self.shape)
        return written_text(value, self.verb, self.shape)

    def _special(self, value: object) -> str:
        if self.shape.source:
            if isinstance(value, datetime) and not value.utcoffset():
                return source_text(value)
            raise TemplateFailure(f"%#v of {type_of(value)} prints Go internals; use %v")
        text = time_text(value) if isinstance(value, datetime) else str(value)
        written = written_text(text, self.verb, self.shape)
        if written is None:
            raise TemplateFailure(f"%{self.verb} of {type_of(value)} prints Go internals; use %v")
        return written

    def _bad(self, value: object) -> str:
        shape = replace(self.shape, source=False)
        shown = _Writer(self.budget, "v", shape)._value(value, 0)
        return f"%!{self.verb}({type_of(value)}={shown})"

    def _list(self, value: list[object], depth: int) -> str:
        self.budget.dive(depth)
        name = type_of(value) if self.shape.source else ""
        if self.shape.source and isinstance(value, NilList | NilStrings):
            return f"{name}(nil)"
        between = ", " if self.shape.source else " "
        inside = self.budget.joined(between, (self._value(each, depth + 1) for each in value))
        return f"{name}{{{inside}}}" if self.shape.source else f"[{inside}]"

    def _dict(self, value: dict[str, object], depth: int) -> str:
        self.budget.dive(depth)
        between = ", " if self.shape.source else " "
        pairs = (
            f"{self._value(key, depth + 1)}:{self._value(value[key], depth + 1)}"
            for key in sorted(value, key=encoded)
        )
        inside = self.budget.joined(between, pairs)
        return f"{type_of(value)}{{{inside}}}" if self.shape.source else f"map[{inside}]"
