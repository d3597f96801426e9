"""Value expressions: CEL expressions that compute a value from another value, both plain data.

The variable `self` has the given value, with the types of JSON: strings, integers, doubles,
booleans, lists and maps. Formats such as `date-time` do not change the type of a string.
"""

from __future__ import annotations

import base64
import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final

from polyver.core.plain import Schema
from polyver.languages.cel import _types as types
from polyver.languages.cel._checker import Checker, ExpressionTooLarge
from polyver.languages.cel._conversions import to_text
from polyver.languages.cel._evaluation import MOST_PER_CALL
from polyver.languages.cel._expression import Uncompilable
from polyver.languages.cel._names import escape, unescape
from polyver.languages.cel._nodes import CelLiteral, CelNode, inside
from polyver.languages.cel._parser import parse
from polyver.languages.cel._problems import format_problems
from polyver.languages.cel._program import CelProgram, Unusable
from polyver.languages.cel._schema_types import MOST_BYTES, DeclaredType, structs_of
from polyver.languages.cel._tokens import CelProblem
from polyver.languages.cel._types import CelType
from polyver.languages.cel._validators import literal_problems
from polyver.languages.cel._values import (
    CelDuration,
    CelEvaluationError,
    Dictionary,
    List,
    Map,
    Optional,
    Timestamp,
)
from polyver.languages.values.strings import fits_int64

__all__ = ["ValueExpression", "fits_schema"]

_BASE_COST: Final = 2_000
_COST_PER_SIZE: Final = 10


@dataclass(frozen=True, slots=True)
class ValueExpression:
    """A compiled value expression, which can be evaluated any number of times.

    >>> ValueExpression.compile("self.split(':')[0]").evaluate("a:80")
    'a'
    """

    text: str
    type: CelType
    """The type of the result; `dyn` if it is only known for a given value."""
    literals: tuple[Any, ...]
    """The strings, numbers and booleans that the expression contains."""
    _program: CelProgram

    @classmethod
    def compile(cls, text: str, schema: Schema | None = None) -> ValueExpression:
        """Parse and check an expression for values of a schema; raise `Uncompilable` on errors.

        Without a schema, `self` can have any type.
        """
        tree, problems = parse(text)
        if problems or tree is None:
            raise Uncompilable(format_problems(text, problems))
        own = _declared(schema or {}, "self")
        checker = Checker({"self": own.type}, structs_of(own))
        try:
            kind = checker.run(tree)
        except ExpressionTooLarge as problem:
            raise Uncompilable(format_problems(text, [CelProblem(-1, str(problem))])) from None
        if problems := checker.problems or literal_problems(tree, mixed=True):
            raise Uncompilable(format_problems(text, problems))
        try:
            return cls(text, kind, tuple(_literals(tree)), CelProgram(tree, ("self",)))
        except Unusable as problem:
            raise Uncompilable(str(problem)) from problem

    def evaluate(self, value: Any) -> Any:
        """Return the result for a value, as plain data; None if the result is null or absent.

        Raise `CelEvaluationError` if the expression fails, if its result cannot be written as JSON,
        or if the evaluation costs too much. The maximum cost grows linearly with the size of the
        value, so that the cost of many evaluations is linear in the size of all values.
        """
        most = min(_BASE_COST + _COST_PER_SIZE * _size(value), MOST_PER_CALL)
        outcome = self._program.evaluate({"self": _untyped(value)}, most=most)
        if outcome.failure is not None:
            raise CelEvaluationError(outcome.failure)
        return _plain(outcome.value)


def _literals(node: CelNode) -> Iterator[Any]:
    if isinstance(node, CelLiteral) and type(node.value) in (str, int, float, bool):
        yield node.value
    for each in inside(node):
        yield from _literals(each)


# Types


_OPEN = DeclaredType(types.DYN, MOST_BYTES - 2, 1)
_SCALARS: Final = {
    "string": DeclaredType(types.STRING, MOST_BYTES - 2),
    "integer": DeclaredType(types.INT, least_bytes=1),
    "number": DeclaredType(types.DOUBLE, least_bytes=1),
    "boolean": DeclaredType(types.BOOL, least_bytes=4),
}


