"""What may stand beside a type: limits, formats, lists with keys, rules in CEL, other names.

Limits are read by their attributes, so those of annotated_types and msgspec.Meta are as good.
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
"""What a field holds that is not there, where None would be null, which is a value."""


@dataclass(frozen=True, slots=True)
class Ge:
    """At least this number."""

    ge: int | float


@dataclass(frozen=True, slots=True)
class Gt:
    """More than this number."""

    gt: int | float


@dataclass(frozen=True, slots=True)
class Le:
    """At most this number."""

    le: int | float


@dataclass(frozen=True, slots=True)
class Lt:
    """Less than this number."""

    lt: int | float


@dataclass(frozen=True, slots=True)
class MultipleOf:
    """A number that this one divides."""

    multiple_of: int | float


@dataclass(frozen=True, slots=True)
class MinLength:
    """At least so many characters, items or keys."""

    min_length: int


@dataclass(frozen=True, slots=True)
class MaxLength:
    """At most so many characters, items or keys."""

    max_length: int


@dataclass(frozen=True, slots=True)
class Pattern:
    """A text in which this regular expression of Go's finds something."""

    pattern: str


@dataclass(frozen=True, slots=True)
class Format:
    """A format that the API server knows: `int32`, `duration`, `uuid`, `byte`, `ipv4`, …."""

    format: str


@dataclass(frozen=True, slots=True)
class ListSet:
    """A list in which nothing is twice; each item has an owner in server-side apply."""


class ListMap:
    """A list whose items are told apart by some of their fields.

    >>> ListMap("name").keys
    ('name',)
    """

    __slots__ = ("keys",)

    def __init__(self, *keys: str) -> None:
        self.keys = keys

    def __repr__(self) -> str:
        return f"ListMap({', '.join(map(repr, self.keys))})"


class _ClassMark:
    """What may stand above a class as well as beside a type."""

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
    """What stands above a class itself, and not above those that it is made from."""
    found: tuple[object, ...] = vars(cls).get(_MARKS, ())
    return found


@dataclass(frozen=True, slots=True)
class Atomic(_ClassMark):
    """A list, map or class that has one owner in server-side apply."""


@dataclass(frozen=True, slots=True)
class Granular(_ClassMark):
    """A map or class of which each field has its own owner, as is so without it."""


@dataclass(frozen=True, slots=True)
class Preserve(_ClassMark):
    """A class whose objects keep fields that it does not name."""


@dataclass(frozen=True, slots=True)
class Rule(_ClassMark):
    """A rule in CEL, above a class or beside a type.

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
    """Beside a type: null is a value, and not the same as nothing."""


@dataclass(frozen=True, slots=True)
class ResourceMarker:
    """Beside a mapping: a whole object, with apiVersion, kind and metadata."""


Nullable = Annotated[T | None, NullMarker()]
Anything: TypeAlias = Any
EmbeddedResource = Annotated[dict[str, Any], ResourceMarker()]
IntOrString: TypeAlias = int | str


@dataclass(frozen=True, slots=True)
class FieldOptions:
    """What `Field` was told."""

    name: str
    default: Any
    description: str
    schema: Mapping[str, Any]


def Field(  # noqa: N802 - read as a marker, and a default of any type
    *, name: str = "", default: Any = ABSENT, description: str = "", **schema: Any
) -> Any:
    """What a field is called in objects, its default, and whatever else its schema says.

    Beside the type, or where the default stands: `from_: str = Field(name="from")`.
    """
    return FieldOptions(name, default, description, schema)
