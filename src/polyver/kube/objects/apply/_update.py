"""managedFields after writes: who owned which field before a change, and who owns it after.

After a create, an update or a patch, the manager of the request owns the fields that it changed,
and all other managers lose these fields. Server-side apply uses the same functions.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

from polyver.core import PolyverError
from polyver.core.plain import Object
from polyver.kube.objects.apply._entries import (
    Entry,
    InvalidEntries,
    ManagerIdentifier,
    OwnedFields,
    Owners,
    capped,
    read_entries,
    resets,
    stored_entries,
    write_entries,
)
from polyver.kube.objects.apply._fields import LEAF, Fields, common, difference, has, union, without
from polyver.kube.objects.apply._types import ApplySchema, Mistyped, misfits, type_of
from polyver.kube.objects.apply._walk import Comparison, compare
from polyver.kube.objects.type_shapes import Shape

__all__ = [
    "ApplyConflict",
    "Conflicts",
    "Scope",
    "bare",
    "known_owners",
    "resets_of",
    "settle",
    "stripped",
    "times_kept",
    "track_scale",
    "track_update",
    "updated",
]

_STATUS: Fields = {"f:status": LEAF}
_SPEC: Fields = {"f:spec": LEAF}
_BESIDES_STATUS: Fields = {"f:metadata": LEAF, "f:spec": LEAF}
_BESIDES_STATUS_OF: Mapping[str, Fields] = {
    "Deployment": {"f:metadata": {"f:labels": LEAF}, "f:spec": LEAF},
    "Pod": {"f:metadata": {"f:deletionTimestamp": LEAF, "f:ownerReferences": LEAF}, "f:spec": LEAF},
    "VolumeAttachment": _BESIDES_STATUS,
}
_NEVER_OWNED: Fields = {
    "f:apiVersion": LEAF,
    "f:kind": LEAF,
    "f:metadata": {
        ".": LEAF,
        "f:clusterName": LEAF,
        "f:creationTimestamp": LEAF,
        "f:generation": LEAF,
        "f:managedFields": LEAF,
        "f:name": LEAF,
        "f:namespace": LEAF,
        "f:resourceVersion": LEAF,
        "f:selfLink": LEAF,
        "f:uid": LEAF,
    },
}


def _as_it_is(value: Object, api_version: str) -> Object:
    """Change only the apiVersion of an object, for kinds whose versions have the same fields."""
    return {**value, "apiVersion": api_version}


@dataclass(frozen=True, slots=True)
class Scope:
    """The properties of a write that decide who owns its fields: API version, kind, subresource."""

    api_version: str
    kind: str
    shapes: Mapping[str, Shape]
    """The shapes of the kind by API version.

    If an owner wrote in a version that is not a key here, the owner is dropped. For a custom
    resource this is an error instead, and the entry stays until a client removes it.
    """
    subresource: str = ""
    resets: Mapping[str, Fields] = field(default_factory=dict)
    """By API version: the fields that this write cannot change, with all fields below them."""
    convert: Callable[[Object, str], Object] = _as_it_is
    """Converts the object of the write to another API version."""

    @property
    def schema(self) -> ApplySchema:
        return type_of(self.shapes[self.api_version])

    @property
    def custom(self) -> bool:
        return not self.shapes[self.api_version].name

    @property
    def empty(self) -> Object:
        """An object of the kind without any content.

        A new object is compared with it, so that all fields of the new object count as added.
        """
        absent = self.shapes[self.api_version].absent
        return {**absent, "apiVersion": self.api_version, "kind": self.kind}

    def in_version(self, value: Object, api_version: str, what: str) -> Object | None:
        """Convert an object to an API version; return None if the kind has no such version.

        Raise `Mistyped` if the schema of this version does not allow the converted object. `what`
        is the word for the object in the error message.
        """
        if value.get("apiVersion") == api_version:
            return value
        if api_version not in self.shapes:
            return None
        converted = self.convert(value, api_version)
        problem = misfits(converted, type_of(self.shapes[api_version]))
        if problem:
            raise Mistyped(f"failed to convert {what}: {problem}")
        return converted

    def owner(self, manager: str, operation: str) -> ManagerIdentifier:
        version = "" if operation == "Apply" else self.api_version
        return ManagerIdentifier(manager or "unknown", operation, version, self.subresource)

    def reset(self, fields: Fields) -> Fields:
        """Return a set of fields without the fields that this write cannot change."""
        apart = self.resets.get(self.api_version)
        return without(fields, apart) if apart else fields


def resets_of(
    *versions: str, kind: str = "", subresource: str = "", custom: bool = True
) -> dict[str, Fields]:
    """Return, for each of these API versions of a kind, the fields that a write cannot change.

    The kind must have the subresource /status. A write to the object cannot change the status, and
    a write to /status cannot change the spec, for example. For a write to /status of a custom
    resource, pass all versions. For any other write, pass only the version of the request.
    """
    if subresource != "status":
        return {} if subresource == "scale" else dict.fromkeys(versions, _STATUS)
    besides = _BESIDES_STATUS if custom else _BESIDES_STATUS_OF.get(kind, _SPEC)
    return dict.fromkeys(versions, besides)


class ApplyConflict(PolyverError):
    """Raised if an apply without `force` changes fields that other managers own."""

    def __init__(self, conflicts: Conflicts) -> None:
        super().__init__("other managers own these fields")
        self.conflicts = conflicts


Conflicts = dict[ManagerIdentifier, Fields]
_SELF = ManagerIdentifier("current-operation", "Update", "", "")


def track_update(
    old: Object | None, new: Object, *, scope: Scope, manager: str, now: str
) -> list[Entry]:
    """Return the entries of managedFields after a create, an update or a patch.

    Both objects include their managedFields. Entries that the client changed are used, unless they
    are invalid or the request was for a subresource. `now` is a time such as
    `2026-01-31T12:00:00Z`; it becomes the time of the entry of `manager` if fields changed.
    """
    try:
        owners = _owners_for(old, new, scope)
        if old is not None and not owners:
            return []  # No field has an owner before the first apply.
        live = scope.empty if old is None else bare(old)
        owners = updated(live, bare(new), owners, scope=scope, manager=manager, now=now)
        return write_entries(owners)
    except Mistyped:
        # Validation refuses such an object later, with a better message.
        return _entries(old) if old is not None else []


def _entries(value: Object) -> list[Entry]:
    found = (value.get("metadata") or {}).get("managedFields")
    return found if isinstance(found, list) else []


def _owners_for(old: Object | None, new: Object, scope: Scope) -> Owners:
    """Return the owners before the write.

    The client may send managedFields, which then replace the stored ones. If it sends none, or if
    they are invalid, return the stored owners.
    """
    before = _entries(old) if old is not None else []
    given = (new.get("metadata") or {}).get("managedFields")
    if scope.subresource or not isinstance(given, list) or given == before:
        return stored_entries(before)
    if resets(given) and not (scope.custom and not given):
        return {}
    try:
        return read_entries(given) or stored_entries(before)
    except InvalidEntries:
        return stored_entries(before)


def bare(value: Object) -> Object:
    """Return an object without its managedFields."""
    metadata = value.get("metadata")
    if not isinstance(metadata, dict) or "managedFields" not in metadata:
        return value
    left = {key: each for key, each in metadata.items() if key != "managedFields"}
    return {**value, "metadata": left}


def updated(
    old: Object, new: Object, owners: Owners, *, scope: Scope, manager: str, now: str
) -> Owners:
    """Return the owners after a create, an update or a patch, but not after an apply."""
    owners, changes = settle(old, new, known_owners(owners, scope), scope=scope, force=True)
    mine = stripped(scope.reset(union(changes.modified, changes.added)))
    if mine:
        owner = scope.owner(manager, "Update")
        before = owners.get(owner)
        fields = union(mine, before.fields) if before else mine
        owners[owner] = OwnedFields(scope.api_version, fields, now)
    return capped(owners)


def stripped(fields: Fields) -> Fields:
    """Return a set of fields without fields such as `metadata.uid`, which nobody owns."""
    return difference(fields, _NEVER_OWNED)


def settle(
    old: Object,
    new: Object,
    owners: Owners,
    *,
    scope: Scope,
    force: bool,
    writer: ManagerIdentifier = _SELF,
) -> tuple[Owners, Comparison]:
    """Return the owners after a change of an object, and the differences between the two objects.

    Owners other than `writer` lose the fields that were changed or removed. If such an owner would
    lose a changed field and `force` is not set, raise `ApplyConflict`.
    """
    changes = _Changes(old, new, scope)
    conflicts: Conflicts = {}
    left: Owners = {}
    for identity, owned in owners.items():
        change = None if identity == writer else changes.in_version(owned.api_version)
        if identity == writer:
            left[identity] = owned
        if change is None:
            continue
        taken = common(owned.fields, union(change.modified, change.added))
        if taken:
            conflicts[identity] = taken
        fields = difference(difference(owned.fields, taken), change.removed)
        left[identity] = owned if fields is owned.fields else owned._replace(fields=fields)
    if conflicts and not force:
        raise ApplyConflict(conflicts)
    left = {identity: owned for identity, owned in left.items() if owned.fields}
    return left, changes.here


class _Changes:
    """The differences between two objects, compared in the API version that is requested."""

    def __init__(self, old: Object, new: Object, scope: Scope) -> None:
        self._old, self._new, self._scope = old, new, scope
        self.here = self._filtered(compare(old, new, scope.schema), scope.api_version)
        self._known: dict[str, Comparison | None] = {scope.api_version: self.here}

    def in_version(self, api_version: str) -> Comparison | None:
        if api_version not in self._known:
            old = self._scope.in_version(self._old, api_version, "old object")
            new = self._scope.in_version(self._new, api_version, "new object")
            found = None
            if old is not None and new is not None:
                found = compare(old, new, type_of(self._scope.shapes[api_version]))
                found = self._filtered(found, api_version)
            self._known[api_version] = found
        return self._known[api_version]

    def _filtered(self, found: Comparison, api_version: str) -> Comparison:
        apart = self._scope.resets.get(api_version)
        return Comparison(*(without(fields, apart) for fields in found)) if apart else found


def known_owners(owners: Owners, scope: Scope) -> Owners:
    """Return the owners whose API versions still exist, adapted to the current schema.

    If a mapping or list has become atomic in the schema, its owners own it as a whole. For a custom
    resource, raise `Mistyped` if a version no longer exists, as kube-apiserver reports a failed
    conversion.
    """
    gone = [each for each in owners.values() if each.api_version not in scope.shapes]
    if gone and scope.custom:
        version = gone[0].api_version
        raise Mistyped(f"request to convert CR to an invalid group/version: {version}")
    return {
        identity: owned._replace(fields=_reconciled(owned.fields, type_of(shape)))
        for identity, owned in owners.items()
        if (shape := scope.shapes.get(owned.api_version)) is not None
    }


def _reconciled(fields: Fields, schema: ApplySchema) -> Fields:
    found, changed = {}, False
    for element, node in fields.items():
        within = None
        if node and schema.mapping and element[0] == "f":
            within = schema.fields.get(element[2:]) or schema.values
        elif node and schema.sequence:
            within = schema.items
        proper = node if within is None else _reconciled_node(node, within)
        changed = changed or proper is not node
        found[element] = proper
    return found if changed else fields


def _reconciled_node(node: Fields, schema: ApplySchema) -> Fields:
    if schema.mapping:
        if not schema.fields and schema.values is not None and schema.values.scalar == "untyped":
            return node  # no schema describes the owners of this value
        return LEAF if schema.atomic else _reconciled(node, schema)
    if schema.sequence:
        return _reconciled(node, schema) if schema.associative else LEAF
    return node


def times_kept(old: Object, new: Object) -> Object:
    """Return `new`, but with the times of `old` if only times in managedFields differ.

    A write that changes only these times is then a no-op. `new` is the object to store, after
    defaults and admission.
    """
    before, after = _entries(old), _entries(new)
    if [{**each, "time": None} for each in before] != [{**each, "time": None} for each in after]:
        return new
    if before == after or bare(old) != bare(new):
        return new
    return {**new, "metadata": {**new["metadata"], "managedFields": before}}


def track_scale(
    entries: Sequence[Entry],
    *,
    manager: str,
    api_version: str,
    paths: Mapping[str, Sequence[str]],
) -> list[Entry]:
    """Return the entries of managedFields after a client has changed the replicas through /scale.

    `paths` has the path of the replicas by API version: `{"apps/v1": ("spec", "replicas")}`.
    Entries of other API versions are dropped. As in kube-apiserver, the new entry has no time.
    """
    known = stored_entries(entries).items()
    owners = {each: owned for each, owned in known if owned.api_version in paths}
    places = {version: tuple(f"f:{name}" for name in path) for version, path in paths.items()}
    if not any(has(owned.fields, places[owned.api_version]) for owned in owners.values()):
        return write_entries(owners)  # nobody owns the replicas: leave it so
    left = {
        identity: owned._replace(fields=difference(owned.fields, _only(places[owned.api_version])))
        for identity, owned in owners.items()
    }
    left = {identity: owned for identity, owned in left.items() if owned.fields}
    identity = ManagerIdentifier(manager or "unknown", "Update", api_version, "scale")
    left[identity] = OwnedFields(api_version, _only(places[api_version]))
    return write_entries(left)


def _only(path: tuple[str, ...]) -> Fields:
    fields = LEAF
    for element in reversed(path):
        fields = {element: fields}
    return fields
