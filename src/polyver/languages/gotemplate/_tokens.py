"""Tokens of a template: text, and inside actions names, numbers, strings and signs."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

__all__ = ["TemplateToken", "read_tokens"]

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
    """A token and its position; the text of one of kind `error` is the message."""

    kind: str
    text: str
    at: int


class _Wrong(Exception):
    def __init__(self, problem: str, at: int) -> None:
        super().__init__(problem)
        self.at = at


def read_tokens(source: str) -> list[TemplateToken]:
    """Return the tokens of a template, the last of which is its end or an error.

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
    """Walks over a template from its beginning to its end."""

    def __init__(self, source: str) -> None:
        self._source = source
        self._at = 0
        self._parens = 0

    def tokens(self) -> Iterator[TemplateToken]:
        while True:
            opened = self._source.find("{{", self._at)
            yield from self._text(opened)
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
            yield from self._action()

    def _text(self, opened: int) -> Iterator[TemplateToken]:
        end = opened if opened >= 0 else len(self._source)
        text = self._source[self._at : end]
        if opened >= 0 and _TRIM_LEFT.match(self._source, opened + 2):
            text = text.rstrip(_SPACES)
        if text:
            yield TemplateToken("text", text, self._at)

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

    def _action(self) -> Iterator[TemplateToken]:
        self._parens = 0
        while not self._closes():
            if self._at >= len(self._source):
                raise _Wrong("unclosed action", self._at)
            yield self._word()
        if self._parens:
            raise _Wrong("unclosed left paren", self._at)
        yield self._close()

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
