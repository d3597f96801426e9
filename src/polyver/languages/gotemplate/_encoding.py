"""Template functions for base64, base32, JSON and YAML; YAML is written in the style of Helm."""

from __future__ import annotations

import base64
import json
import math
import re
from collections.abc import Mapping
from typing import Any

import yaml

from polyver.languages.gotemplate._budget import DEEPEST, RenderBudget
from polyver.languages.gotemplate._functions import FunctionTable
from polyver.languages.gotemplate._times import formatted
from polyver.languages.gotemplate._values import (
    NilList,
    NilStrings,
    TemplateFailure,
    Version,
    decoded,
    encoded,
)
from polyver.languages.values.canonical_values import base64_problem
from polyver.languages.values.manifests import InvalidManifest, load_manifests
from polyver.languages.values.parse import scalar
from polyver.languages.values.strings import float_text, number_text

__all__ = ["ENCODING", "yaml_text"]

ENCODING = FunctionTable("encodings")
ENCODING.put("b64enc", "string", lambda text: base64.b64encode(encoded(text)).decode())
ENCODING.put("b32enc", "string", lambda text: base64.b32encode(encoded(text)).decode())


@ENCODING.add("b64dec", "string")
def _b64dec(text: str) -> str:
    """Decode base64.

    If the input is invalid, return the error message as the result, as sprig does.
    """
    content = encoded(text)
    problem = base64_problem(content.decode("latin-1"))
    return problem or decoded(base64.b64decode(content))


@ENCODING.add("b32dec", "string")
def _b32dec(text: str) -> str:
    content = encoded(text).replace(b"\n", b"").replace(b"\r", b"")
    at = _base32_end(content.decode("latin-1"))
    if at is not None:
        return f"illegal base32 data at input byte {at}"
    return decoded(base64.b32decode(_ended(content)))


_ALPHABET = frozenset("ABCDEFGHIJKLMNOPQRSTUVWXYZ234567")


