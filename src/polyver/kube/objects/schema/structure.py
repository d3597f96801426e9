"""The structure of a schema, read once: fields, items, defaults and list types.

Pruning, defaulting and validation of custom resources walk along it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, cast

from polyver.kube.objects.type_shapes import ANYTHING, Shape

__all__ = ["META_FIELDS", "StructuralSchema", "read_structure", "shape_of"]

META_FIELDS = frozenset(["apiVersion", "kind", "metadata"])
_TYPES = frozenset(["object", "array", "string", "integer", "number", "boolean"])


@dataclass(slots=True, eq=False)
class StructuralSchema:
    """The structure of one value in a custom resource."""

    type: str = ""
    fields: Mapping[str, StructuralSchema] = field(default_factory=dict)
    values: StructuralSchema | None = None
    """The structure of values under additional keys."""
    takes_any_key: bool = False
    """True if additionalProperties is set, even to true or false."""
    items: StructuralSchema | None = None
    nullable: bool = False
    default: Any = None
    defaults: tuple[tuple[str, StructuralSchema], ...] = ()
    """The fields that have a default."""
    has_defaults: bool = False
    """True if this or an inner schema has a default."""
    preserves: bool = False
    embedded: bool = False
    list_type: str = ""
    keys: tuple[str, ...] = ()
    has_lists: bool = False
    """True if this or an inner schema has a list of type set or map."""
    listed: tuple[tuple[str, StructuralSchema], ...] = ()
    """The fields that contain such lists."""
    has_embedded: bool = False
    """True if this or an inner schema is an embedded resource."""

    def child(self, key: str) -> StructuralSchema | None:
        """Return the structure of a key."""
        return self.fields.get(key, self.values)

    def within(self) -> Iterator[StructuralSchema]:
        """Yield the structures directly inside."""
        yield from self.fields.values()
        if self.values is not None:
            yield self.values
        if self.items is not None:
            yield self.items


def read_structure(schema: Mapping[str, Any]) -> StructuralSchema:
    """Return the structure of a schema."""
    fields = {name: read_structure(each) for name, each in (schema.get("properties") or {}).items()}
    others, items = schema.get("additionalProperties"), schema.get("items")
    found = StructuralSchema(
        type=schema.get("type") or "",
        fields=fields,
        values=read_structure(others) if isinstance(others, Mapping) else None,
        takes_any_key=others is not None,
        items=read_structure(items) if isinstance(items, Mapping) else None,
        nullable=bool(schema.get("nullable")),
        default=schema.get("default"),
        defaults=tuple((name, each) for name, each in fields.items() if each.default is not None),
        preserves=bool(schema.get("x-kubernetes-preserve-unknown-fields")),
        embedded=bool(schema.get("x-kubernetes-embedded-resource")),
        list_type=schema.get("x-kubernetes-list-type") or "",
        keys=tuple(schema.get("x-kubernetes-list-map-keys") or ()),
    )
    within = list(found.within())
    found.has_lists = found.list_type in ("set", "map") or any(each.has_lists for each in within)
    found.has_defaults = found.default is not None or any(each.has_defaults for each in within)
    found.listed = tuple((name, each) for name, each in fields.items() if each.has_lists)
    found.has_embedded = found.embedded or any(each.has_embedded for each in within)
    return found


def shape_of(schema: Mapping[str, Any], *, root: bool = False) -> Shape:
    """Return the shape of a schema."""
    others, items = schema.get("additionalProperties"), schema.get("items")
    fields = {name: shape_of(each) for name, each in (schema.get("properties") or {}).items()}
    inside = shape_of(items) if isinstance(items, Mapping) else None
    keys = tuple(schema.get("x-kubernetes-list-map-keys") or ())
    return Shape(
        type=_type_of(schema),
        format=schema.get("format") or "",
        fields=fields,
        required=tuple(schema.get("required") or ()),
        values=shape_of(others) if isinstance(others, Mapping) else ANYTHING if others else None,
        closed=others is False,
        items=inside,
        nullable=bool(schema.get("nullable")),
        int_or_string=bool(schema.get("x-kubernetes-int-or-string")),
        preserves=bool(schema.get("x-kubernetes-preserve-unknown-fields")),
        embedded=root or bool(schema.get("x-kubernetes-embedded-resource")),
        list_type=_list_type(schema),
        keys=keys,
        atomic=schema.get("x-kubernetes-map-type") == "atomic",
        key_defaults=_key_defaults(items, keys),
    )


_Type = Literal["object", "array", "string", "integer", "number", "boolean", "any"]


def _type_of(schema: Mapping[str, Any]) -> _Type:
    found = schema.get("type")
    if schema.get("x-kubernetes-int-or-string") or found not in _TYPES:
        return "any"
    return cast("_Type", found)


def _list_type(schema: Mapping[str, Any]) -> Literal["atomic", "set", "map"]:
    match schema.get("x-kubernetes-list-type"):
        case "set":
            return "set"
        case "map":
            return "map"
        case _:
            return "atomic"


def _key_defaults(items: object, keys: tuple[str, ...]) -> dict[str, object]:
    fields = items.get("properties") or {} if isinstance(items, Mapping) else {}
    known = {key: (fields.get(key) or {}).get("default") for key in keys}
    return {key: value for key, value in known.items() if value is not None}
