"""Compilation of CEL expressions against a schema."""

from __future__ import annotations

from dataclasses import dataclass

from polyver.core import PolyverError
from polyver.languages.cel import _types as types
from polyver.languages.cel._checker import Checker, ExpressionTooLarge
from polyver.languages.cel._estimates import estimate
from polyver.languages.cel._parser import parse
from polyver.languages.cel._problems import format_problems
from polyver.languages.cel._program import CelProgram, Unusable
from polyver.languages.cel._schema_types import DeclaredType, structs_of
from polyver.languages.cel._tokens import CelProblem
from polyver.languages.cel._types import CelType
from polyver.languages.cel._validators import literal_problems

__all__ = ["CelEnvironment", "Expression", "Uncompilable", "Unusable"]

_NAMES = ("self", "oldSelf")


class Uncompilable(PolyverError):
    """An expression has errors; the message lists all of them."""


@dataclass(frozen=True, slots=True)
class Expression:
    """A compiled expression, which can be evaluated any number of times."""

    type: CelType
    program: CelProgram
    uses_old: bool
    """True if the expression reads `oldSelf`, the value before an update."""
    most: int
    """The maximum cost of one evaluation, as estimated from the schema."""
    least: int = 0


class CelEnvironment:
    """The variables `self` and `oldSelf` of a rule, with the type that a schema declares."""

    def __init__(self, declared_type: DeclaredType) -> None:
        self._declared_type = declared_type
        self._structs = structs_of(declared_type)

    def rule(self, text: str, *, optional_old: bool = False) -> Expression:
        """Compile a rule, which returns a bool; raise `Uncompilable` if it is invalid."""
        found = self._wanted(text, "", optional_old=optional_old)
        if found.type != types.BOOL:
            raise Uncompilable("cel expression must evaluate to a bool")
        return found

    def message(self, text: str, *, optional_old: bool = False) -> Expression:
        """Compile a messageExpression, which returns a string; raise `Uncompilable` on errors."""
        found = self._wanted(text, "messageExpression ", optional_old=optional_old)
        if found.type != types.STRING:
            raise Uncompilable("messageExpression must evaluate to a string")
        return found

    def _wanted(self, text: str, name: str, *, optional_old: bool) -> Expression:
        try:
            return self.compile(text, optional_old=optional_old)
        except Uncompilable as problem:
            raise Uncompilable(f"{name}compilation failed: {problem}") from problem
        except Unusable as problem:
            started = f"{name}instantiation" if name else "program instantiation"
            raise Uncompilable(f"{started} failed: {problem}") from problem

    def compile(self, text: str, *, optional_old: bool = False) -> Expression:
        """Parse and check an expression; raise `Uncompilable` if it is invalid.

        >>> from polyver.languages.cel._schema_types import declared
        >>> kind = declared({"type": "object", "properties": {"a": {"type": "integer"}}}, "T")
        >>> CelEnvironment(kind).compile("self.a < 1").program.evaluate({"self": None}).failure
        'no such key: a'
        """
        tree, problems = parse(text)
        if problems or tree is None:
            raise Uncompilable(format_problems(text, problems))
        own = self._declared_type.type
        old = types.optional_of(own) if optional_old else own
        checker = Checker({"self": own, "oldSelf": old}, self._structs)
        try:
            kind = checker.run(tree)
        except ExpressionTooLarge as problem:
            raise Uncompilable(format_problems(text, [CelProblem(-1, str(problem))])) from None
        problems = checker.problems or literal_problems(tree)
        if problems:
            raise Uncompilable(format_problems(text, problems))
        costs = estimate(tree, self._declared_type)
        program = CelProgram(tree, _NAMES)
        return Expression(kind, program, "oldSelf" in checker.uses, costs.most, costs.least)
