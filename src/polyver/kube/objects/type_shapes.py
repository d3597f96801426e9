"""Shapes: descriptions of the values in objects. Built-in kinds and custom resources have Shapes.

A shape has the keywords of a structural schema that matter here. For built-in types it also has
protobuf field numbers, the fields that responses show or omit, and the rules by which a strategic
merge patch merges lists.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

__all__ = ["ANYTHING", "Shape"]

Type = Literal["object", "array", "string", "integer", "number", "boolean", "any"]


@dataclass(slots=True, eq=False, repr=False)
class Shape:
    """The description of one value. The shape of a recursive type contains itself."""

    type: Type = "any"
    format: str = ""
    """The format, as in OpenAPI: int32, int64, double, byte, date-time.

    Types that encode themselves have the format microtime, quantity, int-or-string, raw, fields,
    json, strings, schema-or-bool, schema-or-array or schema-or-strings. For the last three,
    `values` is the shape of the schema.
    """
    name: str = ""
    """The name of a built-in type in errors, such as `v1.DeploymentSpec` or `int32`."""
    fields: Mapping[str, Shape] = field(default_factory=dict)
    """The declared fields of an object."""
    required: tuple[str, ...] = ()
    values: Shape | None = None
    """The shape of the values under other keys; if there are no `fields`, the object is a map."""
    closed: bool = False
    """True if the schema forbids other keys (`additionalProperties: false`)."""
    items: Shape | None = None
    """The shape of a list's items."""

    nullable: bool = False
    int_or_string: bool = False
    preserves: bool = False
    """True if undeclared fields are kept, not pruned."""
    embedded: bool = False
    """True for a complete object, with apiVersion, kind and metadata."""

    list_type: Literal["atomic", "set", "map"] = "atomic"
    keys: tuple[str, ...] = ()
    """The fields that identify the items of a list of type map."""
    atomic: bool = False
    """True if an object is owned only as a whole in server-side apply, not by its fields."""

    key_defaults: Mapping[str, object] = field(default_factory=dict)
    """The default values of key fields that an item of a list of type map lacks."""

    numbers: Mapping[int, str] = field(default_factory=dict)
    """Built-in types: the fields by their protobuf numbers."""
    inlined: Mapping[int, Shape] = field(default_factory=dict)
    """Built-in types: inlined structs by their protobuf numbers.

    In protobuf, an inlined struct is a message of its own. In JSON, its fields are fields of this
    object.
    """
    absent: Mapping[str, object] = field(default_factory=dict)
    """Built-in types: the fields that responses always have, each with its value if it is not set.

    All objects share these values, so never change a value.
    """
    omits: frozenset[str] = frozenset()
    """Built-in types: fields that responses leave out if they are empty, zero or false."""
    keeps_empty: bool = False
    """Built-in types: True if an empty list is kept in a field that is never left out.

    It is False for types that Kubernetes stores as protobuf, because protobuf has no empty list:
    the list becomes null.
    """
    merge_key: str = ""
    """Lists of built-in types: the field that identifies items in a strategic merge patch."""
    merges: bool = False
    """Lists of built-in types: True if a strategic merge patch merges the old and the new list.

    If it is False, the new list replaces the old one.
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
"""The shape of a value that nothing describes."""
