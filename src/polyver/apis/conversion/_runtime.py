"""Functions that compiled rules call, and the exceptions that these functions raise.

A value is `Raw` (JSON that was not decoded) or plain data; each function accepts both. A function
raises `Unusual` or `Loses` for a value that it cannot convert. The interpreter then converts or
refuses the object.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any, Final

import msgspec
from msgspec import Raw

from polyver.apis.conversion._block import RuleBlock
from polyver.apis.conversion._delta import Lost, without
from polyver.apis.conversion.nested import EachRule, KeyedRule
from polyver.apis.conversion.paths import show_path
from polyver.apis.conversion.reversal import ReversedRule
from polyver.apis.conversion.rules import (
    CastRule,
    ConversionRule,
    Ports,
    ScaleRule,
    SplitRule,
    ValuesRule,
)
from polyver.apis.conversion.schemas import Settled
from polyver.apis.conversion.values import MISSING, Type
from polyver.core.plain import Object
from polyver.kube.objects.converted_metadata import fresh
from polyver.languages.values.strings import same

__all__ = [
    "KeyedItems",
    "Loses",
    "PreservingItem",
    "RuleByInterpreter",
    "Unusual",
    "is_const",
    "is_null",
    "items_of",
    "keyed",
    "lossless",
    "objects_in",
    "opened",
    "plain",
    "preserved",
    "unchanged_key",
]

Convert = Callable[[Any], Any]
Lossless = Callable[..., Any]
"""Runs a rule on the values that it reads, of which at least one is not MISSING.

