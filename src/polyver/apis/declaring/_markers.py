"""Markers for types and classes: limits, formats, lists with keys, CEL rules, field names.

polyver finds the limits in a marker by the names of its attributes, such as `ge`. So users can also
use markers of the Python packages annotated_types and msgspec (`Meta`).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, Any, TypeAlias, TypeVar

import msgspec

from polyver.apis.definition import InvalidKind
from polyver.core.annotated import Description

__all__ = [
    "ABSENT",
    "Anything",
    "Atomic",
    "Description",
    "EmbeddedResource",
    "Field",
    "FieldOptions",
    "Format",
    "Ge",
    "Granular",
    "Gt",
    "IntOrString",
    "Le",
    "ListMap",
    "ListSet",
    "Lt",
    "MaxLength",
    "MinLength",
    "MultipleOf",
    "NullMarker",
    "Nullable",
    "Pattern",
    "Preserve",
    "ResourceMarker",
    "Rule",
    "marks_of",
]

T = TypeVar("T")
_MARKS = "__polyver_marks__"


ABSENT: Any = msgspec.UNSET
"""Stands for a missing field whose type allows null. For such a type, None stands for null."""


@dataclass(frozen=True, slots=True)
class Ge:
    """The value must be at least this number."""

    ge: int | float


@dataclass(frozen=True, slots=True)
class Gt:
    """The value must be greater than this number."""

    gt: int | float


@dataclass(frozen=True, slots=True)
class Le:
    """The value must be at most this number."""

    le: int | float


@dataclass(frozen=True, slots=True)
class Lt:
    """The value must be less than this number."""

    lt: int | float


@dataclass(frozen=True, slots=True)
class MultipleOf:
    """The value must be a multiple of this number."""

    multiple_of: int | float


@dataclass(frozen=True, slots=True)
class MinLength:
    """The minimum number of characters of a string, items of a list, or keys of a map."""

    min_length: int


@dataclass(frozen=True, slots=True)
class MaxLength:
    """The maximum number of characters of a string, items of a list, or keys of a map."""

    max_length: int


@dataclass(frozen=True, slots=True)
class Pattern:
    """A regular expression, in Go's syntax, that must match some part of the string."""

    pattern: str


@dataclass(frozen=True, slots=True)
class Format:
    """A format that API servers know, such as `int32`, `duration`, `uuid`, `byte` or `ipv4`."""

    format: str


@dataclass(frozen=True, slots=True)
class ListSet:
    """Marks a list of unique items; in server-side apply, each item has its own owner."""


class ListMap:
    """Marks a list whose items are identified by some of their fields, the keys.

    >>> ListMap("name").keys
    ('name',)
    """

    __slots__ = ("keys",)

    def __init__(self, *keys: str) -> None:
        self.keys = keys

    def __repr__(self) -> str:
        return f"ListMap({', '.join(map(repr, self.keys))})"


class _ClassMark:
    """A marker that users write as a decorator of a class, or in the type hint of a field."""

    __slots__ = ()

    def __call__(self, cls: type[T]) -> type[T]:
        if _is_made(cls):
            fact = f"{self!r} is applied too late to {cls.__name__}"
            raise InvalidKind(fact, hint="put it below the decorator that reads the class")
        setattr(cls, _MARKS, (self, *marks_of(cls)))
        return cls


def _is_made(cls: type) -> bool:
    return hasattr(cls, "__declared__")


def marks_of(cls: type) -> tuple[object, ...]:
    """Return the markers of a class itself; markers of its base classes are ignored."""
    found: tuple[object, ...] = vars(cls).get(_MARKS, ())
    return found


@dataclass(frozen=True, slots=True)
class Atomic(_ClassMark):
    """Marks a list, map or class that has only one owner in server-side apply.

    One field manager owns all of its fields together.
    """


@dataclass(frozen=True, slots=True)
class Granular(_ClassMark):
    """Marks a map or class whose fields each have their own owner in server-side apply.

    This is the default.
    """


@dataclass(frozen=True, slots=True)
class Preserve(_ClassMark):
    """Marks a class whose objects keep fields that the class does not declare."""


@dataclass(frozen=True, slots=True)
class Rule(_ClassMark):
    """A CEL rule that objects of a class, or values of a type, must satisfy.

    >>> Rule("self.min <= self.max", message="min is above max").schema
    {'rule': 'self.min <= self.max', 'message': 'min is above max'}
    """

    rule: str
    message: str = ""
    message_expression: str = ""
    reason: str = ""
    field_path: str = ""
    optional_old_self: bool = False

    @property
    def schema(self) -> dict[str, Any]:
        said = {
            "rule": self.rule,
            "message": self.message,
            "messageExpression": self.message_expression,
            "reason": self.reason,
            "fieldPath": self.field_path,
            "optionalOldSelf": self.optional_old_self,
        }
        return {name: value for name, value in said.items() if value}


@dataclass(frozen=True, slots=True)
class NullMarker:
    """Marks a type for which null is a value that differs from a missing field."""


@dataclass(frozen=True, slots=True)
class ResourceMarker:
    """Marks a mapping that is a complete object, with apiVersion, kind and metadata."""


Nullable = Annotated[T | None, NullMarker()]
Anything: TypeAlias = Any
EmbeddedResource = Annotated[dict[str, Any], ResourceMarker()]
IntOrString: TypeAlias = int | str


@dataclass(frozen=True, slots=True)
class FieldOptions:
    """The marker that the function `Field` returns, with the arguments of the function."""

    name: str
    default: Any
    description: str
    schema: Mapping[str, Any]


def Field(  # noqa: N802 - read as a marker, and a default of any type
    *, name: str = "", default: Any = ABSENT, description: str = "", **schema: Any
) -> Any:
    """State the name of a field in objects, its default, and further keywords of its schema.

    Write it in the type hint as a marker, or as the value: `from_: str = Field(name="from")`.
    """
    return FieldOptions(name, default, description, schema)
