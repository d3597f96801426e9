"""Divide a CEL expression into tokens, as cel-go's lexer does."""

from __future__ import annotations

import re
from dataclasses import dataclass

__all__ = ["CelProblem", "CelToken", "read_tokens"]


@dataclass(frozen=True, slots=True)
class CelToken:
    """A token: its kind, its text, and its position in the expression, counted in characters."""

    kind: str
    text: str
    at: int


@dataclass(frozen=True, slots=True)
class CelProblem:
    """An error in an expression, and its position, counted in characters from 0."""

    at: int
    text: str


_ESCAPE = r"\\(?:[abfnrtv\"'\\?`]|[xX][0-9a-fA-F]{2}|u[0-9a-fA-F]{4}|U[0-9a-fA-F]{8}|[0-3][0-7]{2})"
_STRING = "|".join(
    (
        r'[rR]"""(?:.|\n)*?"""',
        r"[rR]'''(?:.|\n)*?'''",
        rf'"""(?:{_ESCAPE}|[^\\])*?"""',
        rf"'''(?:{_ESCAPE}|[^\\])*?'''",
        r'[rR]"[^"\n\r]*"',
        r"[rR]'[^'\n\r]*'",
        rf'"(?:{_ESCAPE}|[^\\"\n\r])*"',
        rf"'(?:{_ESCAPE}|[^\\'\n\r])*'",
    )
)
_WORDS = re.compile(
    "|".join(
        (
            r"(?P<space>[\t \r\n\f]+|//[^\n]*)",
            rf"(?P<BYTES>[bB](?:{_STRING}))",
            rf"(?P<STRING>{_STRING})",
            r"(?P<NUM_FLOAT>[0-9]+\.[0-9]+(?:[eE][+-]?[0-9]+)?|[0-9]+[eE][+-]?[0-9]+"
            r"|\.[0-9]+(?:[eE][+-]?[0-9]+)?)",
            r"(?P<NUM_UINT>0x[0-9a-fA-F]+[uU]|[0-9]+[uU])",
            r"(?P<NUM_INT>0x[0-9a-fA-F]+|[0-9]+)",
            r"(?P<IDENTIFIER>[A-Za-z_][A-Za-z0-9_]*)",
            r"(?P<ESC_IDENTIFIER>`[A-Za-z0-9_.\-/ ]+`)",
            r"(?P<sign>==|!=|<=|>=|&&|\|\||[<>\[\]{}().,\-!?:+*/%])",
        )
    )
)
_KEYWORDS = frozenset(("in", "true", "false", "null"))
# Matches an unterminated token, so that the error message can show it.
_BROKEN = re.compile(
    rf'[bB]?(?:[rR]"""(?:.|\n)*|[rR]\'\'\'(?:.|\n)*|[rR]"[^"\n\r]*|[rR]\'[^\'\n\r]*'
    rf'|"""(?:{_ESCAPE}|[^\\])*|\'\'\'(?:{_ESCAPE}|[^\\])*|"(?:{_ESCAPE}|[^\\"\n\r])*'
    rf"|'(?:{_ESCAPE}|[^\\'\n\r])*)|`[A-Za-z0-9_.\-/ ]*"
)


def read_tokens(text: str) -> tuple[list[CelToken], list[CelProblem]]:
    """Return the tokens of an expression and the errors; the last token marks the end."""
    tokens: list[CelToken] = []
    problems: list[CelProblem] = []
    at = 0
    while at < len(text):
        found = _WORDS.match(text, at)
        if found is None:
            end = _broken_end(text, at)
            problems.append(_unreadable(text, at, end))
            at = end
            continue
        kind = found.lastgroup or ""
        if kind != "space":
            word = found[0]
            tokens.append(CelToken(word if kind == "sign" or word in _KEYWORDS else kind, word, at))
        at = found.end()
    tokens.append(CelToken("<EOF>", "<EOF>", len(text)))
    return tokens, problems


def _broken_end(text: str, at: int) -> int:
    if text[at] in "=&|":
        return min(at + 2, len(text))
    broken = _BROKEN.match(text, at)
    end = broken.end() if broken is not None else at
    if broken is not None and end < len(text) and text[end] == "\\":
        # The error includes the invalid escape up to the first character that does not fit.
        end = _escape_end(text, end)
    return min(max(end + (end < len(text)), at + 1), len(text))


def _escape_end(text: str, at: int) -> int:
    known = re.compile(r"\\(?:[xX][0-9a-fA-F]?|u[0-9a-fA-F]{0,3}|U[0-9a-fA-F]{0,7}|[0-3][0-7]?)?")
    found = known.match(text, at)
    return found.end() if found else at


def _unreadable(text: str, at: int, end: int) -> CelProblem:
    shown = text[at:end].replace("\n", "\\n").replace("\r", "\\r").replace("\t", "\\t")
    return CelProblem(at, f"Syntax error: token recognition error at: '{shown}'")
