"""Token stream of the CEL parser, which continues after syntax errors as cel-go's parser does."""

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
    "token_names",
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
    """Raised after a syntax error, because the rest of the grammar rule cannot be parsed.

    The error is already in the list of errors.
    """


class TooDeep(Exception):
    """The expression nests too deeply."""


class Stream:
    """The tokens of an expression, and the errors found so far."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._tokens, self.problems = read_tokens(text)
        self._at = 0
        self._depth = 0
        self._silent = False
        """True from an error until the next accepted token.

        Further errors are then not reported.
        """
        self._follow: list[frozenset[str]] = []
        """For each grammar rule that is being parsed: the tokens that may follow it.

        The outermost rule is the first.
        """
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
        """Record an error that is not a syntax error, and return a placeholder node."""
        self.problems.append(CelProblem(at, text))
        return CelLiteral(None, at=at)

    def _expects(self, kinds: frozenset[str]) -> None:
        """Check that the next token is of one of these kinds; raise `Mismatch` if it is not.

        If only one extra token is in the way, report and skip this token, and continue.
        """
        if self._here.kind in kinds:
            return
        shown = f"input '{self._here.text}' expecting {token_names(kinds)}"
        if self._ahead().kind in kinds and self._here.kind != "<EOF>":
            self._report(f"Syntax error: extraneous {shown}")
            self._skip()
            self._silent = False
            return
        self._report(f"Syntax error: mismatched {shown}")
        raise Mismatch

    def _match(self, kind: str, then: frozenset[str]) -> CelToken:
        """Take a token of this kind; raise `Mismatch` if that is impossible.

        If an extra token comes before it, report and skip the extra token. If the token is missing
        and the next token is of a kind in `then`, report this and continue as if the token were
        present.
        """
        here = self._here
        if here.kind == kind:
            return self._take()
        if self._ahead().kind == kind and here.kind != "<EOF>":
            self._report(
                f"Syntax error: extraneous input '{here.text}' expecting {token_names({kind})}"
            )
            self._skip()
            return self._take()
        if here.kind in then:
            self._report(f"Syntax error: missing {token_names({kind})} at '{here.text}'")
            return CelToken(kind, "", here.at)
        self._report(
            f"Syntax error: mismatched input '{here.text}' expecting {token_names({kind})}"
        )
        raise Mismatch

    def _report_no_alternative(self, first: CelToken) -> None:
        """Report that no alternative of the grammar rule begins with the next tokens.

        `first` is the first of these tokens.
        """
        here = self._here
        end = here.at if here.kind == "<EOF>" else here.at + len(here.text)
        shown = self._text[first.at : end].rstrip() if here.kind == "<EOF>" else ""
        shown = shown or self._text[first.at : end]
        if here.kind in ("true", "false", "null") and len(shown) == len(here.text) + 1:
            self._report(f"Syntax error: mismatched input '{here.text}' expecting IDENTIFIER")
        else:
            self._report(f"Syntax error: no viable alternative at input '{shown}'")

    def _recover(self) -> None:
        """Skip tokens after an error, up to a token that may follow a rule that is being parsed."""
        if self._last_error == self._at:
            self._skip()
        self._last_error = self._at
        known = frozenset().union(OPERATORS, ("?", "<EOF>"), *self._follow)
        if len(self._follow) > 1:
            known |= {".", "["}
        while self._here.kind not in known:
            self._skip()

    def _behind(self) -> frozenset[str]:
        """Return the kinds of tokens that may follow a complete operand, such as `(a)`."""
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


def token_names(kinds: frozenset[str] | set[str]) -> str:
    """Write token kinds in the form of error messages, in the order of the grammar."""
    names = sorted(kinds, key=lambda kind: _ORDER.get(kind, -1))
    shown = [each if each[:1].isupper() or each == "<EOF>" else f"'{each}'" for each in names]
    return shown[0] if len(shown) == 1 else f"{{{', '.join(shown)}}}"
