"""The JSONPath of printer columns, selectable fields and scale in a CustomResourceDefinition.

This is kube-apiserver's dialect of JSONPath with its quirks. A key in brackets is parsed like a key
after a dot, so dots in the key need a backslash. If a path does not fit an object, the result is
empty, and no error is raised.
"""

from __future__ import annotations

import operator
import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

from polyver.core import PolyverError

__all__ = ["InvalidJsonPath", "JsonPath", "parse_path"]

Step = Callable[[list[Any]], list[Any]]
_MISSING = object()


class InvalidJsonPath(PolyverError):
    """The path has a syntax error."""

    def __init__(self, path: str, problem: str) -> None:
        super().__init__(f"{path!r} is not a path: {problem}")
        self.path = path
        self.problem = problem


class _Misfit(Exception):
    """A step of a path does not fit the value: for example, an index if the value is not a list."""


@dataclass(frozen=True, slots=True)
class JsonPath:
    """A parsed path, with which values can be found in any number of objects."""

    text: str
    leading: tuple[str, ...]
    """The names of the fields up to the first step that is not a field."""
    steps: tuple[Step, ...]
    """The steps after the fields in `leading`, beginning with an index, a filter or `*`."""

    @property
    def names(self) -> tuple[str, ...] | None:
        """The names of the fields of a path such as `.spec.size`; None if it has other steps."""
        return None if self.steps else self.leading

    def find(self, value: Any) -> list[Any]:
        """Return all values at this path in an object; an empty list if the path does not fit.

        >>> parse_path('.conditions[?(@.type=="Ready")].status').find(
        ...     {"conditions": [{"type": "Ready", "status": "True"}, {"type": "Synced"}]}
        ... )
        ['True']
        """
        try:
            return _values(self, value)
        except _Misfit:
            return []


def parse_path(text: str) -> JsonPath:
    r"""Parse a path such as `.spec.ports[0].name` or `.metadata.labels.ex\.io/team`.

    >>> parse_path(".spec.ports[-1]").find({"spec": {"ports": [80, 443]}})
    [443]
    """
    parser = _Parser(text)
    parser.read()
    return JsonPath(text, tuple(parser.leading), tuple(parser.steps))


def _values(path: JsonPath, value: Any) -> list[Any]:
    for name in path.leading:
        if not isinstance(value, dict):
            value = _MISSING
            break
        value = value.get(name, _MISSING)
    values = [] if value is _MISSING else [value]
    return _run(path.steps, values) if path.steps else values


_FIELD = re.compile(r"(?:\\.|[^\\ \t\r\n.,\[\]$@{}])*", re.DOTALL)
_WORD = re.compile(r"[^ \t\r\n.,\[\]$@{}]*")
_NUMBER = re.compile(r"[+-]?[0-9.]*")
_KEY = re.compile(r"'([^']*)'")
_SLICE = re.compile(r"(-?[0-9]*)(?::(-?[0-9]*))?(?::(-?[0-9]*))?")
_COMPARISON = re.compile(r"([^!<>=]+)([!<>=]+)(.+)")
_CONSTANT = re.compile(r"""\s*("[^"]*"|'[^']*'|[-+]?[0-9.]+|true|false)\s*""")
_ESCAPES = {"n": "\n", "t": "\t", "r": "\r", "\\": "\\", '"': '"', "'": "'"}


