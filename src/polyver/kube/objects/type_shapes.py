"""Shapes: descriptions of the values in objects, for built-in kinds and for custom resources.

A shape has the keywords of a structural schema that polyver needs outside of validation. For
built-in types it also has protobuf field numbers, the fields that responses show or omit, and the
rules by which a strategic merge patch merges lists.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

__all__ = ["ANYTHING", "Shape"]

Type = Literal["object", "array", "string", "integer", "number", "boolean", "any"]


@dataclass(slots=True, eq=False, repr=False)
class Shape:
    """The description of one value. For a recursive type, the shape contains itself."""

    type: Type = "any"
    format: str = ""
    """The format, as in OpenAPI: int32, int64, double, byte or date-time.

    Types that encode themselves as JSON have the format microtime, quantity, int-or-string, raw,
    fields, json, strings, schema-or-bool, schema-or-array or schema-or-strings. For the last three,
    `values` is the shape of the schema.
    """
    name: str = ""
    """The name of a built-in type in errors, such as `v1.DeploymentSpec` or `int32`."""
    fields: Mapping[str, Shape] = field(default_factory=dict)
    """The fields that the type or the schema declares."""
    required: tuple[str, ...] = ()
    values: Shape | None = None
    """The shape of the values under keys that are not in `fields`.

    If there are no `fields`, the object is a map.
    """
    closed: bool = False
    """True if an object must not have keys besides `fields` (`additionalProperties: false`)."""
    items: Shape | None = None
    """The shape of each item of a list."""

    nullable: bool = False
    int_or_string: bool = False
    preserves: bool = False
    """True if fields that are not declared are kept and not pruned."""
    embedded: bool = False
    """True for a complete object, with apiVersion, kind and metadata."""

    list_type: Literal["atomic", "set", "map"] = "atomic"
    keys: tuple[str, ...] = ()
    """The fields that identify the items of a list of type map."""
    atomic: bool = False
    """True if server-side apply treats an object as one value: its fields have no owners."""

    key_defaults: Mapping[str, object] = field(default_factory=dict)
    """For lists of type map: the default values of the fields in `keys`."""

    numbers: Mapping[int, str] = field(default_factory=dict)
    """Built-in types: the name of the field for each protobuf number."""
    inlined: Mapping[int, Shape] = field(default_factory=dict)
    """Built-in types: the inlined struct for each protobuf number.

    In protobuf, an inlined struct is a message of its own. In JSON, its fields are fields of the
    outer object.
    """
    absent: Mapping[str, object] = field(default_factory=dict)
    """Built-in types: fields that responses always contain, with their values if they are not set.

    All objects share these values, so never change a value.
    """
    omits: frozenset[str] = frozenset()
    """Built-in types: fields that responses leave out if they are empty, zero or false."""
    keeps_empty: bool = False
    """Built-in types: True if an empty list stays an empty list in responses.

    False for types that Kubernetes stores as protobuf: protobuf has no empty list, so the list
    becomes null. This applies only to fields that responses always have.
    """
    merge_key: str = ""
    """Lists of built-in types: the field by which a strategic merge patch identifies an item."""
    merges: bool = False
    """Lists of built-in types: True if a strategic merge patch merges its list with the old list.

    If it is False, the list in the patch replaces the old list.
    """
    replaces: bool = False
    """Objects of built-in types: True if a strategic merge patch replaces the whole object.

    If it is False, the patch is merged into the object.
    """
    retained: frozenset[str] = frozenset()
    """Built-in types: fields in which a strategic merge patch may use $retainKeys."""

    def __repr__(self) -> str:
        return f"<Shape {self.name or self.type}>"


ANYTHING = Shape(preserves=True, nullable=True)
"""The shape of a value for which there is no type and no schema."""
