"""Server-side apply: merge a configuration into an object, and track the owners of its fields."""

from __future__ import annotations

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
from polyver.kube.objects.apply._fields import (
    Fields,
    common,
    difference,
    has,
    json_text,
    path_text,
    paths,
    union,
)
from polyver.kube.objects.apply._types import ApplySchema, Mistyped, misfits, type_of
from polyver.kube.objects.apply._update import (
    ApplyConflict,
    Conflicts,
    Scope,
    bare,
    known_owners,
    settle,
    stripped,
    updated,
)
from polyver.kube.objects.apply._walk import compare, merge, named, owned, remove, same
from polyver.kube.objects.status import ApiError, bad_request

__all__ = ["apply"]

BEFORE = "before-first-apply"
KUBECTL = "kubectl"
LAST_APPLIED = "kubectl.kubernetes.io/last-applied-configuration"
MOST_ANNOTATIONS = 256 * 1024
_mapping = msgspec.json.Decoder(dict[str, Any])


def apply(
    live: Object | None,
    config: Object,
    *,
    scope: Scope,
    manager: str,
    now: str,
    force: bool = False,
) -> tuple[Object, list[Entry]]:
    """Apply a configuration: return the object to store, and its managedFields entries.

    `live` is the stored object; None if the object does not exist yet. The returned object has no
    managedFields, and defaults are not added yet. If nothing changes, the returned object is `live`
    without managedFields.
    """
    _check(config, scope)
    there = scope.empty if live is None else bare(live)
    owner = scope.owner(manager, "Apply")
    try:
        entries = (live or {}).get("metadata", {}).get("managedFields")
        if entries or live is None:
            owners = stored_entries(entries)
        else:
            # No field of the live object has an owner, so the manager BEFORE owns all its fields.
            owners = updated(scope.empty, there, {}, scope=scope, manager=BEFORE, now=now)
        owners = known_owners(owners, scope)
        try:
            found, owners = _merged(there, config, owners, scope=scope, owner=owner, force=force)
        except ApplyConflict as taken:
            conflicts = taken.conflicts
            if manager == KUBECTL:
                conflicts = _not_last_applied(conflicts, there, scope)
            if conflicts:
                raise _refusal(conflicts) from None
            found, owners = _merged(there, config, owners, scope=scope, owner=owner, force=True)
    except Mistyped as error:
        raise _mistyped("live", there, scope) or ApiError(500, "", str(error)) from None
    if same(there, found):
        found = there
    elif owner in owners:
        owners = {**owners, owner: owners[owner]._replace(time=now)}
    return _with_last_applied(found, config, manager), write_entries(owners)


def _check(config: Object, scope: Scope) -> None:
    api_version, kind = _text(config, "apiVersion"), _text(config, "kind")
    group_version = api_version if "/" in api_version else f"/{api_version}"
    if (api_version, kind) != (scope.api_version, scope.kind):
        raise bad_request(f"invalid object type: {group_version}, Kind={kind}")
    metadata = config.get("metadata")
    metadata = metadata if isinstance(metadata, dict) else {}
    if isinstance(metadata.get("managedFields"), list):
        raise bad_request("metadata.managedFields must be nil")
    if refused := _mistyped("patch", config, scope):
        raise refused


def _mistyped(role: str, obj: Object, scope: Scope) -> ApiError | None:
    """Build the error for an object with values that its schema forbids.

    Return None if the schema allows all values. `role` is the word for the object in the message,
    such as `live`.
    """
    problem = misfits(obj, scope.schema)
    if not problem:
        return None
    metadata = obj.get("metadata")
    metadata = metadata if isinstance(metadata, dict) else {}
    api_version = scope.api_version
    group_version = api_version if "/" in api_version else f"/{api_version}"
    which = f"{_text(metadata, 'namespace')}/{_text(metadata, 'name')}"
    which = f"{which}; {group_version}, Kind={scope.kind}"
    return ApiError(500, "", f"failed to create typed {role} object ({which}): {problem}")


def _text(metadata: Object, key: str) -> str:
    value = metadata.get(key)
    return value if isinstance(value, str) else ""


def _merged(
    live: Object,
    config: Object,
    known: Owners,
    *,
    scope: Scope,
    owner: ManagerIdentifier,
    force: bool,
) -> tuple[Object, Owners]:
    """Merge the configuration into the object; return the merged object and its owners.

    Raise `ApplyConflict` if another manager owns a changed field, unless `force` is set.
    """
    last = known.get(owner)
    mine = scope.reset(owned(config, scope.schema))
    time = last.time if last else None
    owners = {**known, owner: OwnedFields(scope.api_version, mine, time)}
    merged = merge(live, config, scope.schema)
    if last is not None:
        # Fields that the manager applied last time and does not apply now are removed. If owners
        # wrote in several API versions, the sets cannot be compared without conversions.
        several = any(each.api_version != scope.api_version for each in known.values())
        if last.fields if several else difference(last.fields, mine):
            merged = _Pruning(scope, owners, last).pruned(merged)
    owners, _ = settle(live, merged, owners, scope=scope, force=force, writer=owner)
    if owner in owners:
        # Move the manager of this apply to the end, and drop fields that nobody may own.
        own = owners.pop(owner)
        fields = stripped(own.fields)
        if fields:
            owners[owner] = own._replace(fields=fields)
    return merged, owners


