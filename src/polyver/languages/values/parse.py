"""Parses YAML, as kubectl reads it, and JSON to plain data with line numbers.

The constructors of PyYAML follow YAML 1.1, from which kubectl's library differs in some points.
PyYAML also accepts duplicate keys and any depth. So this module builds the values from the events
of PyYAML's parser.
"""

from __future__ import annotations

import base64
import binascii
import json
import math
import re
from collections.abc import Iterator, Mapping
from decimal import Decimal
from types import MappingProxyType

import yaml
from yaml import events

from polyver.core import PolyverError

__all__ = [
    "InvalidManifest",
    "Mark",
    "RefusedManifest",
    "YamlReader",
    "number",
    "read_json",
    "scalar",
]

_LONGEST_INTEGER = 70  # 64 binary digits, a sign, a prefix and some leading zeros


def scalar(text: str) -> str | int | float | bool | None:
    """Convert a plain scalar of YAML (without quotes and tag) to the value that kubectl reads.

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
        return number(float(digits), text)
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
    """Parse an integer of 64 bits, signed or unsigned; return None for all other strings."""
    found = _INTEGER.fullmatch(digits) if len(digits) <= _LONGEST_INTEGER else None
    if found is None:
        return None
    sign, *bases = found.groups()
    base, number = next((b, n) for b, n in zip((16, 2, 8, 10), bases, strict=True) if n)
    value = int(sign + number, base)
    return value if -(2**63) <= value < 2**64 and not (sign == "+" and value >= 2**63) else None


def number(value: float, text: str) -> str | int | float:
    """Return a float in the form that it has in JSON: an integer if it has no decimals.

    Return `text` for NaN and infinity, which JSON cannot express.
    """
    if not math.isfinite(value):
        return text
    if value.is_integer() and abs(value) < 1e21:
        return int(Decimal(repr(value)))
    return value


DEEPEST = 200
_MOST_PER_CHARACTER = 10  # limits the total size of the values that aliases stand for


_NOTHING: Mapping[str | int, Mark] = MappingProxyType({})


class InvalidManifest(PolyverError):
    """The manifest cannot be used; the error has the file, the line and the field."""


class Mark:
    """The position of a value in the text: its line, and the marks of the values inside it."""

    __slots__ = ("inside", "key_was_text", "line")

    def __init__(
        self, line: int, inside: Mapping[str | int, Mark] = _NOTHING, *, key_was_text: bool = True
    ) -> None:
        self.line = line
        self.inside = inside
        self.key_was_text = key_was_text


class RefusedManifest(InvalidManifest):
    """The manifest can be parsed, but has a duplicate key, is nested too deeply or is too large."""


class YamlReader:
    """Builds values from the events of PyYAML's parser."""

    def __init__(
        self, text: str, source: str, *, doubled: list[tuple[str, int]] | None = None
    ) -> None:
        """Prepare to parse `text`; errors name `source`, such as the file name.

        A duplicate key raises an error, unless the list `doubled` is given: then each duplicate key
        and its line are added to this list.
        """
        self._doubled = doubled
        self._source = source
        self._line = 1
        self._left = 10_000 + _MOST_PER_CHARACTER * len(text)
        self._anchors: dict[str, tuple[object, Mark, int]] = {}
        try:
            self._parser = yaml.CLoader(text)
        except (yaml.YAMLError, UnicodeEncodeError) as error:
            raise self._wrong(_problem(error)) from None

    def documents(self) -> Iterator[tuple[object, Mark]]:
        """Yield the values of all documents that are not empty."""
        while not isinstance(event := self._next(), events.StreamEndEvent):
            if not isinstance(event, events.DocumentStartEvent):
                continue
            if event.version is not None and event.version != (1, 1):
                raise self._wrong("the document is not YAML 1.1")
            self._anchors.clear()
            value, mark = self._node(self._next(), 0)
            if value is not None:
                yield value, mark

    def _next(self) -> events.Event:
        try:
            event = self._parser.get_event()
        except yaml.MarkedYAMLError as error:
            line = error.problem_mark.line + 1 if error.problem_mark else 0
            raise self._wrong(_problem(error), line) from None
        except yaml.YAMLError as error:
            raise self._wrong(_problem(error)) from None
        assert event is not None  # None comes only after the end of the stream
        self._line = event.start_mark.line + 1 if event.start_mark else self._line
        return event

    @property
    def _here(self) -> str:
        return f"{self._source}:{self._line}"

    def _wrong(self, fact: str, line: int = 0) -> InvalidManifest:
        return InvalidManifest(fact, at=f"{self._source}:{line or self._line}")

    def _spend(self, nodes: int) -> None:
        self._left -= nodes
        if self._left < 0:
            raise RefusedManifest("aliases stand for more than can be read", at=self._here)

    def _node(self, event: events.Event, depth: int) -> tuple[object, Mark]:
        if isinstance(event, events.AliasEvent):
            return self._alias(event)
        if depth > DEEPEST:
            raise RefusedManifest(f"nested deeper than {DEEPEST} levels", at=self._here)
        before = self._left
        self._spend(1)
        mark = Mark(self._line)
        value: object
        if isinstance(event, events.MappingStartEvent):
            value = self._mapping(mark, depth)
        elif isinstance(event, events.SequenceStartEvent):
            items: list[object] = []
            inside = mark.inside = {}
            while not isinstance(inner := self._next(), events.SequenceEndEvent):
                item, inside[len(items)] = self._node(inner, depth + 1)
                items.append(item)
            value = items
        else:
            assert isinstance(event, events.ScalarEvent)
            self._spend(len(event.value))
            value = self._scalar(event)
        if event.anchor:
            self._anchors[event.anchor] = value, mark, before - self._left
        return value, mark

    def _alias(self, event: events.AliasEvent) -> tuple[object, Mark]:
        if event.anchor not in self._anchors:
            raise self._wrong(f"*{event.anchor} has no &{event.anchor} before it")
        value, mark, size = self._anchors[event.anchor]
        self._spend(size)
        return value, mark

    def _mapping(self, mark: Mark, depth: int) -> dict[str, object]:
        fields: dict[str, object] = {}
        inside = mark.inside = {}
        merged: list[tuple[object, Mark]] = []
        while not isinstance(event := self._next(), events.MappingEndEvent):
            line = self._line
            if isinstance(event, events.ScalarEvent) and event.implicit[0] and event.value == "<<":
                merged.append(self._node(self._next(), depth + 1))
                continue
            written = self._node(event, depth + 1)[0]
            key = self._key(written)
            if key in fields:
                self._twice(key, line, inside[key].line)
            fields[key], value_mark = self._node(self._next(), depth + 1)
            inside[key] = Mark(line, value_mark.inside, key_was_text=isinstance(written, str))
        for value, value_mark in merged:
            self._merge(fields, inside, value, value_mark)
        return fields

    def _twice(self, key: str, line: int, first: int) -> None:
        if self._doubled is None:
            at = f"{self._source}:{line}"
            raise RefusedManifest(f'duplicate key "{key}", first in line {first}', at=at)
        self._doubled.append((key, line))

    def _merge(
        self,
        fields: dict[str, object],
        inside: dict[str | int, Mark],
        value: object,
        value_mark: Mark,
    ) -> None:
        """Add the keys of the mappings after the merge key `<<` to `fields`.

        Keys that the mapping itself has stay unchanged.
        """
        if isinstance(value, list):
            for number, item in enumerate(value):
                self._merge(fields, inside, item, value_mark.inside[number])
            return
        if not isinstance(value, dict):
            raise self._wrong("<< needs a mapping or a list of mappings", value_mark.line)
        for key in value.keys() - fields.keys():
            fields[key] = value[key]
            inside[key] = value_mark.inside[key]

    def _key(self, value: object) -> str:
        match value:
            case str():
                return value
            case bool():
                return "true" if value else "false"
            case int() | float():
                return str(value)
        what = "null" if value is None else "a mapping or a list"
        raise self._wrong(f"a key is {what}, expected a string")

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


