"""What may stand at each place of an object: one description for built-in and custom kinds alike.

It mirrors structural schemas, and adds the little that only built-in types know: the numbers of
their fields in protobuf, and how a strategic merge patch treats their lists.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

__all__ = ["ANYTHING", "Shape"]

Type = Literal["object", "array", "string", "integer", "number", "boolean", "any"]


@dataclass(slots=True, eq=False, repr=False)
class Shape:
    """One place. Shapes refer to each other, and to themselves where types are recursive."""

    type: Type = "any"
    format: str = ""
    """As in OpenAPI: int32, int64, double, byte, date-time; and for the types that JSON and
    protobuf write differently microtime, quantity, int-or-string, raw, fields, json, strings,
    schema-or-bool, schema-or-array and schema-or-strings (`values` is the schema)."""
    name: str = ""
    """What the type is called in errors of built-in kinds, such as `v1.DeploymentSpec`,
    `[]v1.Container` or `int32`; empty in custom kinds."""
    fields: Mapping[str, Shape] = field(default_factory=dict)
    """The fields of an object that have names."""
    required: tuple[str, ...] = ()
    values: Shape | None = None
    """What all other keys of an object hold: with it, and without fields, a map."""
    closed: bool = False
    """Whether an object is said to have no other keys, which is more than to name none."""
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

    key_defaults: Mapping[str, object] = field(default_factory=dict)
    """Of a list of type map: what its keys count as in items that leave them out."""

    numbers: Mapping[int, str] = field(default_factory=dict)
    """Of built-in types: the fields by their numbers in protobuf."""
    inlined: Mapping[int, Shape] = field(default_factory=dict)
    """Of built-in types, by their numbers in protobuf: what is a message of its own there, while
    in JSON its fields stand among those of this object."""
    absent: Mapping[str, object] = field(default_factory=dict)
    """Of built-in types: the fields that replies always have, and what is in them if nobody set
    them; never changed, as all objects share it."""
    omits: frozenset[str] = frozenset()
    """Of built-in types: the fields that replies leave out when they hold nothing: an empty text,
    list or mapping, zero or false."""
    keeps_empty: bool = False
    """Of built-in types: whether an empty list is told from none in fields that are never left out;
    it is not in what Kubernetes stores as protobuf, where an empty list comes back as null."""
    merge_key: str = ""
    """Of lists in built-in types: what a strategic merge patch tells their items apart by."""
    merges: bool = False
    """Of lists in built-in types: whether a strategic merge patch merges rather than replaces."""
    replaces: bool = False
    """Of objects in built-in types: whether a strategic merge patch replaces rather than merges."""
    retained: frozenset[str] = frozenset()
    """Of built-in types: fields in which a strategic merge patch may clear with $retainKeys."""

    def __repr__(self) -> str:
        return f"<Shape {self.name or self.type}>"


ANYTHING = Shape(preserves=True, nullable=True)
"""The shape of what nobody described."""
