"""Parser of the CEL grammar.

Syntax errors have the messages of cel-go's parser. After an error, cel-go's parser continues if it
can: it drops an extra token, assumes a missing token, or skips to a token that may follow.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from polyver.languages.cel._literals import InvalidLiteral, read_literal
from polyver.languages.cel._macros import InvalidMacro, expand
from polyver.languages.cel._nodes import (
    CelCall,
    CelEntry,
    CelIdentifier,
    CelLiteral,
    CelNode,
    CelSelect,
    CelStruct,
    ListNode,
    MapNode,
    inside,
)
from polyver.languages.cel._stream import (
    DEEPEST,
    FACTORS,
    KEYS,
    RELATIONS,
    START,
    TERMS,
    Mismatch,
    Stream,
    TooDeep,
    token_names,
)
from polyver.languages.cel._tokens import CelProblem, CelToken

__all__ = ["parse"]

_LONGEST: Final = 100_000
_HIGHEST: Final = 200
"""The maximum height of the syntax tree of an expression.

Each operator in a chain such as `a + b + c` adds one level.
"""
_RESERVED = frozenset(
    "as break const continue else false for function if import in let loop package namespace null "
    "return true var void while".split()
)


def parse(text: str) -> tuple[CelNode | None, list[CelProblem]]:
    """Parse an expression; return its tree, or None if it cannot be parsed, and its syntax errors.

    >>> tree, problems = parse("(1")
    >>> problems[0].text
    "Syntax error: missing ')' at '<EOF>'"
    """
    if len(text) > _LONGEST:
        problem = f"expression code point size exceeds limit: size: {len(text)}, limit {_LONGEST}"
        return None, [CelProblem(-1, problem)]
    parser = _Parser(text)
    try:
        tree = parser.parse()
    except TooDeep:
        return None, [CelProblem(-1, f"expression recursion limit exceeded: {DEEPEST}")]
    if tree is not None and _height(tree) > _HIGHEST:
        return None, [CelProblem(-1, f"expression recursion limit exceeded: {_HIGHEST}")]
    return tree, parser.problems


def _height(tree: CelNode) -> int:
    """Return the height of a tree; counting stops above the maximum."""
    level, height = {id(tree): tree}, 0
    while level:
        level = {id(each): each for node in level.values() for each in inside(node)}
        height += 1
        if height > _HIGHEST:
            break
    return height


class _Parser(Stream):
    """Parses an expression by the rules of the grammar."""

    def parse(self) -> CelNode | None:
        with self._within("<EOF>"):
            tree = self._expr()
        try:
            self._match("<EOF>", frozenset())
        except Mismatch:
            return tree
        return tree

    def _expr(self) -> CelNode:
        first = self._either()
        if self._here.kind != "?":
            return first
        at = self._take().at
        try:
            with self._within(":"):
                then = self._either()
            self._match(":", START)
        except Mismatch:
            self._recover()
            return first
        with self._within(*self._follow[-1]):
            other = self._expr()
        return self._call(at, "_?_:_", [first, then, other])

    def _either(self) -> CelNode:
        return self._joined("||", "_||_", self._both)

    def _both(self) -> CelNode:
        return self._joined("&&", "_&&_", self._relation)

    def _joined(self, sign: str, function: str, part: Callable[[], CelNode]) -> CelNode:
        terms, positions = [part()], []
        while self._here.kind == sign:
            positions.append(self._take().at)
            terms.append(part())
        return (
            _balanced(function, terms, positions, 0, len(positions) - 1) if positions else terms[0]
        )

    def _relation(self) -> CelNode:
        return self._chain(RELATIONS, self._sum)

    def _sum(self) -> CelNode:
        return self._chain(TERMS, self._product)

    def _product(self) -> CelNode:
        return self._chain(FACTORS, self._unary)

    def _chain(self, signs: dict[str, str], part: Callable[[], CelNode]) -> CelNode:
        found = part()
        while self._here.kind in signs:
            token = self._take()
            found = self._call(token.at, signs[token.kind], [found, part()])
        return found

    def _unary(self) -> CelNode:
        try:
            self._expects(START)
            if self._here.kind == "!":
                return self._not()
            if self._here.kind == "-" and self._ahead().kind not in ("NUM_INT", "NUM_FLOAT"):
                return self._minus()
            return self._member()
        except Mismatch:
            at = self._here.at
            self._recover()
            return CelLiteral(None, at=at)

    def _not(self) -> CelNode:
        signs = [self._take()]
        while self._here.kind == "!":
            signs.append(self._take())
        if self._here.kind not in START:
            shown = f"input '{self._here.text}' expecting {token_names(START)}"
            self._report(f"Syntax error: extraneous {shown}")
            raise Mismatch
        if self._here.kind == "-" and self._ahead().kind not in ("NUM_INT", "NUM_FLOAT"):
            self._dashed()
        operand = self._member()
        return self._call(signs[0].at, "!_", [operand]) if len(signs) % 2 else operand

    def _minus(self) -> CelNode:
        signs: list[CelToken] = []
        while self._here.kind == "-" and self._ahead().kind == "-":
            signs.append(self._take())
        if self._ahead().kind not in START or self._ahead().kind == "!":
            self._dashed()
        signs.append(self._take())
        operand = self._member()
        return self._call(signs[0].at, "-_", [operand]) if len(signs) % 2 else operand

    def _dashed(self) -> None:
        """Report an error for a minus sign that no operand follows."""
        first = self._here
        self._at += 1
        self._report_no_alternative(first)
        self._at -= 1
        raise Mismatch

    def _member(self) -> CelNode:
        found = self._primary()
        while self._here.kind in (".", "["):
            found = self._part(found) if self._here.kind == "." else self._index(found)
        return found

    def _part(self, operand: CelNode) -> CelNode:
        """Parse what follows a dot: a field such as `.a`, or a method call such as `.a(1)`."""
        after = self._ahead()
        optional = after.kind == "?"
        named = self._ahead(2) if optional else after
        if named.kind not in ("IDENTIFIER", "ESC_IDENTIFIER"):
            first = self._here
            self._at += 2 if optional else 1
            self._report_no_alternative(first)
            raise Mismatch
        dot = self._take()
        if optional:
            self._take()
        name = self._take()
        text = name.text.strip("`")
        if optional:
            field = CelLiteral(text, at=name.at)
            return CelCall("_?._", [operand, field], at=dot.at)
        if self._here.kind == "(" and name.kind == "IDENTIFIER":
            opened = self._take()
            return self._call(opened.at, text, self._args(), operand)
        return CelSelect(operand, text, at=dot.at)

    def _index(self, operand: CelNode) -> CelNode:
        opened = self._take()
        self._expects(START | {"?"})
        optional = self._here.kind == "?"
        if optional:
            self._take()
        with self._within("]"):
            index = self._expr()
        self._match("]", self._behind())
        return self._call(opened.at, "_[?_]" if optional else "_[_]", [operand, index])

    def _args(self) -> list[CelNode]:
        self._expects(START | {")"})
        found: list[CelNode] = []
        if self._here.kind != ")":
            with self._within(",", ")"):
                found.append(self._expr())
                while self._here.kind == ",":
                    self._take()
                    found.append(self._expr())
        self._match(")", self._behind())
        return found

    def _primary(self) -> CelNode:
        match self._here.kind:
            case "(":
                self._take()
                with self._within(")"):
                    nested = self._expr()
                self._match(")", self._behind())
                return nested
            case "[":
                return self._list()
            case "{":
                return self._map()
            case "." | "IDENTIFIER":
                return self._named()
        return self._literal()

    def _named(self) -> CelNode:
        if self._is_message():
            return self._message()
        leading = self._take() if self._here.kind == "." else None
        if self._here.kind != "IDENTIFIER":
            assert leading is not None
            self._report_no_alternative(leading)
            raise Mismatch
        token = self._take()
        name = f".{token.text}" if leading else token.text
        call = self._take() if self._here.kind == "(" else None
        args = self._args() if call else []
        if token.text in _RESERVED:
            return self._refuse((leading or token).at, f"reserved identifier: {token.text}")
        return self._call(call.at, name, args) if call else CelIdentifier(name, at=token.at)

    def _is_message(self) -> bool:
        at = self._at + (self._here.kind == ".")
        while self._tokens[at].kind == "IDENTIFIER":
            following = self._tokens[at + 1].kind
            if following == "{":
                return True
            if following != ".":
                return False
            at += 2
        return False

    def _message(self) -> CelNode:
        name = ""
        while self._here.kind != "{":
            name += self._take().text
        opened = self._take()
        self._expects(frozenset(("}", ",", "?", "IDENTIFIER", "ESC_IDENTIFIER")))
        entries = self._entries(self._field)
        return CelStruct(name, entries, at=opened.at)

    def _field(self) -> str:
        return self._take().text.strip("`")

    def _list(self) -> CelNode:
        opened = self._take()
        self._expects(START | {"?", ",", "]"})
        items: list[CelNode] = []
        optional: set[int] = set()
        with self._within(",", "]"):
            while self._here.kind in START or self._here.kind == "?":
                if self._here.kind == "?":
                    self._take()
                    optional.add(len(items))
                items.append(self._expr())
                if self._here.kind != "," or self._ahead().kind not in START | {"?"}:
                    break
                self._take()
        self._closed("]")
        return ListNode(items, frozenset(optional), at=opened.at)

    def _closed(self, kind: str) -> None:
        self._expects(frozenset((kind, ",")))
        if self._here.kind == ",":
            self._take()
        self._match(kind, self._behind())

    def _map(self) -> CelNode:
        opened = self._take()
        self._expects(START | {"?", ",", "}"})
        return MapNode(self._entries(self._key), at=opened.at)

    def _key(self) -> CelNode:
        with self._within(":"):
            return self._expr()

    def _entries(self, read_key: Callable[[], CelNode] | Callable[[], str]) -> list[CelEntry]:
        entries: list[CelEntry] = []
        with self._within(",", "}"):
            while self._here.kind not in (",", "}", "<EOF>"):
                optional = self._here.kind == "?" and bool(self._take())
                key = read_key()
                colon = self._match(":", START)
                entries.append(CelEntry(colon.at, key, self._expr(), optional))
                if self._here.kind != "," or self._ahead().kind not in KEYS:
                    break
                self._take()
        self._closed("}")
        return entries

    def _literal(self) -> CelNode:
        sign = self._take() if self._here.kind == "-" else None
        token = self._take()
        at = (sign or token).at
        try:
            value = read_literal(token, negative=sign is not None)
        except InvalidLiteral as problem:
            return self._refuse(at, str(problem))
        return CelLiteral(value, at=at)

    def _call(
        self, at: int, function: str, args: list[CelNode], target: CelNode | None = None
    ) -> CelNode:
        try:
            found = expand(at, function, target, args)
        except InvalidMacro as problem:
            return self._refuse(problem.position, str(problem))
        return found or CelCall(function, args, target, at=at)


def _balanced(
    function: str, terms: list[CelNode], positions: list[int], low: int, high: int
) -> CelNode:
    middle = (low + high + 1) // 2
    left = (
        terms[middle] if middle == low else _balanced(function, terms, positions, low, middle - 1)
    )
    right = (
        terms[middle + 1]
        if middle == high
        else _balanced(function, terms, positions, middle + 1, high)
    )
    return CelCall(function, [left, right], at=positions[middle])
