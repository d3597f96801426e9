"""Parse a regular expression into a syntax tree; errors have the messages of Go."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace

from polyver.core import PolyverError
from polyver.languages.regexp._charsets import (
    CLASSES,
    NEWLINE,
    POSIX,
    Charset,
    property_named,
    without,
)
from polyver.languages.regexp._tree import (
    Assertion,
    Branch,
    Capture,
    Concatenation,
    RegexpNode,
    Repeat,
    SingleCharacter,
)

__all__ = ["InvalidPattern", "parse", "parse_groups"]

_MOST_REPEATS = 1000
_DEEPEST = 200
_LAST_CODE = 0x10FFFF


class InvalidPattern(PolyverError):
    """A string that is not a valid regular expression."""

    def __init__(self, problem: str, place: str) -> None:
        super().__init__(f"error parsing regexp: {problem}: `{place}`")


@dataclass(frozen=True, slots=True)
class _Flags:
    fold: bool = False
    lines: bool = False
    dots: bool = False
    lazy: bool = False


def parse(pattern: str) -> RegexpNode:
    """Parse a pattern.

    >>> parse("a[")
    Traceback (most recent call last):
    polyver.languages.regexp.syntax.InvalidPattern: error parsing regexp: missing closing ]: `[`
    """
    return _Parser(pattern).parse()


def parse_groups(pattern: str) -> tuple[RegexpNode, dict[str, int]]:
    """Parse a pattern and keep its groups; return its tree, and the number of each named group."""
    parser = _Parser(pattern, groups=True)
    return parser.parse(), parser.names


_REPEAT = re.compile(r"\{([0-9]{1,9})(,([0-9]{0,9}))?\}")
_GROUP = re.compile(r"\(\?(?:P?<([A-Za-z0-9_]+)>|([imsU]*)(-[imsU]+)?(:|\)))")
_PROPERTY = re.compile(r"\\([pP])(?:\{(\^?)([^}]*)\}|\{[^}]*|([^{]?))")
_SIMPLE = {"a": "\a", "f": "\f", "n": "\n", "r": "\r", "t": "\t", "v": "\v"}


def _bad_escape(rest: str) -> InvalidPattern:
    """Build Go's error for the invalid escape at the start of `rest`.

    The error quotes the escape up to the character at which Go stops reading.
    """
    if rest == "\\":
        return InvalidPattern("trailing backslash at end of expression", "")
    end = 4 if rest.startswith("\\x") else 2
    digits = re.match(r"\\x\{0*([1-9A-Fa-f][0-9A-Fa-f]{0,5})?", rest)
    if digits is not None:
        end = digits.end() + (int(digits[1] or "0", 16) <= _LAST_CODE)
    return InvalidPattern("invalid escape sequence", rest[:end])


def _is_repeatable(node: RegexpNode, most: int) -> bool:
    """Report whether nested repeats, such as `(a{10}){20}`, repeat a part at most `most` times."""
    match node:
        case Repeat(part, least, end):
            times = least if end is None else end
            return times <= most and _is_repeatable(part, most // max(times, 1))
        case Capture(part):
            return _is_repeatable(part, most)
        case Concatenation(parts) | Branch(parts):
            return all(_is_repeatable(part, most) for part in parts)
        case _:
            return True


class _Parser:
    """A recursive-descent parser of patterns."""

    def __init__(self, pattern: str, *, groups: bool = False) -> None:
        self._text = pattern
        self._keeps_groups = groups
        self._groups = 0
        self.names: dict[str, int] = {}
        self._at = 0
        self._depth = 0
        self._flags = _Flags()

    def parse(self) -> RegexpNode:
        try:
            found = self._branch()
        except RecursionError:  # the stack is too small for a nesting of `_DEEPEST`
            raise InvalidPattern("expression nests too deeply", self._text) from None
        if self._at < len(self._text):
            raise InvalidPattern("unexpected )", self._text)
        return found

    def _rest(self) -> str:
        return self._text[self._at :]

    def _take(self, text: str) -> bool:
        if not self._text.startswith(text, self._at):
            return False
        self._at += len(text)
        return True

    def _branch(self) -> RegexpNode:
        options = [self._sequence()]
        while self._take("|"):
            options.append(self._sequence())
        return options[0] if len(options) == 1 else Branch(tuple(options))

    def _sequence(self) -> RegexpNode:
        parts: list[RegexpNode] = []
        while self._at < len(self._text) and self._text[self._at] not in "|)":
            if self._take("\\Q"):
                parts += self._quotation()
                continue
            # A repeat after a change of flags repeats the part before the change.
            atom = parts.pop() if parts and self._at_repeat() else self._atom()
            if atom is not None:
                parts.append(self._repeated(atom))
        return Concatenation(tuple(parts))

    def _at_repeat(self) -> bool:
        return self._text[self._at] in "*+?" or _REPEAT.match(self._text, self._at) is not None

    def _repeated(self, atom: RegexpNode) -> RegexpNode:
        before = ""
        while (bounds := self._bounds()) is not None:
            operator = self._text[bounds[2] : self._at]
            if before:
                raise InvalidPattern("invalid nested repetition operator", before + operator)
            least, most, _ = bounds
            lazy = operator.endswith("?") and operator != "?"
            atom = Repeat(atom, least, most, lazy=lazy is not self._flags.lazy)
            if not _is_repeatable(atom, _MOST_REPEATS):
                raise InvalidPattern("invalid repeat count", operator)
            before = operator
        return atom

    def _bounds(self) -> tuple[int, int | None, int] | None:
        start = self._at
        found = _REPEAT.match(self._text, self._at)
        if found is not None:
            least = int(found[1])
            most = least if found[2] is None else int(found[3]) if found[3] else None
            self._at = found.end()
            if max(least, most or 0) > _MOST_REPEATS or (most is not None and least > most):
                raise InvalidPattern("invalid repeat count", found[0])
        elif self._at < len(self._text) and self._text[self._at] in "*+?":
            operator = self._text[self._at]
            self._at += 1
            least, most = int(operator == "+"), 1 if operator == "?" else None
        else:
            return None
        self._take("?")
        return least, most, start

    def _atom(self) -> RegexpNode | None:
        char = self._text[self._at]
        match char:
            case "(":
                return self._group()
            case "[":
                return SingleCharacter(self._class())
            case "\\":
                return self._escape()
        if self._at_repeat():
            start = self._at
            self._bounds()
            place = self._text[start : self._at]
            raise InvalidPattern("missing argument to repetition operator", place)
        self._at += 1
        return self._plain(char)

    def _plain(self, char: str) -> RegexpNode:
        match char:
            case ".":
                return SingleCharacter(Charset(() if self._flags.dots else NEWLINE, negated=True))
            case "^":
                return Assertion("line-begin" if self._flags.lines else "begin")
            case "$":
                return Assertion("line-end" if self._flags.lines else "end")
        return self._literal(char)

    def _literal(self, char: str) -> RegexpNode:
        return SingleCharacter(Charset(((ord(char), ord(char)),), folds=self._flags.fold))

    def _group(self) -> RegexpNode | None:
        flags = self._flags
        if not self._take("(?"):
            self._at += 1
            return self._captured(flags, "")
        self._at -= 2
        found = _GROUP.match(self._text, self._at)
        if found is None:
            raise self._bad_group()
        self._at = found.end()
        if found[1] is not None:
            return self._captured(flags, found[1])
        self._set(found[2] or "", to=True)
        self._set(found[3] or "", to=False)
        return self._closed(flags) if found[4] == ":" else None

    def _captured(self, flags: _Flags, name: str) -> RegexpNode:
        self._groups += 1
        number = self._groups
        if name:
            self.names.setdefault(name, number)
        inside = self._closed(flags)
        return Capture(inside, number) if self._keeps_groups else inside

    def _bad_group(self) -> InvalidPattern:
        rest = self._rest()
        if rest.startswith(("(?P<", "(?<")) and rest not in ("(?P<", "(?<"):
            capture = rest[: rest.index(">") + 1] if ">" in rest else rest
            return InvalidPattern("invalid named capture", capture)
        read = re.match(r"\(\?[imsU]*-?[imsU]*.?", rest, re.DOTALL)  # up to the wrong character
        return InvalidPattern("invalid or unsupported Perl syntax", read[0] if read else rest)

    def _set(self, letters: str, *, to: bool) -> None:
        names = {"i": "fold", "m": "lines", "s": "dots", "U": "lazy"}
        for letter in letters.removeprefix("-"):
            self._flags = replace(self._flags, **{names[letter]: to})

    def _closed(self, flags: _Flags) -> RegexpNode:
        self._depth += 1
        if self._depth > _DEEPEST:
            raise InvalidPattern("expression nests too deeply", self._text)
        inside = self._branch()
        if not self._take(")"):
            raise InvalidPattern("missing closing )", self._text)
        self._depth -= 1
        self._flags = flags
        return inside

    def _escape(self) -> RegexpNode | None:
        char = self._text[self._at + 1 : self._at + 2]
        places = {"A": "begin", "z": "end", "b": "word", "B": "inside"}
        if char in places:
            self._at += 2
            return Assertion(places[char])
        found = self._escaped_class()
        return SingleCharacter(found) if found is not None else self._literal(self._escaped_char())

    def _quotation(self) -> list[RegexpNode]:
        inside, _, _ = self._rest().partition("\\E")
        self._at = min(self._at + len(inside) + 2, len(self._text))
        return [self._literal(char) for char in inside]

    def _escaped_class(self) -> Charset | None:
        """Read an escape such as `\\d` or `\\pL`; return its characters. None if there is none."""
        char = self._text[self._at + 1 : self._at + 2]
        if char.lower() in CLASSES:
            self._at += 2
            ranges, negated = CLASSES[char.lower()], char.isupper()
            return Charset(ranges, negated=negated, folds=self._flags.fold)
        found = _PROPERTY.match(self._text, self._at)
        if found is None:
            return None
        name = property_named(found[3] or found[4] or "")
        if name is None:
            raise InvalidPattern("invalid character class range", found[0])
        self._at = found.end()
        turned = (found[1] == "P") is not (found[2] == "^")
        return Charset((), ((name, turned),), folds=self._flags.fold)

    def _escaped_char(self) -> str:
        found = re.compile(
            r"\\(?:x([0-9A-Fa-f]{2})|x\{([0-9A-Fa-f]{1,6})\}|(0[0-7]{0,2}|[1-7][0-7]{1,2})"
            r"|([afnrtv])|([\x00-/:-@\[-`{-\x7f]))",
            re.DOTALL,
        ).match(self._text, self._at)
        if found is None:
            raise _bad_escape(self._rest())
        self._at = found.end()
        if found[4]:
            return _SIMPLE[found[4]]
        if found[5]:
            return found[5]
        code = int(found[3], 8) if found[3] else int(found[1] or found[2], 16)
        if code > _LAST_CODE:
            raise _bad_escape(found[0])
        return chr(code)

    def _class(self) -> Charset:
        start = self._at
        self._at += 1
        negated = self._take("^")
        ranges: list[tuple[int, int]] = []
        properties: list[tuple[str, bool]] = []
        first = True
        while first or not self._text.startswith("]", self._at):
            if self._at >= len(self._text):
                raise InvalidPattern("missing closing ]", self._text[start:])
            self._member(start, ranges, properties)
            first = False
        self._at += 1
        return Charset(tuple(ranges), tuple(properties), negated, self._flags.fold)

    def _member(
        self, start: int, ranges: list[tuple[int, int]], properties: list[tuple[str, bool]]
    ) -> None:
        posix = re.compile(r"\[:(\^?)(\w*):\]").match(self._text, self._at)
        if posix is not None:
            if posix[2] not in POSIX:
                raise InvalidPattern("invalid character class range", posix[0])
            self._at = posix.end()
            ranges += without(POSIX[posix[2]]) if posix[1] else POSIX[posix[2]]
            return
        found = self._escaped_class() if self._text[self._at] == "\\" else None
        if found is not None:
            ranges += without(found.ranges) if found.negated else found.ranges
            properties += found.properties
            return
        place = self._at
        low = self._class_char(start)
        high = low
        if self._text.startswith("-", self._at) and self._text[self._at + 1 : self._at + 2] != "]":
            self._at += 1
            high = self._class_char(start)
        if high < low:
            raise InvalidPattern("invalid character class range", self._text[place : self._at])
        ranges.append((ord(low), ord(high)))

    def _class_char(self, start: int) -> str:
        if self._at >= len(self._text):
            raise InvalidPattern("missing closing ]", self._text[start:])
        if self._text[self._at] == "\\":
            return self._escaped_char()
        self._at += 1
        return self._text[self._at - 1]
