"""managedFields in another API version: the fields that an owner has, as another version sees them.

The names of fields differ between API versions, so the fields of an owner must be converted before
an API version is removed. A set of fields alone cannot be converted, because only objects can. So
the object is converted twice: with the fields of the owner, and without them. The fields that
differ depend on the fields of the owner. This works for each conversion, whatever it does.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import msgspec

from polyver.core.plain import Object
from polyver.kube.objects.apply._entries import (
    Entry,
    ManagerIdentifier,
    OwnedFields,
    Owners,
    stored_entries,
    write_entries,
)
from polyver.kube.objects.apply._fields import LEAF, SELF, Fields, difference, in_order, union
from polyver.kube.objects.apply._types import ApplySchema, element_of, form_of, type_of
from polyver.kube.objects.apply._update import bare, stripped
from polyver.kube.objects.apply._walk import compare
from polyver.kube.objects.type_shapes import Shape

__all__ = ["VersionChange", "entries_in_version"]


@dataclass(frozen=True, slots=True)
class VersionChange:
    """The change of managedFields entries from one API version of a kind to another."""

    source: str
    target: str
    shapes: Mapping[str, Shape]
    """The shapes of the kind by API version."""
    convert: Callable[[Object, str], Object]
    """Converts an object of the kind to an API version."""
    ignored: Collection[str] = ()
    """The names of annotations in which the conversion stores its own data; nobody owns them."""


def entries_in_version(obj: Object, change: VersionChange) -> list[Entry]:
    """Return the managedFields entries of an object, with those of one API version in another.

    `obj` is in the API version `change.target`. Afterwards, no entry has the version
    `change.source`. If an owner has entries in both versions, they are merged.
    """
    owners = stored_entries(obj["metadata"].get("managedFields"))
    here = bare(obj)
    there = change.convert(here, change.source)
    moved: Owners = {}
    for identity, owned in owners.items():
        if owned.api_version != change.source:
            _add(moved, identity, owned)
            continue
        fields = _fields_in_target(owned.fields, here, there, change)
        if identity.applies:
            fields = _unnamed(fields, type_of(change.shapes[change.target]))
        version = "" if identity.applies else change.target
        there_owned = OwnedFields(change.target, fields, owned.time)
        _add(moved, identity._replace(api_version=version), there_owned)
    return write_entries({each: owned for each, owned in moved.items() if owned.fields})


def _add(owners: Owners, identity: ManagerIdentifier, owned: OwnedFields) -> None:
    before = owners.get(identity)
    owners[identity] = owned if before is None else _merged(before, owned)


def _merged(one: OwnedFields, other: OwnedFields) -> OwnedFields:
    time = max(one.time or "", other.time or "") or None
    return OwnedFields(one.api_version, union(one.fields, other.fields), time)


def _fields_in_target(fields: Fields, here: Object, there: Object, change: VersionChange) -> Fields:
    """Return the fields of the object `here` that depend on `fields` of the same object `there`."""
    source = type_of(change.shapes[change.source])
    target = type_of(change.shapes[change.target])
    shared: list[Fields] = []
    rest = change.convert(_less(there, fields, source, shared), change.target)
    changes = compare(rest, here, target)
    found = union(changes.modified, changes.added)
    if shared:
        # Other managers own fields of some list items of this manager. The fields of these
        # managers stay theirs, but the manager owns the items themselves, and their keys.
        emptied = change.convert(_without_items(there, fields, source), change.target)
        found = union(found, _items(compare(emptied, here, target).added))
    metadata = {key: node for key, node in fields.items() if key == "f:metadata"}
    hidden: Fields = {f"f:{name}": LEAF for name in change.ignored}
    found = stripped(difference(found, {"f:metadata": {"f:annotations": hidden}}))
    return union(_without_parents(found), metadata)


def _without_parents(fields: Fields) -> Fields:
    """Remove `f:metadata: {f:annotations: {.}}`, which only the ignored annotations leave."""
    annotations = fields.get("f:metadata", {}).get("f:annotations")
    if annotations is None or annotations.keys() - {SELF}:
        return fields
    metadata = {k: node for k, node in fields["f:metadata"].items() if k != "f:annotations"}
    left = {key: node for key, node in fields.items() if key != "f:metadata"}
    return in_order({**left, "f:metadata": metadata}) if metadata else left


def _unnamed(fields: Fields, schema: ApplySchema | None) -> Fields:
    """Remove each declared field that has fields below it: an apply owns only the fields below."""
    found: Fields = {}
    for element, node in fields.items():
        key, inner = element[2:], None
        declared = element[0] == "f" and schema is not None and key in schema.fields
        if schema is not None:
            inner = schema.items if element[0] == "k" else schema.fields.get(key) or schema.values
        below = _unnamed(node, inner) if node else node
        named = declared and len(below) > 1
        found[element] = {k: v for k, v in below.items() if k != SELF} if named else below
    return found


def _less(value: Any, fields: Fields, schema: ApplySchema, shared: list[Fields]) -> Any:
    """Remove the fields of a set from a value, but no other fields below them.

    List items of which other fields remain keep their keys, and are added to `shared`.
    """
    form = form_of(value, schema)
    if form == "map" and value and not schema.atomic:
        return _less_map(value, fields, schema, shared)
    if form == "list" and value and schema.associative:
        left = (_less_item(item, fields, schema, shared) for item in value)
        return [item for item in left if item is not _GONE]
    return value


_GONE = object()


def _less_map(value: Object, fields: Fields, schema: ApplySchema, shared: list[Fields]) -> Object:
    left: Object = {}
    for key, each in value.items():
        node = fields.get(f"f:{key}")
        if node is None:
            left[key] = each
        elif node and not _is_whole(each, schema.within(key)):
            inner = _less(each, node, schema.within(key), shared)
            if inner or not each:
                left[key] = inner
    return left


def _is_whole(value: Any, schema: ApplySchema) -> bool:
    """Report whether a value has no fields of its own that a manager could own."""
    form = form_of(value, schema)
    if form == "map":
        return schema.atomic
    return form != "list" or not schema.associative


def _less_item(item: Any, fields: Fields, schema: ApplySchema, shared: list[Fields]) -> Any:
    node = fields.get(element_of(item, schema))
    if node is None or schema.items is None:
        return item
    if not node or not isinstance(item, dict):
        return _GONE
    keys = {f"f:{key}" for key in schema.keys}
    below = {element: each for element, each in node.items() if element not in keys}
    left = _less(item, below, schema.items, shared)
    if SELF not in node:
        return left
    if left.keys() <= {*schema.keys}:
        return _GONE
    shared.append(node)
    return left


def _without_items(value: Any, fields: Fields, schema: ApplySchema) -> Any:
    """Remove the list items of a set from a value, with all their fields."""
    form = form_of(value, schema)
    if form == "map" and value and not schema.atomic:
        left: Object = {}
        for key, each in value.items():
            node = fields.get(f"f:{key}")
            left[key] = _without_items(each, node, schema.within(key)) if node else each
        return left
    if form == "list" and value and schema.associative:
        return [item for item in value if SELF not in (fields.get(element_of(item, schema)) or {})]
    return value


def _items(fields: Fields) -> Fields:
    """Return the list items in a set of added fields, each with its keys alone."""
    found: Fields = {}
    for element, node in fields.items():
        if element.startswith("k:"):
            found[element] = {SELF: LEAF, **_keys(element, node)}
        elif below := _items(node):
            found[element] = below
    return found


def _keys(element: str, node: Fields) -> Fields:
    names: Iterable[str] = msgspec.json.decode(element[2:])
    return {f"f:{name}": LEAF for name in names if f"f:{name}" in node}