def _declared(schema: Schema, name: str) -> DeclaredType:
    if schema.get("x-kubernetes-int-or-string"):
        return _OPEN
    if schema.get("x-kubernetes-preserve-unknown-fields") or schema.get("nullable"):
        return _OPEN
    kind = schema.get("type") or ""
    items, others = schema.get("items"), schema.get("additionalProperties")
    if kind == "array" and isinstance(items, Mapping):
        item = _declared(items, f"{name}.@items")
        return DeclaredType(types.list_of(item.type), MOST_BYTES, inside=item)
    if kind == "object" and isinstance(others, Mapping):
        value = _declared(others, f"{name}.@values")
        return DeclaredType(types.map_of(types.STRING, value.type), MOST_BYTES, inside=value)
    if kind == "object" and schema.get("properties"):
        return _struct(schema["properties"], name)
    return _SCALARS.get(kind, _OPEN)


def _struct(properties: Schema, name: str) -> DeclaredType:
    fields: dict[str, DeclaredType] = {}
    for field_name, each in properties.items():
        if (escaped := escape(field_name)) is not None:
            fields[escaped] = _declared(each, f"{name}.{escaped}")
    return DeclaredType(types.struct(name), fields=fields)


def fits_schema(kind: CelType, schema: Schema) -> bool:
    """Report whether a result of this CEL type may have the type that a schema declares."""
    kind, _ = types.unwrapped(kind)
    said = schema.get("type")
    if kind.is_dyn_or_error or kind.kind == "null" or not said:
        return not schema.get("x-kubernetes-int-or-string") or kind.kind in _EITHER
    if kind.kind == "list":
        items = schema.get("items")
        return said == "array" and (
            not isinstance(items, Mapping) or fits_schema(kind.params[0], items)
        )
    if kind.kind == "map":
        return said == "object" and _map_fits(kind, schema)
    return said in _JSON_TYPES.get(kind.kind, ())


def _map_fits(kind: CelType, schema: Schema) -> bool:
    key, value = kind.params
    others = schema.get("additionalProperties")
    named = [*(schema.get("properties") or {}).values()]
    known = [*named, *([others] if isinstance(others, Mapping) else [])]
    keyed = key.is_dyn or key == types.STRING
    return keyed and (not known or any(fits_schema(value, each) for each in known))


_JSON_TYPES: Final[Mapping[str, tuple[str, ...]]] = {
    "string": ("string",),
    "bytes": ("string",),
    "timestamp": ("string",),
    "duration": ("string",),
    "int": ("integer", "number"),
    "uint": ("integer", "number"),
    "double": ("number",),
    "bool": ("boolean",),
    "struct": ("object",),
}
_EITHER: Final = frozenset(["dyn", "error", "null", "string", "int", "uint"])


# Values


def _size(value: Any) -> int:
    """Return the size of plain data: the number of its values, and of characters in its strings."""
    match value:
        case str():
            return 1 + len(value)
        case list():
            return 1 + sum(map(_size, value))
        case dict():
            return 1 + sum(len(key) + _size(each) for key, each in value.items())
    return 1


class _Fields(Dictionary):
    """A CEL map for an object; a field is also found by its escaped name, such as `a__dash__b`."""

    __slots__ = ()

    def find(self, key: Any) -> tuple[Any, bool]:
        found = super().find(key)
        if found[1] or type(key) is not str or "__" not in key:
            return found
        name = unescape(key)
        return found if name is None else super().find(name)


def _untyped(data: Any) -> Any:
    match data:
        case dict():
            return _Fields((key, _untyped(each)) for key, each in data.items())
        case list():
            return List([_untyped(each) for each in data])
        case int() if not fits_int64(data):
            raise CelEvaluationError("an integer does not fit into 64 bits")
    return data


def _plain(value: Any) -> Any:
    """Convert a CEL value to plain data, as it is written in JSON."""
    made = value
    match value:
        case None | bool() | str():
            pass
        case int() if fits_int64(value):
            made = int(value)
        case float() if math.isfinite(value):
            made = int(value) if value.is_integer() and abs(value) < 2**53 else value
        case bytes():
            made = base64.b64encode(value).decode()
        case CelDuration() | Timestamp():
            made = to_text(value)
        case Optional():
            made = _plain(value.value) if value.present else None
        case List():
            made = [_plain(each) for each in value.items]
        case Map():
            made = _plain_map(value)
        case _:
            raise CelEvaluationError("the result cannot be written as JSON")
    return made


def _plain_map(value: Map) -> dict[str, Any]:
    made: dict[str, Any] = {}
    for key in value:
        if not isinstance(key, str):
            raise CelEvaluationError("a key in the result is not a string")
        made[key] = _plain(value.find(key)[0])
    return made