class _Parser:
    """Parses a path from left to right; each element of the path becomes a step."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._at = 0
        self.leading: list[str] = []
        self.steps: list[Step] = []

    def read(self) -> None:
        while self._at < len(self._text) and self._text[self._at] != "}":
            self._read_one()

    def _read_one(self) -> None:
        first = self._text[self._at]
        if self._text.startswith("[?(", self._at):
            self._read_filter()
        elif self._text.startswith("..", self._at):
            self._read_descent()
        elif first == "[":
            self._read_brackets()
        elif first == ".":
            self._at += 1
            self._read_field()
        elif first in " @$":  # the object itself
            self._at += 1
        else:
            self._read_constant(first)

    def _read_constant(self, first: str) -> None:
        if first in "\r\n":
            raise self._refused("it contains a line break")
        if first in "\"'":
            self._add(_text(self._quoted(first)))
        elif first in "+-" or first.isdecimal():
            self._add(_constant(self._number()))
        elif first == "_" or first.isalnum():
            self._add(_word(self._take(_WORD)))
        else:
            raise self._refused(f"{first!r} is not allowed here")

    def _add(self, step: Step) -> None:
        self.steps.append(step)

    def _add_field(self, name: str) -> None:
        if self.steps:
            self._add(_field(name))
        else:
            self.leading.append(name)

    def _refused(self, problem: str) -> InvalidJsonPath:
        return InvalidJsonPath(self._text, problem)

    def _take(self, pattern: re.Pattern[str]) -> str:
        found = pattern.match(self._text, self._at)
        assert found is not None, "these patterns match the empty string"
        self._at = found.end()
        return found[0]

    def _read_field(self) -> None:
        name = self._take(_FIELD)
        if name == "*":
            self._add(_everything)
        else:
            self._add_field(name.replace("\\", ""))

    def _read_descent(self) -> None:
        if self.steps and self.steps[-1] is _descend:
            raise self._refused("one `..` follows another")
        self._at += 2
        self._add(_descend)
        following = self._text[self._at : self._at + 1]
        if following == "_" or following.isalnum():
            self._read_field()

    def _number(self) -> int | float:
        text = self._take(_NUMBER)
        try:
            return float(text) if "." in text else int(text)
        except ValueError:
            raise self._refused(f"{text} is not a number") from None

    def _quoted(self, quote: str) -> str:
        found = re.compile(rf"{quote}((?:\\.|[^\\\n])*?){quote}").match(self._text, self._at)
        if found is None:
            raise self._refused("a quote is not closed")
        self._at = found.end()
        return re.sub(r"\\(.)", lambda escape: self._unescaped(escape[1]), found[1])

    def _unescaped(self, letter: str) -> str:
        if letter not in _ESCAPES:
            raise self._refused(f"unknown escape \\{letter}")
        return _ESCAPES[letter]

    def _read_brackets(self) -> None:
        end = self._text.find("]", self._at)
        inside = self._text[self._at + 1 : end]
        if end < 0 or "\n" in inside:
            raise self._refused("a bracket is not closed")
        self._at = end + 1
        if "," in inside:
            parts = [f"[{part.strip(' ')}]" for part in inside.split(",")]
            self._add(_union([self._part(part) for part in parts]))
        elif key := _KEY.fullmatch(inside):
            self._add_key(key[1])
        else:
            self._add(self._slice(":" if inside == "*" else inside))

    def _part(self, text: str) -> JsonPath:
        try:
            return parse_path(text)
        except InvalidJsonPath as error:
            raise self._refused(error.problem) from None

    def _add_key(self, key: str) -> None:
        path = self._part(f".{key}")
        for name in path.leading:
            self._add_field(name)
        self.steps += path.steps

    def _slice(self, inside: str) -> Step:
        found = _SLICE.fullmatch(inside)
        if found is None:
            raise self._refused(f"{inside} is not an index")
        start, end, stride = (self._index(part) for part in found.groups())
        if found[2] is None:
            return _item(start or 0)
        return _slice(start or 0, end, 1 if stride is None else stride)

    def _index(self, text: str | None) -> int | None:
        if text == "-":
            raise self._refused("- is not an index")
        return int(text) if text else None

    def _read_filter(self) -> None:
        start = self._at + len("[?(")
        end = self._end_of_filter(start)
        if self._text[end + 1 : end + 2] != "]":
            raise self._refused("the bracket of a filter is not closed")
        self._at = end + 2
        inside = self._text[start:end]
        if found := _COMPARISON.fullmatch(inside):
            left, sign, right = found.groups()
            self._add(_filter(_comparison(self._part(left), sign, self._part(right))))
        else:
            self._add(_filter(_existence(self._part(inside))))

    def _end_of_filter(self, start: int) -> int:
        """Return the position of the closing parenthesis; ignore parentheses inside quotes."""
        quote, closed = "", False
        for at in range(start, len(self._text)):
            letter = self._text[at]
            if letter == "\n":
                break
            if letter in "\"'":
                closed = closed or (letter == quote and self._text[at - 1] != "\\")
                quote = quote or letter
            elif letter == ")" and bool(quote) == closed:
                return at
        raise self._refused("a filter is not closed")


def _field(name: str) -> Step:
    def step(values: list[Any]) -> list[Any]:
        return [each[name] for each in values if isinstance(each, dict) and name in each]

    return step


def _everything(values: list[Any]) -> list[Any]:
    return [child for value in values for child in _children(value)]


def _children(value: Any) -> list[Any]:
    if isinstance(value, dict):
        return list(value.values())
    return value if isinstance(value, list) else []


def _descend(values: list[Any]) -> list[Any]:
    """Return the values and all values inside them, for `..`; leave out empty values.

    A value comes directly before the values inside it.
    """
    found: list[Any] = []
    waiting = values[::-1]
    while waiting:
        value = waiting.pop()
        if value and isinstance(value, dict | list | str):
            found.append(value)
            waiting.extend(reversed(_children(value)))
    return found


def _item(index: int) -> Step:
    def step(values: list[Any]) -> list[Any]:
        try:
            return [each[index] for each in _lists(values)]
        except IndexError:
            raise _Misfit from None

    return step


def _slice(start: int, end: int | None, stride: int) -> Step:
    def step(values: list[Any]) -> list[Any]:
        found: list[Any] = []
        for each in _lists(values):
            size = len(each)
            first = start + size if start < 0 else start
            last = size if end is None else end + size if end < 0 else end
            if first == last:
                return found  # kube-apiserver also skips the remaining lists
            if not 0 <= first < last <= size or stride <= 0:
                raise _Misfit
            found += each[first:last:stride]
        return found

    return step


def _lists(values: list[Any]) -> Iterable[list[Any]]:
    for value in values:
        if isinstance(value, list):
            yield value
        elif value is not None:
            raise _Misfit


def _union(parts: list[JsonPath]) -> Step:
    step_lists = [(*map(_field, part.leading), *part.steps) for part in parts]
    return lambda values: [found for step_list in step_lists for found in _run(step_list, values)]


def _run(steps: Iterable[Step], values: list[Any]) -> list[Any]:
    for step in steps:
        values = step(values)
    return values


def _constant(value: Any) -> Step:
    return lambda values: [value] * len(values)


def _text(value: str) -> Step:
    return lambda _: [value]


def _word(word: str) -> Step:
    if word in ("true", "false"):
        return _constant(word == "true")

    def step(_: list[Any]) -> list[Any]:
        raise _Misfit  # the words range and end exist only in templates of kubectl

    return step


Test = Callable[[Any], bool]


def _filter(test: Test) -> Step:
    def step(values: list[Any]) -> list[Any]:
        if not all(isinstance(each, list) for each in values):
            raise _Misfit
        return [item for each in values for item in each if test(item)]

    return step


def _existence(path: JsonPath) -> Test:
    def test(item: Any) -> bool:
        try:
            return bool(_values(path, item))
        except _Misfit:
            return True  # kube-apiserver also keeps the item

    return test


_SIGNS: dict[str, Callable[[Any, Any], bool]] = {
    "==": operator.eq,
    "!=": operator.ne,
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
}
_EQUALITY = {sign: _SIGNS[sign] for sign in ("==", "!=")}
_SIGNS_OF = {bool: _EQUALITY, int: _SIGNS, float: _SIGNS, str: _SIGNS}


def _comparison(left: JsonPath, sign: str, right: JsonPath) -> Test:
    constant = right.find(None) if _CONSTANT.fullmatch(right.text) else None

    def test(item: Any) -> bool:
        ours = _values(left, item)
        if not ours:
            return False
        theirs = _values(right, item) if constant is None else constant
        if len(ours) > 1 or len(theirs) > 1:
            raise _Misfit
        return bool(theirs) and _compares(ours[0], sign, theirs[0])

    return test


def _compares(left: Any, sign: str, right: Any) -> bool:
    """Report whether a comparison is true; `sign` is its operator, such as `==`.

    Raise `_Misfit` if the types of the values differ, for example for 1 and 1.0.
    """
    signs = _SIGNS_OF.get(type(left))
    if signs is None or sign not in signs or type(left) is not type(right):
        raise _Misfit
    return signs[sign](left, right)
