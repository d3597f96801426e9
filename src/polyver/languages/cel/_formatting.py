"""The CEL function `format`, which fills a format string such as `%.2f` with values."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

from polyver.languages.cel._conversions import to_text
from polyver.languages.cel._values import CelEvaluationError, List, Map, Uint, type_name
from polyver.languages.values.strings import quoted

__all__ = ["Clause", "Malformed", "clauses", "formatted", "type_problem"]

_MOST_DIGITS = 1000


class Malformed(CelEvaluationError):
    """The format string itself is invalid, so it is invalid for all values."""


@dataclass(frozen=True, slots=True)
class Clause:
    """A clause of a format string: for `%.2f`, the letter f and the precision 2."""

    letter: str
    digits: int = 6


def clauses(text: str) -> Iterator[str | Clause]:
    """Divide a format string into clauses and the literal strings between them."""
    at = 0
    while at < len(text):
        sign = text.find("%", at)
        if sign < 0:
            yield text[at:]
            return
        if sign > at:
            yield text[at:sign]
        at = sign + 1
        if text.startswith("%", at):
            yield "%"
            at += 1
            continue
        clause, at = _clause(text, at)
        yield clause


def _clause(text: str, at: int) -> tuple[Clause, int]:
    digits = 6
    if text.startswith(".", at):
        found = re.compile(r"[0-9]*").match(text, at + 1)
        assert found is not None
        if not found[0]:
            raise Malformed(
                "could not parse formatting clause: error while parsing precision: could not "
                'convert precision specifier to integer: strconv.Atoi: parsing "": invalid syntax'
            )
        digits, at = int(found[0][:9]), found.end()
    letter = text[at : at + 1]
    if not letter:
        raise Malformed("unexpected end of string")
    if letter not in "sdfebxXo":
        raise Malformed(
            f'could not parse formatting clause: unrecognized formatting clause "{letter}"'
        )
    return Clause(letter, min(digits, _MOST_DIGITS)), at + 1


def formatted(text: str, values: List) -> str:
    """Return a format string with each clause, such as `%d`, replaced by the next value."""
    parts: list[str] = []
    used = 0
    for part in clauses(text):
        if isinstance(part, str):
            parts.append(part)
            continue
        if used >= len(values):
            raise CelEvaluationError(f"index {used} out of range")
        parts.append(_written(values.items[used], part))
        used += 1
    return "".join(parts)


_SHOWN = "strings, bools, bytes, ints, doubles, maps, lists, types, durations, and timestamps"
_NUMBERS = frozenset(("int", "uint"))
_WANTED: dict[str, tuple[frozenset[str] | None, str]] = {
    "s": (None, f"string clause can only be used on {_SHOWN}"),
    "d": (_NUMBERS, "decimal clause can only be used on integers"),
    "f": (frozenset(("double",)), "fixed-point clause can only be used on doubles"),
    "e": (frozenset(("double",)), "scientific clause can only be used on doubles"),
    "b": (_NUMBERS | {"bool"}, "only integers and bools can be formatted as binary"),
    "x": (
        _NUMBERS | {"string", "bytes"},
        "only integers, byte buffers, and strings can be formatted as hex",
    ),
    "o": (_NUMBERS, "octal clause can only be used on integers"),
}


def type_problem(letter: str, kind: str) -> str:
    """Build the error message for a value whose type (`kind`) a clause does not accept."""
    _, text = _WANTED[letter.lower()]
    return f"error during formatting: {text}, was given {kind}"


def _written(value: Any, clause: Clause) -> str:
    kinds, _ = _WANTED[clause.letter.lower()]
    kind = type_name(value)
    special = isinstance(value, str) and value in ("NaN", "Infinity", "-Infinity")
    if kinds is not None and kind not in kinds and not (special and clause.letter in "fe"):
        raise CelEvaluationError(type_problem(clause.letter, kind))
    match clause.letter:
        case "s":
            return _shown(value)
        case "d":
            return str(int(value))
        case "f" | "e":
            return _number(float(value), clause)
        case "b":
            return f"{int(value):b}"
        case "o":
            return f"{int(value):o}"
    return _hex(value, upper=clause.letter == "X")


def _number(value: float, clause: Clause) -> str:
    if math.isnan(value):
        return "NaN"
    if math.isinf(value):
        return "∞" if value > 0 else "-∞"
    if clause.letter == "f":
        return f"{value:,.{clause.digits}f}"
    # kube-apiserver also ignores the precision here.
    mantissa, _, exponent = f"{value:.6e}".partition("e")
    power = f"{abs(int(exponent)):02d}".translate(_RAISED)
    return f"{mantissa}×10{'⁻' if int(exponent) < 0 else ''}{power}"


_RAISED = str.maketrans("0123456789+-", "⁰¹²³⁴⁵⁶⁷⁸⁹⁺⁻")


def _hex(value: Any, *, upper: bool) -> str:
    if isinstance(value, str | bytes):
        found = (value.encode() if isinstance(value, str) else value).hex()
    else:
        found = f"{int(value):x}"
    return found.upper() if upper else found


def _shown(value: Any) -> str:
    match value:
        case None:
            return "null"
        case List():
            return f"[{', '.join(map(_inner, value.items))}]"
        case Map():
            pairs = sorted((_inner_key(key), _inner(value.find(key)[0])) for key in value)
            return f"{{{', '.join(f'{key}:{inside}' for key, inside in pairs)}}}"
    try:
        return to_text(value)
    except CelEvaluationError:
        raise CelEvaluationError(type_problem("s", type_name(value))) from None


def _inner_key(key: Any) -> str:
    if isinstance(key, str | bool | int):
        return _inner(key)
    raise CelEvaluationError(f"no formatting function for map key of type {type_name(key)}")


_INNER: dict[str, Callable[[Any], str]] = {
    "google.protobuf.Timestamp": lambda value: f"timestamp({quoted(to_text(value))})",
    "google.protobuf.Duration": lambda value: f"duration({quoted(to_text(value))})",
    "string": quoted,
    "bytes": lambda value: f"b{quoted(to_text(value))}",
    "int": lambda value: str(int(value)),
    "uint": lambda value: str(int(value)),
    "bool": to_text,
    "null_type": lambda _: "null",
    "type": to_text,
    "list": _shown,
    "map": _shown,
}


def _inner(value: Any) -> str:
    """Write a value inside a list or map in the form of the function `format`."""
    kind = type_name(value)
    if isinstance(value, float) and not isinstance(value, Uint):
        if math.isnan(value) or math.isinf(value):
            return quoted("NaN" if math.isnan(value) else "+Inf" if value > 0 else "-Inf")
        return f"{value:.6f}"
    known = _INNER.get(kind)
    if known is None:
        raise CelEvaluationError(f"no formatting function for {kind}")
    return known(value)