def _problem(error: Exception) -> str:
    if isinstance(error, yaml.MarkedYAMLError) and error.problem:
        return f"not YAML: {error.problem}"
    return f"not YAML: {str(error).splitlines()[0]}"


def read_json(text: str, source: str) -> object:
    """Parse a JSON text; return None if the text is not JSON.

    Raise `RefusedManifest` if a key is duplicate, or if values are nested too deeply.
    """

    def unique(pairs: list[tuple[str, object]]) -> dict[str, object]:
        fields = dict(pairs)
        if len(fields) < len(pairs):
            keys = [key for key, _ in pairs]
            twice = next(key for key in keys if keys.count(key) > 1)
            raise RefusedManifest(f'duplicate key "{twice}"', at=source)
        return fields

    try:
        value: object = json.loads(
            text,
            object_pairs_hook=unique,
            parse_int=_json_number,
            parse_float=_json_number,
            parse_constant=_json_number,
        )
    except (ValueError, RecursionError):
        return None
    if _depth(value) > DEEPEST:
        raise RefusedManifest(f"nested deeper than {DEEPEST} levels", at=source)
    return value


def _json_number(text: str) -> int | float:
    """Convert a JSON number in the same way as a plain scalar of YAML.

    Raise ValueError for NaN and infinity.
    """
    found = scalar(text)
    if not isinstance(found, int | float):
        raise ValueError(f"{text} is not a number that JSON has")  # noqa: TRY004 - as json does
    return found


def _depth(value: object) -> int:
    """Return the nesting depth of a value."""
    depth, level = 0, [value]
    while level := [
        inner
        for one in level
        if isinstance(one, dict | list)
        for inner in (one.values() if isinstance(one, dict) else one)
    ]:
        depth += 1
    return depth
