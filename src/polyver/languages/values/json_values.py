"""Parses JSON as kube-apiserver does: reports duplicate keys, and keeps the text of numbers.

The error messages are also those of kube-apiserver. msgspec parses JSON fast, but does not report
duplicate keys, for example. So after msgspec has parsed a text, its result is written as JSON
again. If this JSON differs from the text, a slower parser parses the text again.
"""

from __future__ import annotations

import codecs
import json
import math
import re
from collections.abc import Callable, Iterable
from typing import Any, NoReturn

import msgspec

from polyver.core import PolyverError

__all__ = [
    "DEEPEST",
    "Number",
    "Pairs",
    "Undecodable",
    "plain",
    "plain_number",
    "quoted",
    "read",
    "read_plain",
    "written",
]

DEEPEST = 200
"""The maximum nesting of values: code that visits all values must not recurse too deeply."""
_MOST_EXPLAINED = 1 << 20  # locating an error is slow in a large body


class Undecodable(PolyverError):
    """A request body cannot be decoded; the message is kube-apiserver's."""

    def __init__(self, problem: str, *, unrecognized: bool = False) -> None:
        super().__init__(problem)
        self.unrecognized = unrecognized
        """True if kube-apiserver finds the error before it knows the kind of the object."""


class Pairs(list[tuple[str, Any]]):
    """The keys and values of a JSON object in order, including duplicate keys."""


class Number(float):
    """A number that is not a 64-bit integer. `text` is the number as it was written in JSON."""

    text: str

    def __new__(cls, text: str) -> Number:
        number = super().__new__(cls, text)
        number.text = text
        return number


def read(body: bytes) -> Any:
    """Parse JSON without losing anything that Go would report or show.

    Where plain Python data would lose something, an object becomes `Pairs` with all its keys, and a
    number becomes a `Number` with its text.
    """
    return _guarded(body, _read)


def read_plain(body: bytes) -> tuple[Any, tuple[str, ...]]:
    """Parse JSON to plain data; return it with an error message for each duplicate key."""
    problems: dict[str, None] = {}
    value = _guarded(body, lambda text: _read_plain(text, problems))
    return value, tuple(problems)


def _guarded(body: bytes, reader: Callable[[bytes], Any]) -> Any:
    try:
        value = reader(body)
        deep = body.count(b"{") + body.count(b"[") > DEEPEST and _is_deep(value)
    except RecursionError:
        deep = True
    if deep:
        raise _refused(body, "exceeded max depth")
    return value


def _read(body: bytes) -> Any:
    value = _faithful(body, _DECODER)
    return value if value is not _UNFAITHFUL else _read_exactly(body)


def _read_plain(body: bytes, problems: dict[str, None]) -> Any:
    value = _faithful(body, _PLAIN_DECODER)
    return value if value is not _UNFAITHFUL else plain(_read_exactly(body), "", problems)


_UNFAITHFUL = object()
_LONG = re.compile(rb"[0-9]{19}")


def _faithful(body: bytes, decoder: msgspec.json.Decoder[Any]) -> Any:
    """Parse JSON with msgspec.

    Return `_UNFAITHFUL` if the result, written as JSON again, would not be the same text.
    """
    if _LONG.search(body):
        return _UNFAITHFUL  # Go's integers have 64 bits, Python's have no limit
    try:
        value = decoder.decode(body)
        same = msgspec.json.format(body, indent=-1) == msgspec.json.encode(value)
    except (msgspec.MsgspecError, UnicodeDecodeError, OverflowError):
        return _UNFAITHFUL  # Go accepts some text that msgspec refuses
    return value if same else _UNFAITHFUL


def _is_deep(value: Any) -> bool:
    level = [value]
    for _ in range(DEEPEST):
        level = [inner for each in level for inner in _inside(each)]
    return any(isinstance(each, dict | list) for each in level)


def _inside(value: Any) -> Iterable[Any]:
    if isinstance(value, dict):
        return value.values()
    if isinstance(value, Pairs):
        return [inner for _, inner in value]
    return value if isinstance(value, list) else ()