Returns the value that the rule writes, or a sequence if the rule writes several values. Returns
None if a value would be lost.
"""

fields = msgspec.json.Decoder(dict[str, Raw]).decode
_items = msgspec.json.Decoder(list[Raw]).decode
_objects = msgspec.json.Decoder(list[dict[str, Raw]]).decode
_UNREADABLE: Final = (msgspec.MsgspecError, UnicodeError, RecursionError)


class Unusual(Exception):
    """The compiled rules cannot convert this object; the interpreter can."""


class Loses(Exception):
    """The compiled code would lose a value; the interpreter can preserve the value."""


# Values that may be undecoded JSON (Raw)


def opened(value: Any) -> Object:
    """Return the fields of an object, as a dict."""
    if type(value) is dict:
        return value
    if type(value) is not Raw:  # the decoder would read the content of a string as JSON
        raise Unusual
    try:
        return fields(value)
    except _UNREADABLE:
        raise Unusual from None


def items_of(value: Any) -> list[Any]:
    """Return the items of a list, as a list."""
    if type(value) is list:
        return value
    if type(value) is not Raw:
        raise Loses
    try:
        return _items(value)
    except _UNREADABLE:
        raise Loses from None


def objects_in(value: Any) -> list[Object]:
    """Return the items of a list of objects, each as a dict."""
    if type(value) is list:
        return [*map(opened, value)]
    if type(value) is not Raw:
        raise Loses
    try:
        return _objects(value)
    except _UNREADABLE:
        raise Loses from None


def is_null(value: Any) -> bool:
    return value is None or value == _NULL


_NULL: Final = Raw(b"null")


def plain(value: Any) -> Any:
    """Decode a value to plain data."""
    if type(value) is Raw:
        return msgspec.json.decode(value)
    if type(value) is dict or type(value) is list:
        return msgspec.json.decode(msgspec.json.encode(value))
    return value


def is_const(value: Any, encoded: bytes, const: Any) -> bool:
    if type(value) is Raw and bytes(value) == encoded:
        return True
    return same(plain(value), const)


# Preserved fields


@dataclass(frozen=True, slots=True)
class RuleByInterpreter:
    """Runs one rule by the interpreter, and preserves and restores the fields of this rule.

    Compiled code uses it for a value that the compiled form of the rule cannot convert.
    """

    block: RuleBlock
    rule: ConversionRule
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


PreservingItem = Callable[[Object, "Lost | None"], "Lost | None"]
"""Converts an item of a list in place, with its preserved fields; returns newly preserved fields.
"""


@dataclass(frozen=True, slots=True)
class KeyedItems:
    """Runs a rule `each` for a list whose items have unique keys, which the rule does not change.

    It preserves and restores fields of the items by compiled code. For other lists, it runs the
    rule by the interpreter.
    """

    convert: PreservingItem
    key: str
    reads: str
    writes: str
    """The path of the list before and after the conversion, as in preserved fields."""
    otherwise: RuleByInterpreter

    def __call__(self, value: Any, before: Lost | None, after: Lost | None) -> Any:
        entry = before.get(self.writes, {}) if before else {}
        done = self._converted(value, entry)
        if done is None:
            (found,), after = self.otherwise((value,), before, after)
            return found, after
        made, lost = done
        if before and entry:
            del before[self.writes]
        if lost:
            after = {} if after is None else after
            after[self.reads] = {"by": lost}
        return made, after

    def _converted(self, value: Any, entry: Lost) -> tuple[list[Object], Lost] | None:
        """Return the converted items, and their newly preserved fields by key.

        Return None if only the interpreter can convert the list.
        """
        if type(value) is not Raw or not entry.keys() <= {"by"}:
            return None
        before, lost, seen = entry.get("by", {}), {}, set()
        try:
            items = _objects(value)
            for item in items:
                name = plain(item.get(self.key))
                if type(name) is not str or name.startswith("=") or name in seen:
                    return None
                seen.add(name)
                own = before.get(name)
                found = self.convert(item, None if own is None else fresh(own))
                if found:
                    lost[name] = found
        except (Unusual, Loses, *_UNREADABLE):
            return None
        return items, lost


def unchanged_key(rule: ConversionRule) -> str:
    """Return the field that identifies an item of a list in both versions, if no rule converts it.

    Return "" if there is no such field.
    """
    if not isinstance(rule, EachRule) or rule.source_keys != rule.target_keys:
        return ""
    [key] = rule.source_keys if len(rule.source_keys) == 1 else [""]
    paths = [path for each in rule.inside.rules for path in (*each.sources, *each.targets)]
    return "" if any(path[0] == key for path in paths) else key


def preserved(entry: dict[str, Any]) -> Any:
    """Return the value of a preserved field; raise Unusual if its entry has a guard."""
    if entry.keys() != {"is"}:
        raise Unusual
    return entry["is"]


# Simple rules

_MOST: Final = 2**63 - 1
_LARGE: Final = 10**18
"""The limit of integers that compiled rules cast to or from a string.

