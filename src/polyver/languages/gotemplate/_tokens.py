"""The tokens of a template, and the values of its literals.

A token is either a text outside of `{{ }}`, or a name, number, string or sign inside. Literals are
numbers, characters and strings in the syntax of Go.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from polyver.languages.gotemplate._values import decoded, encoded

__all__ = [
    "InvalidTemplateLiteral",
    "TemplateNumber",
    "TemplateToken",
    "parse_float",
    "parse_int",
    "read_number",
    "read_tokens",
    "unquoted",
]

_SPACES = " \t\r\n"
_KEYWORDS = frozenset(
    "block break continue define else end if nil range template with".split(),
)
_ENDS = frozenset(f"{_SPACES}.,|:)(")
_TRIM_RIGHT = re.compile(r"[ \t\r\n]-\}\}")
_TRIM_LEFT = re.compile(r"-[ \t\r\n]")
_BLANK = re.compile(r"[ \t\r\n]+")
_NUMBER = re.compile(
    r"[+-]?(?:0[xX][0-9a-fA-F_]*(?:\.[0-9a-fA-F_]*)?(?:[pP][+-]?[0-9_]*)?"
    r"|0[oO][0-7_]*(?:\.[0-7_]*)?|0[bB][01_]*(?:\.[01_]*)?"
    r"|[0-9_]*(?:\.[0-9_]*)?(?:[eE][+-]?[0-9_]*)?)i?"
)
_SIGNS = {"|": "|", "=": "=", "(": "(", ")": ")"}
_QUOTED = {
    '"': ("string", "unterminated quoted string"),
    "'": ("char", "unterminated character constant"),
}


@dataclass(frozen=True, slots=True)
class TemplateToken:
    """A token and its position; if its kind is `error`, its text is the error message."""

    kind: str
    text: str
    at: int


class _Wrong(Exception):
    def __init__(self, problem: str, at: int) -> None:
        super().__init__(problem)
        self.at = at


def read_tokens(source: str) -> list[TemplateToken]:
    """Divide a template into tokens; the last token has the kind `end` or `error`.

    >>> [token.kind for token in read_tokens("a {{- .b | c }}")]
    ['text', '{{', 'field', 'space', '|', 'space', 'name', 'space', '}}', 'end']
    """
    found: list[TemplateToken] = []
    try:
        found.extend(_Lexer(source).tokens())
    except _Wrong as wrong:
        found.append(TemplateToken("error", str(wrong), wrong.at))
    return found


def _is_word(char: str) -> bool:
    return char == "_" or char.isalpha() or char.isdecimal()


class _Lexer:
    """Reads a template from its beginning to its end."""

    def __init__(self, source: str) -> None:
        self._source = source
        self._at = 0
        self._parens = 0

    def tokens(self) -> Iterator[TemplateToken]:
        while True:
            opened = self._source.find("{{", self._at)
            end = opened if opened >= 0 else len(self._source)
            text = self._source[self._at : end]
            if opened >= 0 and _TRIM_LEFT.match(self._source, opened + 2):
                text = text.rstrip(_SPACES)
            if text:
                yield TemplateToken("text", text, self._at)
            if opened < 0:
                yield TemplateToken("end", "", len(self._source))
                return
            self._at = opened + 2
            trims = _TRIM_LEFT.match(self._source, self._at) is not None
            self._at += 2 if trims else 0
            if self._source.startswith("/*", self._at):
                self._comment()
                continue
            yield TemplateToken("{{", "{{", opened)
            self._parens = 0
            while not self._closes():
                if self._at >= len(self._source):
                    raise _Wrong("unclosed action", self._at)
                yield self._word()
            if self._parens:
                raise _Wrong("unclosed left paren", self._at)
            yield self._close()

    def _comment(self) -> None:
        start = self._at
        end = self._source.find("*/", self._at + 2)
        if end < 0:
            raise _Wrong("unclosed comment", start)
        self._at = end + 2
        if not self._closes():
            raise _Wrong("comment ends before closing delimiter", start)
        self._close()

    def _closes(self) -> bool:
        at_trim = _TRIM_RIGHT.match(self._source, self._at) is not None
        return at_trim or self._source.startswith("}}", self._at)

    def _close(self) -> TemplateToken:
        trims = not self._source.startswith("}}", self._at)
        self._at += 4 if trims else 2
        token = TemplateToken("}}", "}}", self._at - 2)
        if trims:
            blank = _BLANK.match(self._source, self._at)
            self._at = blank.end() if blank else self._at
        return token

    def _word(self) -> TemplateToken:
        char = self._source[self._at]
        if char in _SPACES:
            return self._space()
        if char in _QUOTED:
            return self._quoted(*_QUOTED[char])
        if char == "$":
            return self._named("variable", self._at + 1)
        known = {"`": self._raw, ".": self._dot, ":": self._declare}
        return known[char]() if char in known else self._plain(char)

    def _plain(self, char: str) -> TemplateToken:
        if char in "+-" or "0" <= char <= "9":
            return self._number()
        if _is_word(char):
            return self._named("name", self._at)
        if char in _SIGNS:
            self._parens += {"(": 1, ")": -1}.get(char, 0)
            if self._parens < 0:
                raise _Wrong("unexpected right paren", self._at)
            return self._token(_SIGNS[char], self._at + 1)
        if char.isascii() and char.isprintable():
            return self._token("sign", self._at + 1)
        raise _Wrong(f"unrecognized character in action: {_shown(char)}", self._at)

    def _token(self, kind: str, end: int) -> TemplateToken:
        token = TemplateToken(kind, self._source[self._at : end], self._at)
        self._at = end
        return token

    def _space(self) -> TemplateToken:
        blank = _BLANK.match(self._source, self._at)
        assert blank is not None
        end = blank.end()
        if _TRIM_RIGHT.match(self._source, end - 1):
            end -= 1
        return self._token("space", end)

    def _declare(self) -> TemplateToken:
        if not self._source.startswith(":=", self._at):
            raise _Wrong("expected :=", self._at)
        return self._token(":=", self._at + 2)

    def _dot(self) -> TemplateToken:
        after = self._source[self._at + 1 : self._at + 2]
        if not after or "0" <= after <= "9":
            return self._number()
        return self._named("field", self._at + 1)

    def _named(self, kind: str, end: int) -> TemplateToken:
        while end < len(self._source) and _is_word(self._source[end]):
            end += 1
        after = self._source[end : end + 1]
        if after and after not in _ENDS and not self._source.startswith("}}", end):
            raise _Wrong(f"bad character {_shown(after)}", end)
        text = self._source[self._at : end]
        if kind == "name" and text in ("true", "false"):
            kind = "bool"
        elif kind == "name" and text in _KEYWORDS:
            kind = text
        return self._token("dot" if text == "." else kind, end)

    def _number(self) -> TemplateToken:
        found = _NUMBER.match(self._source, self._at)
        assert found is not None
        end = found.end()
        kind = "number"
        if self._source[end : end + 1] in ("+", "-") and end > self._at:
            second = _NUMBER.match(self._source, end)
            assert second is not None
            end, kind = second.end(), "complex"
        after = self._source[end : end + 1]
        if (after and _is_word(after)) or (kind == "complex" and self._source[end - 1] != "i"):
            raise _Wrong(f"bad number syntax: {self._source[self._at : end + 1]}", self._at)
        return self._token(kind, end)

    def _quoted(self, kind: str, problem: str) -> TemplateToken:
        mark, end = self._source[self._at], self._at + 1
        while self._source[end : end + 1] != mark:
            if self._source[end : end + 1] == "\\":
                end += 1
            if self._source[end : end + 1] in ("", "\n"):
                raise _Wrong(problem, self._at)
            end += 1
        return self._token(kind, end + 1)

    def _raw(self) -> TemplateToken:
        end = self._source.find("`", self._at + 1)
        if end < 0:
            raise _Wrong("unterminated raw quoted string", self._at)
        return self._token("raw", end + 1)


def _shown(char: str) -> str:
    return f"U+{ord(char):04X}" + (f" '{char}'" if char.isprintable() else "")


class InvalidTemplateLiteral(Exception):
    """The literal has invalid syntax or is out of range."""


@dataclass(frozen=True, slots=True)
class TemplateNumber:
    """A number in a template: its text, its value as a float, and as an integer if it is one.

    `whole` is None if the number is no integer.
    """

    text: str
    whole: int | None
    real: float

    @property
    def is_real(self) -> bool:
        """True if the number becomes a float where Go does not require a certain type."""
        hexadecimal = re.match("0[xX]", self.text) and not re.search("[pP]", self.text)
        is_char = self.text.startswith("'")
        return not hexadecimal and not is_char and re.search("[.eEpP]", self.text) is not None


_INT = re.compile(
    r"([+-]?)(?:(0[xX](?:_?[0-9a-fA-F])+)|(0[bB](?:_?[01])+)|0[oO]?((?:_?[0-7])+)|(0|[1-9](?:_?[0-9])*))"
)
_FLOAT = re.compile(r"[+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?")
_HEX_FLOAT = re.compile(r"[+-]?0[xX](?:[0-9a-fA-F]+\.?[0-9a-fA-F]*|\.[0-9a-fA-F]+)[pP][+-]?[0-9]+")
_SPECIAL = re.compile(r"(?i)([+-]?)(inf|infinity|nan)")


def parse_int(text: str) -> int | None:
    """Parse a 64-bit integer in any of Go's notations; return None for any other string.

    >>> parse_int("0x_ff"), parse_int("0644"), parse_int("08"), parse_int("1_000")
    (255, 420, None, 1000)
    """
    number = _integer(text)
    return number if number is not None and -(2**63) <= number < 2**63 else None


def _integer(text: str) -> int | None:
    found = _INT.fullmatch(text) if len(text) < 100 else None
    if found is None:
        return None
    sign = -1 if found[1] == "-" else 1
    for group, base in ((2, 16), (3, 2), (4, 8), (5, 10)):
        if found[group] is not None:
            digits = found[group].replace("_", "")
            return sign * int(digits[2:] if base in (16, 2) else digits, base)
    return None


def parse_float(text: str) -> float | None:
    """Parse a float in any of Go's notations, except with underscores; None for any other string.

    >>> parse_float("1e3"), parse_float("0x1p-2"), parse_float("1e999"), parse_float(".")
    (1000.0, 0.25, None, None)
    """
    if len(text) > 1000:
        return None
    if _FLOAT.fullmatch(text):
        number = float(text)
    elif _HEX_FLOAT.fullmatch(text):
        number = float.fromhex(text)
    else:
        found = _SPECIAL.fullmatch(text)
        return float(text) if found and not (found[1] and found[2].lower() == "nan") else None
    return None if number in (float("inf"), float("-inf")) else number


def read_number(text: str, kind: str) -> TemplateNumber:
    """Parse a number in a template; raise `InvalidTemplateLiteral` if it is invalid.

    `kind` is the kind of its token.
    """
    if kind == "char":
        code = _char(text)
        return TemplateNumber(text, code, float(code))
    if kind == "complex" or text.endswith("i"):
        raise InvalidTemplateLiteral(f"{text} is a complex number, which templates do not support")
    whole = parse_int(text)
    if whole is not None:
        return TemplateNumber(text, whole, float(whole))
    plain = text.replace("_", "") if re.search("[0-9]_[0-9]", text) else text
    real = parse_float(plain)
    if real is None or "_" in plain:
        raise InvalidTemplateLiteral(f"illegal number syntax: {text}")
    if not re.search("[.eEpP]", text):
        # A number that fits only an unsigned 64-bit integer is an error when it is used, not here.
        large = _integer(text)
        if large is None or not 0 <= large < 2**64 or text.startswith("+"):
            raise InvalidTemplateLiteral(f"integer overflow: {text}")
        return TemplateNumber(text, None, real)
    exact = real.is_integer() and -(2.0**63) <= real < 2.0**63
    return TemplateNumber(text, int(real) if exact else None, real)


def _char(text: str) -> int:
    found = list(_characters(text[1:-1], "'"))
    if len(found) != 1 or len(found[0]) != 1:
        raise InvalidTemplateLiteral(f"malformed character constant: {text}")
    value = ord(found[0])
    return value - 0xDC00 if 0xDC80 <= value <= 0xDCFF else value


def unquoted(text: str) -> str:
    r"""Parse a quoted or raw string; raise `InvalidTemplateLiteral` if it is invalid.

    >>> unquoted(r'"a\tb\u00e4"'), unquoted("`a\\b`")
    ('a\tbä', 'a\\b')
    """
    if text.startswith("`"):
        return text[1:-1].replace("\r", "")
    # Several escaped bytes may form one character together.
    joined = "".join(_characters(text[1:-1], '"'))
    return decoded(encoded(joined))


_ESCAPES = dict(zip("abfnrtv\\", "\a\b\f\n\r\t\v\\", strict=True))
_CODE = re.compile(r"x([0-9a-fA-F]{2})|([0-7]{3})|u([0-9a-fA-F]{4})|U([0-9a-fA-F]{8})")


def _characters(text: str, mark: str) -> Iterator[str]:
    at = 0
    while at < len(text):
        char = text[at]
        at += 1
        if char != "\\":
            if char == mark:
                raise InvalidTemplateLiteral("invalid syntax")
            yield char
            continue
        after = text[at : at + 1]
        if after in _ESCAPES or after == mark:
            yield _ESCAPES.get(after, after)
            at += 1
            continue
        found = _CODE.match(text, at)
        if found is None:
            raise InvalidTemplateLiteral(f"invalid escape \\{after}")
        yield _coded(found)
        at = found.end()


def _coded(found: re.Match[str]) -> str:
    if found[1] is not None or found[2] is not None:
        value = int(found[1], 16) if found[1] is not None else int(found[2], 8)
        if value > 255:
            raise InvalidTemplateLiteral(f"invalid escape \\{found[0]}")
        return chr(value) if value < 0x80 else chr(0xDC00 + value)
    value = int(found[3] or found[4], 16)
    if value > 0x10FFFF or 0xD800 <= value < 0xE000:
        raise InvalidTemplateLiteral(f"invalid escape \\{found[0]}")
    return chr(value)
