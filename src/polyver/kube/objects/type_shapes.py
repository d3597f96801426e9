"""Shapes: one description of the values in an object, for built-in kinds and custom resources.

A shape mirrors a structural schema and adds what only built-in types have: protobuf field numbers,
and the strategy by which a strategic merge patch merges lists.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

__all__ = ["ANYTHING", "Shape"]

Type = Literal["object", "array", "string", "integer", "number", "boolean", "any"]


@dataclass(slots=True, eq=False, repr=False)
class Shape:
    """The description of one value. Shapes of recursive types refer to themselves."""

    type: Type = "any"
    format: str = ""
    """The format, as in OpenAPI: int32, int64, double, byte, date-time.

    Types that JSON and protobuf encode differently have microtime, quantity, int-or-string, raw,
    fields, json, strings, schema-or-bool, schema-or-array or schema-or-strings (`values` is the
    schema).
    """
    name: str = ""
    """The type's name in errors, such as `v1.DeploymentSpec` or `int32`; empty if custom."""
    fields: Mapping[str, Shape] = field(default_factory=dict)
    """The declared fields of an object."""
    required: tuple[str, ...] = ()
    values: Shape | None = None
    """The shape of all other keys of an object; without fields, the object is a map."""
    closed: bool = False
    """True if other keys are forbidden, not only undeclared."""
    items: Shape | None = None
    """The shape of a list's items."""

    nullable: bool = False
    int_or_string: bool = False
    preserves: bool = False
    """True if undeclared fields are preserved."""
    embedded: bool = False
    """True for a complete object, with apiVersion, kind and metadata."""

    list_type: Literal["atomic", "set", "map"] = "atomic"
    keys: tuple[str, ...] = ()
    """The fields that identify the items of a list of type map."""
    atomic: bool = False
    """True if server-side apply gives an object one owner as a whole."""

    key_defaults: Mapping[str, object] = field(default_factory=dict)
    """Values of keys that are missing in items of a list of type map."""

    numbers: Mapping[int, str] = field(default_factory=dict)
    """Built-in types: the fields by their protobuf numbers."""
    inlined: Mapping[int, Shape] = field(default_factory=dict)
    """Built-in types: inlined structs by their protobuf numbers.

    Protobuf has a message for each; in JSON its fields are among those of this object.
    """
    absent: Mapping[str, object] = field(default_factory=dict)
    """Built-in types: fields that replies always have, and their values if not set.

    All objects share these values: never change one.
    """
    omits: frozenset[str] = frozenset()
    """Built-in types: fields that replies leave out if they are empty, zero or false."""
    keeps_empty: bool = False
    """Built-in types: True if an empty list is kept in a field that is never left out.

    It is False for types that Kubernetes stores as protobuf, where an empty list becomes null.
    """
    merge_key: str = ""
    """Lists of built-in types: the field that identifies items in a strategic merge patch."""
    merges: bool = False
    """Lists of built-in types: True if a strategic merge patch merges them, not replaces."""
    replaces: bool = False
    """Objects of built-in types: True if a strategic merge patch replaces them, not merges."""
    retained: frozenset[str] = frozenset()
    """Built-in types: fields in which a strategic merge patch may use $retainKeys."""

    def __repr__(self) -> str:
        return f"<Shape {self.name or self.type}>"


ANYTHING = Shape(preserves=True, nullable=True)
"""The shape of a value that nothing describes."""