def _read_exactly(body: bytes) -> Any:
    """Parse JSON with the slower parser; each object becomes `Pairs`."""
    text = body.decode("utf-8", "polyver.replace-each-byte")
    try:
        return json.loads(
            _ESCAPE.sub(_without_lone_surrogate, text),
            object_pairs_hook=Pairs,
            parse_int=_integer,
            parse_float=Number,
            parse_constant=_refuse,
        )
    except ValueError as error:
        raise _refused(body, str(error)) from None


def _refused(body: bytes, problem: str) -> Undecodable:
    found = _Scan(body).problem() if len(body) <= _MOST_EXPLAINED else ""
    return Undecodable(found or problem, unrecognized=True)


def _replace_each_byte(error: UnicodeError) -> tuple[str, int]:
    assert isinstance(error, UnicodeDecodeError)
    return "\ufffd" * (error.end - error.start), error.end


codecs.register_error("polyver.replace-each-byte", _replace_each_byte)

_ESCAPE = re.compile(
    r"\\(?:u[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2}|u[0-9a-fA-F]{4}|.)"
)


def _without_lone_surrogate(found: re.Match[str]) -> str:
    alone = len(found[0]) == 6 and found[0][2] in "dD" and found[0][3] in "89abABcdefCDEF"
    return "\\ufffd" if alone else found[0]


def _refuse(constant: str) -> NoReturn:
    raise ValueError(constant)


def _integer(text: str) -> int | Number:
    number = int(text) if len(text) <= 20 else 1 << 63
    return number if -(1 << 63) <= number < 1 << 63 else Number(text)


def written(number: float) -> str:
    """Return a number as it was written in JSON, for error messages."""
    return number.text if isinstance(number, Number) else msgspec.json.encode(number).decode()


def plain(value: Any, path: str, problems: dict[str, None]) -> Any:
    """Convert `Pairs` and `Number` to plain data.

    Add an error message to the keys of `problems` for each duplicate key. `path` is the path of the
    value.
    """
    match value:
        case Pairs() | dict():
            found: dict[str, Any] = {}
            for key, inner in value.items() if isinstance(value, dict) else value:
                inner_path = f"{path}.{key}" if path else key
                if key in found:
                    problems[f"duplicate field {quoted(inner_path)}"] = None
                found[key] = plain(inner, inner_path, problems)
            return found
        case list():
            return [plain(item, f"{path}[{at}]", problems) for at, item in enumerate(value)]
        case float():
            return plain_number(value)
    return value


def plain_number(number: float, target: str = "Go value of type float64") -> int | float:
    """Convert a number without decimals to an integer, because Go prints such a number as one.

    Raise `Undecodable` for an infinite number; `target` is the Go type that the error names.
    """
    if not math.isfinite(number):
        raise Undecodable(f"json: cannot unmarshal number {written(number)} into {target}")
    return _trimmed(number)


def _trimmed(number: str | float) -> int | float:
    found = float(number)
    return int(found) if found.is_integer() and abs(found) < 1 << 63 else found


_DECODER: msgspec.json.Decoder[Any] = msgspec.json.Decoder()
_PLAIN_DECODER: msgspec.json.Decoder[Any] = msgspec.json.Decoder(float_hook=_trimmed)


def quoted(text: str) -> str:
    """Write a string in quotes, as Go does in error messages."""
    return '"' + "".join(f"\\{each}" if each in '"\\' else _shown(each) for each in text) + '"'


