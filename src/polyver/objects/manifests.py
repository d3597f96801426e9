"""Manifests as text: YAML is read the way kubectl reads it, and every error knows its line.

PyYAML's own constructors follow YAML 1.1 where kubectl's library does not, accept doubled keys and
nest without bound, so values are built here from the parser's events.
"""

from __future__ import annotations

import base64
import binascii
import math
import operator
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from decimal import Decimal
from typing import TypeVar

import msgspec
import yaml
from yaml import events

from polyver.core import PolyverError
from polyver.objects.codec import decode_json

__all__ = ["Document", "InvalidManifest", "Path", "dump_yaml", "load_manifests", "scalar"]

T = TypeVar("T")
Path = tuple[str | int, ...]

_DEEPEST = 200
_MOST_PER_CHARACTER = 10  # bounds what aliases stand for, all together


class InvalidManifest(PolyverError):
    """A manifest that cannot be used, and the file, line and field that say why."""


@dataclass(slots=True)
class _Mark:
    """The line of a value, and those of what is in it."""

    line: int
    inside: dict[str | int, _Mark] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Document:
    """One document of a file: its value, and where each part of it was written."""

    value: object
    source: str
    _mark: _Mark
    _path: Path = ()

    def place(self, *path: str | int) -> str:
        """Where a field was written, or the nearest thing around it: `defs.yaml:7, spec.version`.

        >>> load_manifests("a: 1\\nb: [2]", "x.yaml")[0].place("b", 0)
        'x.yaml:2, b[0]'
        """
        mark = self._mark
        for step in path:
            if step not in mark.inside:
                break
            mark = mark.inside[step]
        where = f"{self.source}:{mark.line}"
        whole = self._path + path
        return f"{where}, {_dotted(whole)}" if whole else where

    def read(self, kind: type[T]) -> T:
        """The value as a typed structure."""
        try:
            return msgspec.convert(self.value, kind)
        except msgspec.ValidationError as error:
            fact, _, where = str(error).partition(" - at ")
            path = _steps(where.strip("`"))
            raise InvalidManifest(_plain(fact), at=self.place(*path), hint=_advice(fact)) from None

    def part(self, *path: str | int) -> Document:
        """What is at a path, as a document of its own."""
        value, mark = self.value, self._mark
        for step in path:
            value = operator.getitem(value, step)  # type: ignore[call-overload]
            mark = mark.inside.get(step, mark)
        return Document(value, self.source, mark, self._path + path)

    def error(self, fact: str, *path: str | int, hint: str = "") -> InvalidManifest:
        return InvalidManifest(fact, at=self.place(*path), hint=hint)


def _dotted(path: Path) -> str:
    text = ""
    for step in path:
        if isinstance(step, int):
            text += f"[{step}]"
        else:
            shown = step if re.fullmatch(r"[\w/-]+", step) else f'"{step}"'
            text += f".{shown}" if text else shown
    return text


def _steps(where: str) -> Path:
    """The path in a message of msgspec, `$.spec.versions[0].version`."""
    known = where.partition("[...]")[0]  # msgspec does not tell which key of a mapping
    found = re.findall(r"\[(\d+)\]|\.([^.\[\]]+)", known)
    return tuple(int(number) if number else name for number, name in found)


def _plain(fact: str) -> str:
    words = {"`object`": "a mapping", "`array`": "a list", "`str`": "text", "`int`": "a number"}
    words |= {"`bool`": "true or false", "`null`": "null", "`float`": "a number"}
    fact = fact.replace(" | null`", "`")
    for name, word in words.items():
        fact = fact.replace(name, word)
    fact = re.sub("^Object missing required field (.*)$", r"\1 is missing", fact)
    fact = re.sub("^Object contains unknown field (.*)$", r"\1 is not known here", fact)
    fact = fact.replace("`", '"')
    return fact[:1].lower() + fact[1:]


def _advice(fact: str) -> str:
    return "put it in quotes" if re.match("Expected `str.*got `(int|float|bool)`", fact) else ""


def load_manifests(text: str, source: str) -> list[Document]:
    """The documents of a YAML or JSON text, those that are empty left out.

    >>> [document.value for document in load_manifests("mode: 0644\\n---\\nday: 2026-01-02", "x")]
    [{'mode': 420}, {'day': '2026-01-02'}]
    """
    value = _json(text)
    try:
        documents = list(_Reader(text, source).documents())
    except _DoubledKey:
        raise
    except InvalidManifest:
        if value is None:
            raise
        documents = []
    if value is None:
        return documents
    # JSON is nearly YAML: the lines are the same, escapes and odd characters are not.
    return [Document(value, source, documents[0]._mark if documents else _Mark(1))]


def _json(text: str) -> object:
    """The value of a text that is JSON, else None."""
    if not text.lstrip().startswith(("{", "[")):
        return None
    try:
        return decode_json(text)
    except (msgspec.DecodeError, RecursionError, UnicodeEncodeError):
        return None


class _DoubledKey(InvalidManifest):
    """A key that a mapping has already."""


