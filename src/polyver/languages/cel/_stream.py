"""Token stream of the parser, with cel-go's recovery after an error."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

from polyver.languages.cel._nodes import CelLiteral, CelNode
from polyver.languages.cel._tokens import CelProblem, CelToken, read_tokens

__all__ = [
    "DEEPEST",
    "FACTORS",
    "KEYS",
    "RELATIONS",
    "START",
    "TERMS",
    "Mismatch",
    "Stream",
    "TooDeep",
    "told",
]

DEEPEST: Final = 50
"""The maximum number of open brackets; cel-go allows more."""
_MOST_PROBLEMS: Final = 100
_LITERALS = ("true", "false", "null", "NUM_FLOAT", "NUM_INT", "NUM_UINT", "STRING", "BYTES")
START = frozenset(("[", "{", "(", ".", "-", "!", *_LITERALS, "IDENTIFIER"))
RELATIONS = {"<": "_<_", "<=": "_<=_", ">=": "_>=_", ">": "_>_", "==": "_==_", "!=": "_!=_"}
RELATIONS["in"] = "@in"
FACTORS = {"*": "_*_", "/": "_/_", "%": "_%_"}
TERMS = {"+": "_+_", "-": "_-_"}
KEYS = START | {"?", "ESC_IDENTIFIER"}
OPERATORS = frozenset(("&&", "||", *RELATIONS, *FACTORS, *TERMS))
_ORDER = {
    kind: number
    for number, kind in enumerate(
        (
            *("==", "!=", "in", "<", "<=", ">=", ">", "&&", "||", "[", "]", "{", "}", "(", ")"),
            *(".", ",", "-", "!", "?", ":", "+", "*", "/", "%", *_LITERALS),
            *("IDENTIFIER", "ESC_IDENTIFIER"),
        )
    )
}


class Mismatch(Exception):
    """A syntax error that has been reported; the rest of the grammar rule cannot be parsed."""


class TooDeep(Exception):
    """An expression that nests too deeply."""


class Stream:
    """The tokens of an expression, and the errors found so far."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._tokens, self.problems = read_tokens(text)
        self._at = 0
        self._depth = 0
        self._silent = False
        """True if no token has been accepted since the last error."""
        self._follow: list[frozenset[str]] = []
        """The tokens that may follow the rules that are being parsed, outermost first."""
        self._last_error = -1

    # Tokens

    @property
    def _here(self) -> CelToken:
        return self._tokens[self._at]

    def _ahead(self, count: int = 1) -> CelToken:
        return self._tokens[min(self._at + count, len(self._tokens) - 1)]

    def _take(self) -> CelToken:
        token = self._here
        self._silent = False
        if token.kind != "<EOF>":
            self._at += 1
        return token

    def _skip(self) -> None:
        if self._here.kind != "<EOF>":
            self._at += 1

    # Errors

    def _report(self, text: str, at: int | None = None) -> None:
        if not self._silent and len(self.problems) <= _MOST_PROBLEMS:
            self.problems.append(CelProblem(self._here.at if at is None else at, text))
        self._silent = True

    def _refuse(self, at: int, text: str) -> CelNode:
        """Record an error that is not a syntax error, and return a placeholder."""
        self.problems.append(CelProblem(at, text))
        return CelLiteral(None, at=at)

    def _expects(self, kinds: frozenset[str]) -> None:
        """Check that one of some kinds comes next; skip one extra token before it."""
        if self._here.kind in kinds:
            return
        shown = f"input '{self._here.text}' expecting {told(kinds)}"
        if self._ahead().kind in kinds and self._here.kind != "<EOF>":
            self._report(f"Syntax error: extraneous {shown}")
            self._skip()
            self._silent = False
            return
        self._report(f"Syntax error: mismatched {shown}")
        raise Mismatch

    def _match(self, kind: str, then: frozenset[str]) -> CelToken:
        """Take a token of a kind; skip one extra token before it, or assume a missing one."""
        here = self._here
        if here.kind == kind:
            return self._take()
        if self._ahead().kind == kind and here.kind != "<EOF>":
            self._report(f"Syntax error: extraneous input '{here.text}' expecting {told({kind})}")
            self._skip()
            return self._take()
        if here.kind in then:
            self._report(f"Syntax error: missing {told({kind})} at '{here.text}'")
            return CelToken(kind, "", here.at)
        self._report(f"Syntax error: mismatched input '{here.text}' expecting {told({kind})}")
        raise Mismatch

    def _no_way(self, first: CelToken) -> None:
        """Report that no alternative of the grammar starts like the input."""
        here = self._here
        end = here.at if here.kind == "<EOF>" else here.at + len(here.text)
        shown = self._text[first.at : end].rstrip() if here.kind == "<EOF>" else ""
        shown = shown or self._text[first.at : end]
        if here.kind in ("true", "false", "null") and len(shown) == len(here.text) + 1:
            self._report(f"Syntax error: mismatched input '{here.text}' expecting IDENTIFIER")
        else:
            self._report(f"Syntax error: no viable alternative at input '{shown}'")

    def _recover(self) -> None:
        """Skip to a token that may follow the current rule."""
        if self._last_error == self._at:
            self._skip()
        self._last_error = self._at
        known = frozenset().union(OPERATORS, ("?", "<EOF>"), *self._follow)
        if len(self._follow) > 1:
            known |= {".", "["}
        while self._here.kind not in known:
            self._skip()

    def _behind(self) -> frozenset[str]:
        """Return the kinds that may follow a complete operand, such as one in parentheses."""
        return OPERATORS | self._follow[-1] | {".", "[", "?"}

    @contextmanager
    def _within(self, *follow: str) -> Iterator[None]:
        self._follow.append(frozenset(follow))
        self._depth += 1
        if self._depth > DEEPEST:
            raise TooDeep
        try:
            yield
        finally:
            self._follow.pop()
            self._depth -= 1


def told(kinds: frozenset[str] | set[str]) -> str:
    """Return token kinds as error messages show them, in the order of the grammar."""
    names = sorted(kinds, key=lambda kind: _ORDER.get(kind, -1))
    shown = [each if each[:1].isupper() or each == "<EOF>" else f"'{each}'" for each in names]
    return shown[0] if len(shown) == 1 else f"{{{', '.join(shown)}}}"