def _ended(content: bytes) -> bytes:
    """Return base32 text without the bytes at its end that do not form a group of eight bytes."""
    return content[: len(content) // 8 * 8]


def _base32_end(text: str) -> int | None:
    """Return the position of the first byte that Go rejects as base32; None if all are valid."""
    for at, char in enumerate(text):
        held = at % 8
        if char == "=" and held >= 2 and len(text) - at - 1 < 8:
            return _padding_end(text, at, held)
        if char not in _ALPHABET:
            return at
    return len(text) - len(text) % 8 if len(text) % 8 else None


def _padding_end(text: str, at: int, held: int) -> int | None:
    after = text[at + 1 :]
    if len(after) + held < 7:
        return len(text)
    wrong = next((index for index, char in enumerate(after[: 7 - held]) if char != "="), None)
    if wrong is not None:
        return at + wrong
    return at if held in (3, 6) else None


# JSON

_ESCAPES = {'"': '\\"', "\\": "\\\\", "\b": "\\b", "\f": "\\f", "\n": "\\n", "\r": "\\r"}
_ESCAPES |= {"\t": "\\t", "\u2028": "\\u2028", "\u2029": "\\u2029"}
_MARKUP = {"<": "\\u003c", ">": "\\u003e", "&": "\\u0026"}


class _JsonWriter:
    """Writes values as JSON with sorted keys."""

    def __init__(self, budget: RenderBudget, *, indent: str = "", markup: bool = False) -> None:
        self._budget = budget
        self._indent = indent
        self._escapes = _ESCAPES if markup else _ESCAPES | _MARKUP

    def write(self, value: object, depth: int = 0) -> str:
        match value:
            case str():
                return self._text(value)
            case dict():
                pairs = [
                    f"{self._text(key)}:{' ' if self._indent else ''}{self._inside(each, depth)}"
                    for key, each in sorted(value.items(), key=lambda pair: encoded(pair[0]))
                ]
                return self._joined("{", pairs, "}", depth)
            case list():
                if isinstance(value, NilList | NilStrings):
                    return "null"
                return self._joined("[", [self._inside(each, depth) for each in value], "]", depth)
        return self._scalar(value)

    def _inside(self, value: object, depth: int) -> str:
        self._budget.dive(depth)
        return self.write(value, depth + 1)

    def _joined(self, start: str, parts: list[str], end: str, depth: int) -> str:
        if not parts:
            return start + end
        if not self._indent:
            return f"{start}{self._budget.joined(',', parts)}{end}"
        line = "\n" + self._indent * depth
        inside = self._budget.joined(f",{line}{self._indent}", parts)
        return f"{start}{line}{self._indent}{inside}{line}{end}"

    def _text(self, text: str) -> str:
        return f'"{"".join(map(self._char, text))}"'

    def _char(self, char: str) -> str:
        if char in self._escapes:
            return self._escapes[char]
        if 0xD800 <= ord(char) < 0xE000:
            return "\\ufffd"
        return char if char >= " " else f"\\u{ord(char):04x}"

    def _scalar(self, value: Any) -> str:
        if value is None:
            return "null"
        if isinstance(value, bool):
            return "true" if value else "false"
        if isinstance(value, int):
            return str(int(value))
        if isinstance(value, float):
            return _json_float(value)
        if isinstance(value, Version):
            return f'"{value}"'
        return f'"{formatted(value, "2006-01-02T15:04:05.999999999Z07:00")}"'


def _json_float(value: float) -> str:
    if not math.isfinite(value):
        raise TemplateFailure(f"json: unsupported value: {value}")
    if value == 0 and math.copysign(1, value) < 0:
        return "-0"
    return float_text(value).replace("e-0", "e-")


@ENCODING.add("mustToJson", "any", budgeted=True)
def _must_to_json(budget: RenderBudget, value: object) -> str:
    return _JsonWriter(budget).write(value)


@ENCODING.add("mustToPrettyJson", "any", budgeted=True)
def _must_to_pretty_json(budget: RenderBudget, value: object) -> str:
    return _JsonWriter(budget, indent="  ").write(value)


@ENCODING.add("toRawJson mustToRawJson", "any", budgeted=True)
def _to_raw_json(budget: RenderBudget, value: object) -> str:
    return _JsonWriter(budget, markup=True).write(value)


@ENCODING.add("toJson", "any", budgeted=True)
def _to_json(budget: RenderBudget, value: object) -> str:
    return "" if _has_odd_number(budget, value) else _must_to_json(budget, value)


@ENCODING.add("toPrettyJson", "any", budgeted=True)
def _to_pretty_json(budget: RenderBudget, value: object) -> str:
    return "" if _has_odd_number(budget, value) else _must_to_pretty_json(budget, value)


def _has_odd_number(budget: RenderBudget, value: object, depth: int = 0) -> bool:
    """Report whether a value contains NaN or infinity, which JSON cannot express."""
    budget.dive(depth)
    if isinstance(value, dict):
        return any(_has_odd_number(budget, each, depth + 1) for each in value.values())
    if isinstance(value, list):
        return any(_has_odd_number(budget, each, depth + 1) for each in value)
    return isinstance(value, float) and not math.isfinite(value)


class _NoJson(ValueError):
    pass


def _refuse(word: str) -> float:
    raise _NoJson(f"{word} is not JSON")


_DECODER = json.JSONDecoder(parse_int=float, parse_constant=_refuse)


@ENCODING.add("mustFromJson", "string")
def _must_from_json(text: str) -> object:
    """Parse JSON; every number becomes a float, as in Go."""
    if max(text.count("["), text.count("{")) > DEEPEST and _depth(text) > DEEPEST:
        raise TemplateFailure(f"JSON nests more than {DEEPEST} levels deep")
    try:
        value = _DECODER.decode(text)
    except (ValueError, RecursionError) as problem:
        raise TemplateFailure(f"it is not JSON: {problem}") from None
    return value


def _depth(text: str) -> int:
    depth = deepest = 0
    for char in text:
        depth += {"[": 1, "{": 1, "]": -1, "}": -1}.get(char, 0)
        deepest = max(deepest, depth)
    return deepest


@ENCODING.add("fromJson", "string")
def _from_json(text: str) -> object:
    try:
        return _must_from_json(text)
    except TemplateFailure:
        return None


# YAML, with Helm's names


@ENCODING.add("toYaml mustToYaml", "any", budgeted=True)
def _to_yaml(budget: RenderBudget, value: object) -> str:
    text = yaml_text(_plain(budget, value))
    budget.hold(len(text))
    return text


def _plain(budget: RenderBudget, value: object, depth: int = 0) -> object:
    """Convert a template value to plain data with sorted keys."""
    budget.dive(depth)
    match value:
        case None | NilList() | NilStrings():
            return None
        case dict():
            names = sorted(value, key=encoded)
            return {_good(key): _plain(budget, value[key], depth + 1) for key in names}
        case list():
            return [_plain(budget, each, depth + 1) for each in value]
        case bool() | float():
            return value
        case int():
            return int(value)
    return _good(value if isinstance(value, str) else json.loads(_JsonWriter(budget).write(value)))


def _good(text: str) -> str:
    return encoded(text).decode("utf-8", "replace")


@ENCODING.add("fromYaml mustFromYaml", "string")
def _from_yaml(text: str) -> object:
    """Parse YAML and return the value of its first document."""
    try:
        found = load_manifests(text, "fromYaml")
    except InvalidManifest as problem:
        raise TemplateFailure(str(problem)) from None
    return found[0].value if found else {}


@ENCODING.add("fromJsonArray fromYamlArray", "string")
def _from_array(text: str) -> object:
    found = _from_yaml(text)
    if not isinstance(found, list):
        raise TemplateFailure("it is not a list")
    return found


_TAG = "tag:yaml.org,2002:"
_TAGS: Mapping[type, str] = {
    type(None): f"{_TAG}null",
    bool: f"{_TAG}bool",
    int: f"{_TAG}int",
    float: f"{_TAG}float",
    str: f"{_TAG}str",
}


class _Dumper(yaml.CSafeDumper):
    """Writes YAML: strings of several lines as blocks, and in quotes each string that needs quotes.

    A string needs quotes if a YAML parser would otherwise read it as another type.
    """

    def resolve(self, kind: type, value: str, implicit: tuple[bool, bool]) -> str:
        if kind is yaml.ScalarNode and implicit[0]:
            return _TAGS[type(_read(value))]
        tag: str = super().resolve(kind, value, implicit)  # type: ignore[no-untyped-call]
        return tag

    def ignore_aliases(self, data: object) -> bool:  # noqa: ARG002 - PyYAML's signature
        return True


_MOMENT = re.compile(
    r"[0-9]{4}-[0-9]{1,2}-[0-9]{1,2}"
    r"(?:(?:[Tt]| )[0-9]{1,2}:[0-9]{1,2}:[0-9]{1,2}(?:\.[0-9]+)?(?:Z|[+-][0-9]{2}:[0-9]{2})?)?"
)
_SIXTIES = re.compile(r"[-+]?[0-9][0-9_]*(?::[0-5]?[0-9])+(?:\.[0-9_]*)?")
_BOOLEANS = frozenset("y Y yes Yes YES n N no No NO on On ON off Off OFF".split())


def _read(text: str) -> object:
    """Return the value that a YAML parser would read from a string without quotes.

    The caller quotes the string if this value is not a string. Some strings, such as `yes`, are
    other values only in YAML 1.1. For these, return True, so that the caller quotes them too.
    """
    if text in _BOOLEANS or _MOMENT.fullmatch(text) or _SIXTIES.fullmatch(text):
        return True
    return scalar(text)


def _represent_text(dumper: _Dumper, text: str) -> yaml.ScalarNode:
    if "\n" in text:
        return dumper.represent_scalar(f"{_TAG}str", text, style="|")
    plain = isinstance(_read(text), str) and text != "<<"
    return dumper.represent_scalar(f"{_TAG}str", text, style=None if plain else '"')


def _represent_float(dumper: _Dumper, value: float) -> yaml.ScalarNode:
    if value.is_integer() and abs(value) < 2**63:
        return dumper.represent_int(int(value))
    text = number_text(value)
    return dumper.represent_scalar(_TAGS[type(_read(text))], text)


_Dumper.add_representer(str, _represent_text)
_Dumper.add_representer(float, _represent_float)


def yaml_text(value: object) -> str:
    """Write plain data as YAML, without a newline at the end.

    >>> print(yaml_text({"a": "1", "b": [1, "x: y"]}))
    a: "1"
    b:
    - 1
    - 'x: y'
    """
    text: str = yaml.dump(
        value,
        Dumper=_Dumper,
        sort_keys=False,
        allow_unicode=True,
        default_flow_style=False,
        width=1 << 30,
    )
    return text.removesuffix("...\n").removesuffix("\n")
