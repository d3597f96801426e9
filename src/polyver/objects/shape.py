"""What may stand at each place of an object: one description for built-in and custom kinds alike.

It mirrors structural schemas, and adds the little that only built-in types know: the numbers of
their fields in protobuf, and how a strategic merge patch treats their lists.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Literal

__all__ = ["ANYTHING", "Shape"]

Type = Literal["object", "array", "string", "integer", "number", "boolean", "any"]
_NONE: Mapping[str, Shape] = MappingProxyType({})


@dataclass(slots=True, eq=False)
class Shape:
    """One place. Shapes refer to each other, and to themselves where types are recursive."""

    type: Type = "any"
    format: str = ""
    """As in OpenAPI: int32, int64, double, byte, date-time; and quantity, microtime, raw, fields
    for the types that JSON and protobuf write differently."""
    name: str = ""
    """What the type is called in errors of built-in kinds, such as `DeploymentSpec` for an object
    and `[]v1.Container` or `int32` for others; empty in custom kinds."""
    fields: Mapping[str, Shape] = _NONE
    """The fields of an object that have names."""
    required: tuple[str, ...] = ()
    values: Shape | None = None
    """What all other keys of an object hold: with it, and without fields, a map."""
    items: Shape | None = None
    """What a list holds."""

    nullable: bool = False
    int_or_string: bool = False
    preserves: bool = False
    """Whether fields that have no name here are kept."""
    embedded: bool = False
    """Whether this is a whole object, with apiVersion, kind and metadata."""

    list_type: Literal["atomic", "set", "map"] = "atomic"
    keys: tuple[str, ...] = ()
    """What tells the items of a list of type map apart."""
    atomic: bool = False
    """Whether an object is owned as a whole in server-side apply."""

    numbers: Mapping[int, str] = field(default_factory=dict)
    """Of built-in types: the fields by their numbers in protobuf."""
    merge_key: str = ""
    """Of lists in built-in types: what a strategic merge patch tells their items apart by."""
    merges: bool = False
    """Of lists in built-in types: whether a strategic merge patch merges rather than replaces."""
    retained: frozenset[str] = frozenset()
    """Of built-in types: fields in which a strategic merge patch may clear with $retainKeys."""


ANYTHING = Shape(preserves=True, nullable=True)
"""The shape of what nobody described."""
