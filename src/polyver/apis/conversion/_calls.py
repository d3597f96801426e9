"""What the code of compiled rules calls, and how it says that it cannot go on."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import msgspec
from msgspec import Raw

from polyver.apis.conversion._block import Block
from polyver.apis.conversion._delta import Lost, without
from polyver.apis.conversion._watching import Settled
from polyver.apis.conversion.paths import show_path
from polyver.apis.conversion.rules import Ports, Rule
from polyver.languages.values.strings import same

__all__ = [
    "Loses",
    "Slow",
    "Unusual",
    "fields",
    "is_const",
    "is_null",
    "kept",
    "listed_plain",
    "listed_raw",
    "objects_plain",
    "objects_raw",
    "opened_plain",
    "opened_raw",
    "plain",
]

Object = dict[str, Any]


class Unusual(Exception):
    """Something that the interpreter has to look at."""


class Loses(Exception):
    """Something inside of a value would be lost."""


def opened_raw(value: Any) -> Object:
    """The fields of an object that is still bytes, or was opened before."""
    if type(value) is dict:
        return value
    if type(value) is not Raw:  # a text would be read as if it were bytes
        raise Unusual
    try:
        return fields(value)
    except (msgspec.MsgspecError, UnicodeError, RecursionError):
        raise Unusual from None


def opened_plain(value: Any) -> Object:
    if type(value) is not dict:
        raise Unusual
    return value


def listed_raw(value: Any) -> list[Any]:
    if type(value) is list:
        return value
    if type(value) is not Raw:
        raise Loses
    try:
        return _items(value)
    except (msgspec.MsgspecError, UnicodeError, RecursionError):
        raise Loses from None


def listed_plain(value: Any) -> list[Any]:
    if type(value) is not list:
        raise Loses
    return value


def objects_raw(value: Any) -> list[Object]:
    """The items of a list that are all objects."""
    if type(value) is list:
        return [*map(opened_raw, value)]
    if type(value) is not Raw:
        raise Loses
    try:
        return _objects(value)
    except (msgspec.MsgspecError, UnicodeError, RecursionError):
        raise Loses from None


def objects_plain(value: Any) -> list[Object]:
    return [*map(opened_plain, listed_plain(value))]


def is_null(value: Any) -> bool:
    return value is None or value == _NULL


_NULL = Raw(b"null")


def plain(value: Any) -> Any:
    """A value that may be bytes, or have bytes inside, as plain data."""
    if type(value) is Raw:
        return msgspec.json.decode(value)
    if type(value) is dict or type(value) is list:
        return msgspec.json.decode(msgspec.json.encode(value))
    return value


fields = msgspec.json.Decoder(dict[str, Raw]).decode
_items = msgspec.json.Decoder(list[Raw]).decode
_objects = msgspec.json.Decoder(list[dict[str, Raw]]).decode


@dataclass(frozen=True, slots=True)
class Slow:
    """A rule as the interpreter runs it, for what is lost and what is restored."""

    block: Block
    rule: Rule
    back: bool
    reads: Settled
    writes: Settled

    def __call__(self, values: Ports, before: Lost | None, after: Lost | None) -> Any:
        values = tuple(map(plain, values))
        made = self.rule.run(values, back=self.back)
        made = self.block.allowed(self.rule, made, back=self.back)
        if before:
            made = self._restored(made, before, values)
        lost = self.block.lost_by(self.rule, values, made, back=self.back)
        guards = list(self.rule.guards(lost, made, back=not self.back))
        if guards and not self.writes.holds(made):
            raise Unusual
        for entry, key, now in guards:
            entry[key] = now
        if lost:
            after = {} if after is None else after
            after |= lost
        return made, after

    def _restored(self, made: Ports, before: Lost, values: Ports) -> Ports:
        names = map(show_path, self.rule.ports(back=self.back)[1])
        own = {name: before.pop(name) for name in names if name in before}
        if any("whole" in entry for entry in own.values()):
            raise Unusual
        checked = list(self.rule.guards(own, values, back=self.back))
        if checked and not self.reads.holds(values):
            raise Unusual
        stale = {id(entry) for entry, key, now in checked if entry[key] != now}
        return self.rule.restored(made, without(own, stale), back=self.back)


def kept(entry: dict[str, Any]) -> Any:
    """What was lost of a field that belongs to nothing visible."""
    if entry.keys() != {"is"}:
        raise Unusual
    return entry["is"]


def is_const(value: Any, encoded: bytes, const: Any) -> bool:
    if type(value) is Raw and bytes(value) == encoded:
        return True
    return same(plain(value), const)
