"""Lists of items with a key, and maps from that key: in one step while nothing is lost."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import msgspec
from msgspec import Raw

from polyver.apis.conversion._calls import (
    Loses,
    fields,
    listed_plain,
    listed_raw,
    opened_plain,
    opened_raw,
    plain,
)
from polyver.apis.conversion.nested import Keyed

__all__ = ["keyed"]

Object = dict[str, Any]
Item = Callable[[Any], Any]


def keyed(rule: Keyed, one: Item | None, *, back: bool, raw: bool) -> Item:
    """What a rule does to a value when nothing is lost, with what that does to each inside.

    If something is lost it raises Loses.
    """
    if raw and rule.value:
        return _keyed_raw(rule, one, back=back)
    return partial(_unkeyed if back else _keyed, rule, one=one or _same, raw=raw)


def _same(value: Any) -> Any:
    return value


def _keyed_raw(rule: Keyed, one: Item | None, *, back: bool) -> Item:
    """A list of items with a key and a value, and a map, without decoding the values."""
    hints: list[tuple[str, Any, Any]] = [
        ("name", str, msgspec.field(name=rule.key)),
        ("value", Raw, msgspec.field(name=rule.value)),
    ]
    item: Any = msgspec.defstruct("Item", hints, forbid_unknown_fields=True, gc=False)
    decode = msgspec.json.Decoder(list[item]).decode

    def keyed(value: Any) -> Object:
        try:
            found = decode(value if type(value) is Raw else msgspec.json.encode(value))
        except _UNREADABLE:
            raise Loses from None
        made: Object = {}
        last = ""
        for each in found:
            name = each.name
            if name <= last and made:
                raise Loses
            made[name] = each.value
            last = name
        return made if one is None else {name: one(each) for name, each in made.items()}

    def unkeyed(value: Any) -> list[Any]:
        try:
            entries = fields(value if type(value) is Raw else msgspec.json.encode(value))
        except _UNREADABLE:
            raise Loses from None
        if one is not None:
            entries = {name: one(each) for name, each in entries.items()}
        return [item(name, entries[name]) for name in sorted(entries)]

    return unkeyed if back else keyed


_UNREADABLE = (msgspec.MsgspecError, UnicodeError, RecursionError)


def _keyed(rule: Keyed, value: Any, *, one: Item, raw: bool) -> Object:
    made: Object = {}
    last = None
    for item in listed_raw(value) if raw else listed_plain(value):
        rest = dict(opened_raw(item) if raw else opened_plain(item))
        name = plain(rest.pop(rule.key, None))
        if type(name) is not str or (last is not None and name <= last):
            raise Loses
        last = name
        if rule.value:
            if len(rest) != 1 or rule.value not in rest:
                raise Loses
            made[name] = one(rest[rule.value])
        else:
            made[name] = one(rest)
    return made


def _unkeyed(rule: Keyed, value: Any, *, one: Item, raw: bool) -> list[Any]:
    opened = opened_raw if raw else opened_plain
    entries = opened(value)
    made: list[Any] = []
    for name in sorted(entries):
        found = one(entries[name])
        if rule.value:
            made.append({rule.key: name, rule.value: found})
            continue
        rest = opened(found)
        if rule.key in rest:
            raise Loses
        made.append({rule.key: name, **rest})
    return made