class _Scan:
    """Finds the first invalid character in JSON, and describes the error as Go does."""

    def __init__(self, body: bytes) -> None:
        self._text = body.decode("latin-1")  # Go reads bytes
        self._at = 0
        self._open: list[str] = []

    def problem(self) -> str:
        """Return the error message for the JSON, or an empty string if it is valid."""
        try:
            self._scan()
        except _Wrong as wrong:
            return str(wrong)
        return ""

    def _scan(self) -> None:
        while True:
            if self._value() and not self._empty():
                self._key()
            elif self._ended():
                return

    def _next(self) -> str:
        """Move behind the next character that is not white space, and return this character."""
        text = self._text
        while self._at < len(text) and text[self._at] in " \t\r\n":
            self._at += 1
        return self._take()

    def _take(self) -> str:
        if self._at >= len(self._text):
            raise _Wrong("unexpected end of JSON input")
        self._at += 1
        return self._text[self._at - 1]

    def _take_more(self) -> str:
        """Return the next character inside a string, number or word.

        At the end of the text, return a space.
        """
        return self._take() if self._at < len(self._text) else " "

    def _value(self) -> bool:
        """Move the position behind the next value, and return False.

        For an object or a list, move it only behind the opening bracket, and return True.
        """
        match character := self._next():
            case "{" | "[":
                self._open.append(character)
                if len(self._open) > DEEPEST:
                    raise _Wrong.character(character, "exceeded max depth")
                return True
            case '"':
                self._string()
            case "t" | "f" | "n":
                self._literal({"t": "true", "f": "false", "n": "null"}[character])
            case _ if character == "-" or character in _DIGITS:
                self._number(character)
            case _:
                raise _Wrong.character(character, "looking for beginning of value")
        return False

    def _empty(self) -> bool:
        """If the object or list that has just begun is empty, skip its end and return True."""
        closing = "}" if self._open[-1] == "{" else "]"
        before = self._at
        if self._next() == closing:
            self._open.pop()
            return True
        self._at = before
        return False

    def _key(self) -> None:
        """Move behind the next key and its colon, if the current value is an object."""
        if self._open[-1] != "{":
            return
        if (character := self._next()) != '"':
            raise _Wrong.character(character, "looking for beginning of object key string")
        self._string()
        if (character := self._next()) != ":":
            raise _Wrong.character(character, "after object key")

    def _ended(self) -> bool:
        """Move behind the brackets that end values at this position, and behind a comma after them.

        Return True at the end of the text; False if another value must follow.
        """
        while self._open:
            character = self._next()
            if character == ",":
                self._key()
                return False
            inside = self._open.pop()
            if character != ("}" if inside == "{" else "]"):
                what = "object key:value pair" if inside == "{" else "array element"
                raise _Wrong.character(character, f"after {what}")
        if rest := self._text[self._at :].strip(" \t\r\n"):
            raise _Wrong.character(rest[0], "after top-level value")
        return True

    def _string(self) -> None:
        while True:
            self._at = _PLAIN.match(self._text, self._at).end()  # type: ignore[union-attr]
            if (character := self._take()) == '"':
                return
            if character < " ":
                raise _Wrong.character(character, "in string literal")
            if character == "\\":
                self._escape()

    def _escape(self) -> None:
        if (character := self._take_more()) not in '"\\/bfnrtu':
            raise _Wrong.character(character, "in string escape code")
        for _ in range(4 if character == "u" else 0):
            if (digit := self._take_more()) not in "0123456789abcdefABCDEF":
                raise _Wrong.character(digit, r"in \u hexadecimal character escape")

    def _literal(self, literal: str) -> None:
        for expected in literal[1:]:
            if (character := self._take_more()) != expected:
                context = f"in literal {literal} (expecting '{expected}')"
                raise _Wrong.character(character, context)

    def _number(self, first: str) -> None:
        if first == "-" and (first := self._take_more()) not in _DIGITS:
            raise _Wrong.character(first, "in numeric literal")
        if first != "0":
            self._digits()
        if self._text[self._at : self._at + 1] == ".":
            self._at += 1
            self._digit("after decimal point in numeric literal")
        if self._text[self._at : self._at + 1] in ("e", "E"):
            self._at += 1
            if self._text[self._at : self._at + 1] in ("+", "-"):
                self._at += 1
            self._digit("in exponent of numeric literal")

    def _digit(self, context: str) -> None:
        if (character := self._take_more()) not in _DIGITS:
            raise _Wrong.character(character, context)
        self._digits()

    def _digits(self) -> None:
        while self._text[self._at : self._at + 1] in tuple(_DIGITS):
            self._at += 1


_DIGITS = "0123456789"
_PLAIN = re.compile(r'[^"\\\x00-\x1f]*')


class _Wrong(Exception):
    @classmethod
    def character(cls, character: str, context: str) -> _Wrong:
        shown = f"\\{character}" if character in "'\\" else _shown(character)
        return cls(f"invalid character '{shown}' {context}")


def _shown(character: str) -> str:
    if character.isprintable():
        return character
    known = {"\a": "a", "\b": "b", "\f": "f", "\n": "n", "\r": "r", "\t": "t", "\v": "v"}
    code = ord(character)
    return "\\" + (known.get(character) or (f"x{code:02x}" if code < 0x80 else f"u{code:04x}"))