class _Reader:
    """Builds values from the events of the YAML parser."""

    def __init__(self, text: str, source: str) -> None:
        self._source = source
        self._line = 1
        self._left = 10_000 + _MOST_PER_CHARACTER * len(text)
        self._anchors: dict[str, tuple[object, _Mark, int]] = {}
        try:
            self._parser = yaml.CLoader(text)
        except (yaml.YAMLError, UnicodeEncodeError) as error:
            raise self._wrong(_problem(error)) from None

    def documents(self) -> Iterator[Document]:
        while not isinstance(event := self._next(), events.StreamEndEvent):
            if not isinstance(event, events.DocumentStartEvent):
                continue
            if event.version is not None and event.version != (1, 1):
                raise self._wrong("the document is not YAML 1.1")
            self._anchors.clear()
            value, mark = self._node(self._next(), 0)
            if value is not None:
                yield Document(value, self._source, mark)

    def _next(self) -> events.Event:
        try:
            event = self._parser.get_event()
        except yaml.MarkedYAMLError as error:
            line = error.problem_mark.line + 1 if error.problem_mark else 0
            raise self._wrong(_problem(error), line) from None
        except yaml.YAMLError as error:
            raise self._wrong(_problem(error)) from None
        assert event is not None  # None comes after the end of the stream only
        self._line = event.start_mark.line + 1 if event.start_mark else self._line
        return event

    def _wrong(self, fact: str, line: int = 0) -> InvalidManifest:
        return InvalidManifest(fact, at=f"{self._source}:{line or self._line}")

    def _spend(self, nodes: int) -> None:
        self._left -= nodes
        if self._left < 0:
            raise self._wrong("aliases stand for more than can be read")

    def _node(self, event: events.Event, depth: int) -> tuple[object, _Mark]:
        if isinstance(event, events.AliasEvent):
            return self._alias(event)
        if depth > _DEEPEST:
            raise self._wrong(f"nested deeper than {_DEEPEST} levels")
        before = self._left
        self._spend(1)
        mark = _Mark(self._line)
        value: object
        if isinstance(event, events.MappingStartEvent):
            value = self._mapping(mark, depth)
        elif isinstance(event, events.SequenceStartEvent):
            value = self._sequence(mark, depth)
        else:
            assert isinstance(event, events.ScalarEvent)
            value = self._scalar(event)
        if event.anchor:
            self._anchors[event.anchor] = value, mark, before - self._left
        return value, mark

    def _alias(self, event: events.AliasEvent) -> tuple[object, _Mark]:
        if event.anchor not in self._anchors:
            raise self._wrong(f"*{event.anchor} has no &{event.anchor} before it")
        value, mark, size = self._anchors[event.anchor]
        self._spend(size)
        return value, mark

    def _sequence(self, mark: _Mark, depth: int) -> list[object]:
        items: list[object] = []
        while not isinstance(event := self._next(), events.SequenceEndEvent):
            item, mark.inside[len(items)] = self._node(event, depth + 1)
            items.append(item)
        return items

    def _mapping(self, mark: _Mark, depth: int) -> dict[str, object]:
        fields: dict[str, object] = {}
        merged: list[tuple[object, _Mark]] = []
        while not isinstance(event := self._next(), events.MappingEndEvent):
            line = self._line
            if _is_merge(event):
                merged.append(self._node(self._next(), depth + 1))
                continue
            key = self._key(self._node(event, depth + 1)[0])
            if key in fields:
                first = mark.inside[key].line
                at = f"{self._source}:{line}"
                raise _DoubledKey(f'"{key}" is there twice, first in line {first}', at=at)
            fields[key], value_mark = self._node(self._next(), depth + 1)
            mark.inside[key] = _Mark(line, value_mark.inside)
        for value, value_mark in merged:
            self._merge(fields, mark, value, value_mark)
        return fields

    def _merge(
        self, fields: dict[str, object], mark: _Mark, value: object, value_mark: _Mark
    ) -> None:
        """Put in what `<<` names, beneath what the mapping says itself."""
        if isinstance(value, list):
            for number, item in enumerate(value):
                self._merge(fields, mark, item, value_mark.inside[number])
            return
        if not isinstance(value, dict):
            raise self._wrong("<< needs a mapping or a list of mappings", value_mark.line)
        for key in value.keys() - fields.keys():
            fields[key] = value[key]
            mark.inside[key] = value_mark.inside[key]

    def _key(self, value: object) -> str:
        match value:
            case str():
                return value
            case bool():
                return "true" if value else "false"
            case int() | float():
                return str(value)
        what = "null" if value is None else "a mapping or a list"
        raise self._wrong(f"a key is {what}, expected text")

    def _scalar(self, event: events.ScalarEvent) -> object:
        text: str = event.value
        if event.tag == _BINARY:
            try:
                return base64.b64decode(text).decode()
            except (binascii.Error, UnicodeDecodeError):
                raise self._wrong("!!binary is not base64 of text") from None
        if event.tag is not None and event.tag in _TYPES:
            value = scalar(text)
            if type(value) not in _TYPES[event.tag]:
                name = event.tag.rpartition(":")[2]
                raise self._wrong(f'"{text}" cannot be read as !!{name}')
        elif event.implicit[0] and event.tag is None:
            value = scalar(text)
        else:
            return text
        if isinstance(value, float) and not math.isfinite(value):
            raise self._wrong(f"{text} is a number that JSON does not have")
        return value