The interpreter casts integers whose absolute value is not below this limit.
"""


def lossless(rule: ConversionRule, *, back: bool) -> Lossless:
    """Build a function that runs a rule which has no inner rules, such as a cast.

    The function takes plain values. It returns None if a value would be lost. With `back`, it
    converts from the version `to` to the version `from`.
    """
    match rule:
        case ReversedRule():
            return lossless(rule.rule, back=not back)
        case ValuesRule():
            return _words(rule, back=back)
        case CastRule():
            kinds = (rule.source_type, rule.target_type)
            return _CASTS.get(kinds[::-1] if back else kinds) or _checked(rule, back=back)
        case ScaleRule() if rule.factor.denominator == 1:
            return _scaled(rule.factor.numerator, back=back)
        case SplitRule() if {*rule.types} <= {"string", "integer"}:
            return _joined(rule) if back else _split(rule)
    return _checked(rule, back=back)


def _checked(rule: ConversionRule, *, back: bool) -> Lossless:
    single = len(rule.ports(back=back)[1]) == 1

    def run(*values: Any) -> Any:
        made = rule.run(values, back=back)
        if not all(map(same, rule.run(made, back=not back), values)):
            return None
        return made[0] if single else made

    return run


def _words(rule: ValuesRule, *, back: bool) -> Lossless:
    words = {(type(a), a): b for a, b in rule.words.items()}
    if back:
        words = {(type(b), b): a for (_, a), b in words.items()}
    if all(kind is str for kind, _ in words):
        texts = {text: word for (_, text), word in words.items()}.get
        return lambda value: texts(value) if type(value) is str else None
    get = words.get
    return lambda value: get((type(value), value)) if type(value) in _PLAIN else None


_PLAIN: Final = frozenset([str, int, bool])


def _whole(value: Any) -> Any:
    if type(value) is not str:
        return None
    try:
        made = int(value)
    except ValueError:
        return None
    return made if -_LARGE < made < _LARGE and str(made) == value else None


def _written(value: Any) -> Any:
    return str(value) if type(value) is int and -_LARGE < value < _LARGE else None


_CASTS: Final[Mapping[tuple[Type, Type], Lossless]] = {
    ("string", "integer"): _whole,
    ("integer", "string"): _written,
}


def _scaled(factor: int, *, back: bool) -> Lossless:
    def times(value: Any) -> Any:
        if type(value) is not int:
            return None
        made = value * factor
        return made if -_MOST <= made <= _MOST else None

    def divided(value: Any) -> Any:
        if type(value) is not int:
            return None
        made, rest = divmod(value, factor)
        return None if rest else made

    return divided if back else times


def _split(rule: SplitRule) -> Lossless:
    separator, count, absent = rule.separator, len(rule.into), rule.absent
    numbers = [place for place, kind in enumerate(rule.types) if kind == "integer"]
    most = count - 1

    def split(value: Any) -> Any:
        if type(value) is not str:
            return None
        parts: list[Any] = value.split(separator, most)
        if len(parts) < count:
            if absent is not None:
                return None
            parts += [MISSING] * (count - len(parts))
        elif absent is not None and absent in parts:
            parts = [MISSING if part == absent else part for part in parts]
            if parts.count(MISSING) == count:
                return None
        for place in numbers:
            if parts[place] is not MISSING:
                parts[place] = made = _whole(parts[place])
                if made is None:
                    return None
        return parts

    return split


def _joined(rule: SplitRule) -> Lossless:
    separator, absent, last = rule.separator, rule.absent, len(rule.into) - 1
    texted = [kind == "string" for kind in rule.types]

    def joined(*parts: Any) -> Any:
        texts: list[str] = []
        for place, part in enumerate(parts):
            if part is MISSING and absent is not None:
                texts.append(absent)
            elif part is MISSING:
                break
            else:
                text = part if texted[place] else _written(part)
                if type(text) is not str or text == absent or (separator in text and place < last):
                    return None
                texts.append(text)
        rest = parts[len(texts) :]
        if not texts or rest.count(MISSING) < len(rest):
            return None
        return separator.join(texts)

    return joined


# Lists with keys


def keyed(rule: KeyedRule, one: Convert | None, *, back: bool) -> Convert:
    """Build the function that converts a list to a map by a key; with `back`, a map to a list.

    `one` converts each value of the map. The built function raises Loses if a value would be lost.
    """
    if rule.value:
        return _keyed_values(rule, one, back=back)
    return partial(_unkeyed if back else _keyed, rule, one=one or _same)


def _same(value: Any) -> Any:
    return value


def _keyed_values(rule: KeyedRule, one: Convert | None, *, back: bool) -> Convert:
    """Do the same as `keyed`, for lists whose items have only a key field and a value field.

    The built function does not decode the values.
    """
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


def _keyed(rule: KeyedRule, value: Any, *, one: Convert) -> Object:
    made: Object = {}
    last = None
    for item in items_of(value):
        rest = dict(opened(item))
        name = plain(rest.pop(rule.key, None))
        if type(name) is not str or (last is not None and name <= last):
            raise Loses
        last = name
        made[name] = one(rest)
    return made


def _unkeyed(rule: KeyedRule, value: Any, *, one: Convert) -> list[Any]:
    entries = opened(value)
    made: list[Any] = []
    for name in sorted(entries):
        rest = opened(one(entries[name]))
        if rule.key in rest:
            raise Loses
        made.append({rule.key: name, **rest})
    return made
