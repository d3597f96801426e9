"""Validation ratcheting: a value that an update does not change may keep its errors.

Otherwise a schema that becomes stricter would block updates of existing objects.
"""

from __future__ import annotations

from typing import Any, Final

from polyver.kube.objects.schema.structure import StructuralSchema
from polyver.languages.values.strings import same

__all__ = ["NEW", "OldItems", "is_unchanged"]

NEW: Final = object()
"""Stands for an old value that did not exist or cannot be matched."""


class OldItems:
    """The items of an old list by their keys, if the list is of type map."""

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
        """Return the old item with the keys of a new one, or `NEW`."""
        return self._items.get(self._key(item), NEW) if self._items else NEW


def is_unchanged(value: Any, old: Any, structure: StructuralSchema | None) -> bool:
    """Report whether a value did not change, as far as the schema knows it."""
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