_BINARY = "tag:yaml.org,2002:binary"
_TYPES: Mapping[str, tuple[type, ...]] = {
    "tag:yaml.org,2002:null": (type(None),),
    "tag:yaml.org,2002:bool": (bool,),
    "tag:yaml.org,2002:int": (int,),
    "tag:yaml.org,2002:float": (int, float),
}


def _is_merge(event: events.Event) -> bool:
    return isinstance(event, events.ScalarEvent) and event.implicit[0] and event.value == "<<"


def _problem(error: Exception) -> str:
    if isinstance(error, yaml.MarkedYAMLError) and error.problem:
        return f"not YAML: {error.problem}"
    return f"not YAML: {str(error).splitlines()[0]}"


def scalar(text: str) -> str | int | float | bool | None:
    """What kubectl reads in a plain scalar.

    >>> [scalar(text) for text in ("0644", "1e3", "yes", "2026-01-02", "1:30")]
    [420, 1000, True, '2026-01-02', '1:30']
    """
    if not text:
        return None
    if text in _WORDS:
        return _WORDS[text]
    digits = text.replace("_", "")
    if not _MAY_BE_NUMBER.match(text):
        return text
    integer = _integer(digits)
    if integer is not None:
        return integer
    if _FLOAT.fullmatch(digits):
        return _number(float(digits), text)
    return text


_WORDS: Mapping[str, bool | float | None] = {
    word: value
    for value, words in (
        (True, "y Y yes Yes YES on On ON true True TRUE"),
        (False, "n N no No NO off Off OFF false False FALSE"),
        (None, "~ null Null NULL"),
        (math.nan, ".nan .NaN .NAN"),
        (math.inf, ".inf .Inf .INF +.inf +.Inf +.INF"),
        (-math.inf, "-.inf -.Inf -.INF"),
    )
    for word in words.split()
}
_MAY_BE_NUMBER = re.compile("[-+.0-9]")
_FLOAT = re.compile(r"[-+]?(\.[0-9]+|[0-9]+(\.[0-9]*)?)([eE][-+]?[0-9]+)?")
_INTEGER = re.compile(r"([-+]?)(?:0[xX]([0-9a-fA-F]+)|0[bB]([01]+)|0[oO]?([0-7]+)|(0|[1-9][0-9]*))")


def _integer(digits: str) -> int | None:
    """An integer that fits 64 bits, signed or not; others are read as floating point."""
    found = _INTEGER.fullmatch(digits)
    if found is None:
        return None
    sign, *bases = found.groups()
    base, number = next((b, n) for b, n in zip((16, 2, 8, 10), bases, strict=True) if n)
    value = int(sign + number, base)
    return value if -(2**63) <= value < 2**64 and not (sign == "+" and value >= 2**63) else None


def _number(value: float, text: str) -> str | int | float:
    """A floating-point number as JSON shows it to the next reader: whole ones are integers."""
    if not math.isfinite(value):
        return text
    if value.is_integer() and abs(value) < 1e21:
        return int(Decimal(repr(value)))
    return value


class _Dumper(yaml.CSafeDumper):
    """Quotes every text that would be read as something else."""

    def resolve(self, kind: type, value: str, implicit: tuple[bool, bool]) -> str:
        if kind is yaml.ScalarNode and implicit[0]:
            return "" if value == "<<" else _TAGS[type(scalar(value))]
        tag: str = super().resolve(kind, value, implicit)  # type: ignore[no-untyped-call]
        return tag

    def ignore_aliases(self, data: object) -> bool:  # noqa: ARG002 - PyYAML's signature
        return True


def _represent_float(dumper: _Dumper, value: float) -> yaml.ScalarNode:
    number = _number(value, "")
    if isinstance(number, int):
        return dumper.represent_int(number)
    return dumper.represent_float(value)


_Dumper.add_representer(float, _represent_float)

_TAGS: Mapping[type, str] = {
    kind: f"tag:yaml.org,2002:{name}"
    for kind, name in (
        (type(None), "null"),
        (bool, "bool"),
        (int, "int"),
        (float, "float"),
        (str, "str"),
    )
}


def dump_yaml(value: object) -> str:
    """Plain data as YAML that kubectl reads back as the same data.

    >>> print(dump_yaml({"version": "1.2", "answer": "y", "size": 2}), end="")
    version: '1.2'
    answer: 'y'
    size: 2
    """
    text: str = yaml.dump(
        value, Dumper=_Dumper, sort_keys=False, allow_unicode=True, default_flow_style=False
    )
    return text
