"""Label and field selectors, with kube-apiserver's error messages."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from polyver.core import PolyverError
from polyver.languages.values.names import label_key_problems, label_value_problems

__all__ = [
    "FieldRequirement",
    "InvalidSelector",
    "LabelRequirement",
    "parse_field_selector",
    "parse_label_selector",
    "selects",
]


class InvalidSelector(PolyverError):
    """Raised if a selector cannot be parsed; the message is kube-apiserver's."""


@dataclass(frozen=True, slots=True)
class LabelRequirement:
    """A condition on one label, such as `app in (web,db)`."""

    key: str
    operator: str
    values: frozenset[str] = frozenset()

    def matches(self, labels: Mapping[str, str]) -> bool:
        value = labels.get(self.key)
        match self.operator:
            case "exists":
                return value is not None
            case "!":
                return value is None
            case "in" | "=" | "==":
                return value in self.values
            case "notin" | "!=":
                return value is None or value not in self.values
            case comparison:
                return value is not None and self._compares(comparison, value)

    def _compares(self, comparison: str, value: str) -> bool:
        [limit] = self.values
        if not _INTEGER.fullmatch(value):
            return False
        return int(value) > int(limit) if comparison == ">" else int(value) < int(limit)


_INTEGER = re.compile(r"[-+]?[0-9]{1,18}")
_TOKEN = re.compile(r"\s*(==|!=|[=!<>(),]|[^\s=!<>(),]+|$)")
_OPERATORS = {"in", "notin", "=", "==", "!=", ">", "<"}
_SYMBOLS = {"", "=", "==", "!=", "!", "<", ">", "(", ")", ","}


def parse_label_selector(text: str) -> tuple[LabelRequirement, ...]:
    """Parse a label selector such as `app in (web,db),tier,!old,size>3`.

    >>> [wanted.matches({"app": "web"}) for wanted in parse_label_selector("app=web,!old")]
    [True, True]
    """
    return _LabelParser(text).requirements()


class _LabelParser:
    """Parses a label selector from left to right."""

    def __init__(self, text: str) -> None:
        self._tokens = [token.strip() for token in _TOKEN.findall(text.strip())]
        self._at = 0

    def _next(self) -> str:
        return self._tokens[self._at] if self._at < len(self._tokens) else ""

    def _take(self) -> str:
        word = self._next()
        self._at += 1
        return word

    def requirements(self) -> tuple[LabelRequirement, ...]:
        found: list[LabelRequirement] = []
        if self._next() == "":
            return ()
        while True:
            if self._next() in _SYMBOLS - {"!"}:
                expected = "expected: !, identifier, or 'end of string'"
                raise InvalidSelector(f"found '{self._next()}', {expected}")
            try:
                found.append(self._requirement())
            except InvalidSelector as error:
                raise InvalidSelector(f"unable to parse requirement: {error}") from None
            word = self._take()
            if word == "":
                return tuple(found)
            if word != ",":
                raise InvalidSelector(f"found '{word}', expected: ',' or 'end of string'")
            if self._next() in _SYMBOLS - {"!"}:
                raise InvalidSelector(f"found '{self._next()}', expected: identifier after ','")

    def _requirement(self) -> LabelRequirement:
        absent = self._next() == "!"
        if absent:
            self._take()
        key = self._identifier()
        for problem in label_key_problems(key):
            raise InvalidSelector(f'<nil>: Invalid value: "{key}": {problem}')
        if absent or self._next() in ("", ","):
            return LabelRequirement(key, "!" if absent else "exists")
        operator = self._take()
        if operator not in _OPERATORS:
            raise InvalidSelector(f"found '{operator}', expected: in, notin, =, ==, !=, gt, lt")
        if operator in ("in", "notin"):
            values = self._set()
        else:
            values = ["" if self._next() in ("", ",") else self._identifier()]
        for number, value in enumerate(values):
            if operator in ("<", ">") and not _INTEGER.fullmatch(value):
                expected = "for 'Gt', 'Lt' operators, the value must be an integer"
                raise InvalidSelector(f'values[{number}]: Invalid value: "{value}": {expected}')
            for problem in label_value_problems(value):
                place = f"values[{number}][{key}]"
                raise InvalidSelector(f'{place}: Invalid value: "{value}": {problem}')
        return LabelRequirement(key, operator, frozenset(values))

    def _identifier(self) -> str:
        word = self._take()
        if word in _SYMBOLS:
            raise InvalidSelector(f"found '{word}', expected: identifier")
        return word

    def _set(self) -> list[str]:
        word = self._take()
        if word != "(":
            raise InvalidSelector(f"found '{word}' expected: '('")
        values: list[str] = []
        while True:
            values.append("" if self._next() in (",", ")") else self._identifier())
            word = self._take()
            if word == ")":
                return values
            if word != ",":
                raise InvalidSelector(f"found '{word}', expected: ',' or ')'")


