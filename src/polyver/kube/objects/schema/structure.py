"""The structure of a schema, read once: fields, items, defaults and list types.

Pruning, defaulting and validation of custom resources use this structure. Updates are validated
with ratcheting: errors of a value that the update does not change are ignored. Otherwise a schema
that becomes stricter would prevent updates of existing objects.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from polyver.kube.objects.type_shapes import ANYTHING, Shape
from polyver.languages.values.strings import same

__all__ = [
    "META_FIELDS",
    "NEW",
    "OldItems",
    "StructuralSchema",
    "is_unchanged",
    "read_structure",
    "shape_of",
]

META_FIELDS = frozenset(["apiVersion", "kind", "metadata"])
_TYPES = frozenset(["object", "array", "string", "integer", "number", "boolean"])


@dataclass(slots=True, eq=False)
class StructuralSchema:
    """The structure of one value in a custom resource: its fields, its items and its default."""

    type: str = ""
    fields: Mapping[str, StructuralSchema] = field(default_factory=dict)
    values: StructuralSchema | None = None
    """The structure of the values under keys that are not in `fields`.

    None if no schema describes them.
    """
    takes_any_key: bool = False
    """True if the schema has the keyword additionalProperties, even with the value false."""
    items: StructuralSchema | None = None
    nullable: bool = False
    default: Any = None
    defaults: tuple[tuple[str, StructuralSchema], ...] = ()
    """The fields that have a default, as pairs of the name and the structure of the field."""
    has_defaults: bool = False
    """True if this or an inner schema has a default."""
    preserves: bool = False
    embedded: bool = False
    list_type: str = ""
    keys: tuple[str, ...] = ()
    has_lists: bool = False
    """True if this or an inner schema has a list of type set or map."""
    listed: tuple[tuple[str, StructuralSchema], ...] = ()
    """The fields that are or contain a list of type set or map, with their structures."""
    has_embedded: bool = False
    """True if this or an inner schema is an embedded resource."""

    def child(self, key: str) -> StructuralSchema | None:
        """Return the structure of the value under a key; None if no schema describes the value."""
        return self.fields.get(key, self.values)

    def within(self) -> Iterator[StructuralSchema]:
        """Yield the structures of the fields, of the values under other keys, and of the items."""
        yield from self.fields.values()
        if self.values is not None:
            yield self.values
        if self.items is not None:
            yield self.items


def read_structure(schema: Mapping[str, Any]) -> StructuralSchema:
    """Build the structure of a schema, including those of the schemas inside it."""
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
    """Build the shape of a schema, for server-side apply."""
    others, items = schema.get("additionalProperties"), schema.get("items")
    fields = {name: shape_of(each) for name, each in (schema.get("properties") or {}).items()}
    inside = shape_of(items) if isinstance(items, Mapping) else None
    keys = tuple(schema.get("x-kubernetes-list-map-keys") or ())
    item_fields = items.get("properties") or {} if isinstance(items, Mapping) else {}
    key_defaults = {key: (item_fields.get(key) or {}).get("default") for key in keys}
    kind, list_type = schema.get("type"), schema.get("x-kubernetes-list-type")
    int_or_string = bool(schema.get("x-kubernetes-int-or-string"))
    return Shape(
        type="any" if int_or_string or kind not in _TYPES else kind,
        format=schema.get("format") or "",
        fields=fields,
        required=tuple(schema.get("required") or ()),
        values=shape_of(others) if isinstance(others, Mapping) else ANYTHING if others else None,
        closed=others is False,
        items=inside,
        nullable=bool(schema.get("nullable")),
        int_or_string=int_or_string,
        preserves=bool(schema.get("x-kubernetes-preserve-unknown-fields")),
        embedded=root or bool(schema.get("x-kubernetes-embedded-resource")),
        list_type=list_type if list_type in ("set", "map") else "atomic",
        keys=keys,
        atomic=schema.get("x-kubernetes-map-type") == "atomic",
        key_defaults={key: value for key, value in key_defaults.items() if value is not None},
    )


NEW: Final = object()
"""Stands for an old value that did not exist or that cannot be matched with the new value."""


class OldItems:
    """The items of a list before an update, to be found by their keys.

    Only lists of type map have keys.
    """

    def __init__(self, items: Any, structure: StructuralSchema | None) -> None:
        self._keys = structure.keys if structure and structure.list_type == "map" else ()
        self._items: dict[object, Any] = {}
        for item in items if isinstance(items, list) and self._keys else ():
            key = self._key(item)
            if key is not None:
                self._items.setdefault(key, item)

    def _key(self, item: Any) -> object | None:
        if not isinstance(item, dict):
            return None
        values = [item.get(key) for key in self._keys]
        if not all(isinstance(value, str | int | float) for value in values):
            return None
        return tuple((type(value), value) for value in values)

    def like(self, item: Any) -> Any:
        """Return the old item with the same keys as the new item `item`; `NEW` if there is none."""
        return self._items.get(self._key(item), NEW) if self._items else NEW


def is_unchanged(value: Any, old: Any, structure: StructuralSchema | None) -> bool:
    """Report whether an update left a value unchanged.

    Without a schema for the value, return False.
    """
    if old is NEW or structure is None or (value is None) is not (old is None):
        return False
    if isinstance(value, list) and isinstance(old, list):
        return len(value) == len(old) and _are_unchanged(value, old, structure)
    if isinstance(value, dict) and isinstance(old, dict):
        return value.keys() == old.keys() and all(
            is_unchanged(value[key], old[key], structure.child(key)) for key in value
        )
    return same(value, old)


def _are_unchanged(value: list[Any], old: list[Any], structure: StructuralSchema) -> bool:
    if structure.list_type != "map":
        return same(value, old)
    items = OldItems(old, structure)
    return all(is_unchanged(item, items.like(item), structure.items) for item in value)