class _Pruning:
    """Removes the fields that a manager applied last time but does not apply now.

    A field stays if another manager owns it.
    """

    def __init__(self, scope: Scope, owners: Owners, last: OwnedFields) -> None:
        self._scope, self._owners, self._last = scope, owners, last

    def pruned(self, merged: Object) -> Object:
        scope, version = self._scope, self._last.api_version
        try:
            whole = scope.in_version(merged, version, "merged object to last applied version")
            if whole is None:
                return merged
            schema = type_of(scope.shapes[version])
            last = named(self._last.fields, schema)
            left = self._with_owned(whole, remove(whole, last, schema))
            left = scope.in_version(left, version, "pruned object to last applied version") or whole
            gone = difference(_named_fields(whole, schema), _named_fields(left, schema))
            found = remove(whole, common(gone, last), schema)
            return scope.in_version(found, scope.api_version, "pruned object") or merged
        except Mistyped as error:
            raise Mistyped(f"failed to prune fields: {error}") from None

    def _with_owned(self, merged: Object, left: Object) -> Object:
        """Put fields that still have an owner back into `left`, from which fields were removed.

        The values come from `merged`, the object before this removal. The fields of an owner are
        put back in the API version in which the owner wrote them.
        """
        first, rest = self._last.api_version, dict[str, Fields]()
        for each in self._owners.values():
            rest[each.api_version] = union(rest.get(each.api_version, {}), each.fields)
        # Begin with the version of the last apply: the conversions to the next versions may need
        # the fields that are restored in this version.
        for version in sorted(rest, key=lambda each: (each != first, each)):
            try:
                there = self._scope.in_version(
                    merged, version, f"merged object at version {version}"
                )
                here = self._scope.in_version(left, version, f"pruned object at version {version}")
                if there is None or here is None:
                    continue
                schema = type_of(self._scope.shapes[version])
                stays = union(_named_fields(here, schema), named(rest[version], schema))
                gone = difference(_named_fields(there, schema), stays)
                merged, left = there, remove(there, gone, schema)
            except Mistyped as error:
                raise Mistyped(f"failed add back owned items: {error}") from None
        return left


def _named_fields(value: Object, schema: ApplySchema) -> Fields:
    return named(owned(value, schema), schema)


def _refusal(conflicts: Conflicts) -> ApiError:
    """Build the error for conflicts, which lists them by owner, as kube-apiserver does."""
    found = [
        (owner, path_text(path))
        for owner in sorted(conflicts, key=lambda owner: owner.text)
        for path in paths(conflicts[owner])
    ]
    causes = [
        {
            "reason": "FieldManagerConflict",
            "message": f"conflict with {owner.shown}",
            "field": path,
        }
        for owner, path in found
    ]
    message = f"Apply failed with {len(found)} conflicts: {_listed(found)}"
    if len(found) == 1:
        [(owner, path)] = found
        message = f"Apply failed with 1 conflict: conflict with {owner.shown}: {path}"
    return ApiError(409, "Conflict", message, details={"causes": causes})


def _listed(found: list[tuple[ManagerIdentifier, str]]) -> str:
    lines: list[str] = []
    last = None
    for owner, path in found:
        if owner != last:
            lines.append(f"conflicts with {owner.shown}:")
        last = owner
        lines.append(f"- {path}")
    return "\n".join(lines)


def _not_last_applied(conflicts: Conflicts, live: Object, scope: Scope) -> Conflicts:
    """Drop the conflicts about fields that still have the value of the last client-side apply.

    So a user who changes from client-side to server-side apply gets no conflicts about fields that
    this user wrote.
    """
    allowed = _last_applied(live, scope)
    left = {}
    for owner, fields in conflicts.items():
        taken = [path for path in paths(fields) if not has(allowed, path)]
        if taken:
            left[owner] = _set_of(taken)
    return left


def _set_of(found: list[tuple[str, ...]]) -> Fields:
    fields: Fields = {}
    for path in found:
        node: Fields = {}
        for element in reversed(path):
            node = {element: node}
        fields = union(fields, node)
    return fields


def _annotation(value: Object) -> str:
    annotations = (value.get("metadata") or {}).get("annotations") or {}
    text = annotations.get(LAST_APPLIED)
    return text if isinstance(text, str) else ""


def _last_applied(live: Object, scope: Scope) -> Fields:
    text = _annotation(live)
    if not text:
        return {}
    try:
        last = _mapping.decode(text)
        if last.get("apiVersion") != scope.api_version or misfits(last, scope.schema):
            return {}
        changes = compare(last, live, scope.schema)
        changed = union(union(changes.modified, changes.added), changes.removed)
        return difference(owned(last, scope.schema), changed)
    except (msgspec.DecodeError, Mistyped):
        return {}


def _with_last_applied(found: Object, config: Object, manager: str) -> Object:
    """Return the object with `config` in the annotation that client-side apply uses.

    As in kube-apiserver, only an apply by kubectl updates this annotation, and only if the object
    already has it.
    """
    if manager != KUBECTL or not _annotation(found):
        return found
    metadata = dict(config.get("metadata") or {})
    if metadata.get("annotations") is not None:
        kept = {key: each for key, each in metadata["annotations"].items() if key != LAST_APPLIED}
        metadata["annotations"] = kept
    text = json_text({**config, "metadata": metadata}) + "\n"
    annotations = {**found["metadata"]["annotations"], LAST_APPLIED: text}
    if sum(len(key.encode()) + len(each.encode()) for key, each in annotations.items()) > (
        MOST_ANNOTATIONS
    ):
        del annotations[LAST_APPLIED]
    return {**found, "metadata": {**found["metadata"], "annotations": annotations}}