@dataclass(frozen=True, slots=True)
class FieldRequirement:
    """A condition on one field, such as `metadata.name=a`."""

    field: str
    value: str
    equal: bool

    def matches(self, value_of: Callable[[str], str]) -> bool:
        return (value_of(self.field) == self.value) is self.equal


_PART = re.compile(r"(?:[^\\,]|\\.)*")
_ESCAPED = re.compile(r"\\(.?)")


def parse_field_selector(text: str) -> tuple[FieldRequirement, ...]:
    r"""Parse a field selector such as `metadata.name=a,spec.color!=red`.

    A backslash escapes a comma, an equals sign or a backslash.

    >>> parse_field_selector(r"metadata.name=a\,b,")[0].value
    'a,b'
    """
    return tuple(_field_requirement(part) for part in _parts(text) if part)


def _parts(text: str) -> list[str]:
    parts, rest = [], text
    while rest:
        found = _PART.match(rest)
        end = found.end() if found and found.end() else 0
        if end < len(rest) and rest[end] != ",":
            end = len(rest)  # the rest is a backslash, which `_unescaped` refuses
        parts.append(rest[:end])
        rest = rest[end + 1 :]
    return parts


def _field_requirement(part: str) -> FieldRequirement:
    found = re.fullmatch(r"((?:[^\\=!]|\\.|!(?!=))*)(==|!=|=)(.*)", part, re.DOTALL)
    if found is None:
        raise InvalidSelector(f"invalid selector: '{part}'; can't understand '{part}'")
    field, operator, value = found.groups()
    return FieldRequirement(field, _unescaped(value), operator != "!=")


def _unescaped(value: str) -> str:
    for escaped in _ESCAPED.findall(value):
        if escaped not in ("\\", ",", "="):
            sequence = f"\\{escaped}"
            raise InvalidSelector(f"invalid field selector: invalid escape sequence: {sequence}")
    if re.search(r"(?<!\\)=", _ESCAPED.sub("", value)):
        raise InvalidSelector(f"invalid field selector: unescaped character in field: {value}")
    return _ESCAPED.sub(r"\1", value)


def selects(selector: Mapping[str, Any] | None, labels: Mapping[str, str] | None) -> bool:
    """Report whether a LabelSelector matches labels; if the selector is None, return False.

    >>> selects({"matchExpressions": [{"key": "a", "operator": "Exists"}]}, {"a": "1"})
    True
    """
    if selector is None:
        return False
    found = labels or {}
    wanted = selector.get("matchLabels") or {}
    if any(found.get(key) != value for key, value in wanted.items()):
        return False
    return all(_holds(one, found) for one in selector.get("matchExpressions") or ())


def _holds(one: Mapping[str, Any], labels: Mapping[str, str]) -> bool:
    key, values = one.get("key", ""), one.get("values") or []
    match one.get("operator"):
        case "In":
            return labels.get(key) in values
        case "NotIn":
            return labels.get(key) not in values
        case "Exists":
            return key in labels
        case "DoesNotExist":
            return key not in labels
    return False
