"""Server-side apply: merges a configuration into an object and tracks the owners of its fields."""

from __future__ import annotations

from typing import Any

import msgspec

from polyver.core.plain import Object
from polyver.kube.objects.apply._check import misfits
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
from polyver.kube.objects.apply._merge import merge, named, remove
from polyver.kube.objects.apply._types import ApplySchema, Mistyped, type_of
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
from polyver.kube.objects.apply._walk import compare, owned, same
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
    """Return the object to store when a configuration is applied, and its managedFields.

    `live` is None if the object does not exist yet. The returned object has no managedFields and no
    defaults yet; if nothing changes, it is `live` without managedFields.
    """
    _check(config, scope)
    there = scope.empty if live is None else bare(live)
    try:
        applying = _Applying(there, config, scope, _owners_of(live, there, scope, now))
        found, owners = _outcome(applying, there, scope, manager=manager, force=force)
    except Mistyped as error:
        raise _mistyped("live", there, scope) or ApiError(500, "", str(error)) from None
    if same(there, found):
        found = there
    else:
        owners = _timed(owners, scope.owner(manager, "Apply"), now)
    return _with_last_applied(found, config, manager), write_entries(owners)


def _outcome(
    applying: _Applying, live: Object, scope: Scope, *, manager: str, force: bool
) -> tuple[Object, Owners]:
    try:
        return applying.outcome(manager, force=force)
    except ApplyConflict as taken:
        conflicts = taken.conflicts
    if manager == KUBECTL:
        conflicts = _not_last_applied(conflicts, live, scope)
    if conflicts:
        raise _refusal(conflicts)
    return applying.outcome(manager, force=True)


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
    """Return the error for an object with values that its schema does not allow, or None."""
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


def _owners_of(live: Object | None, there: Object, scope: Scope, now: str) -> Owners:
    """Return the owners of the live fields; without any, `before-first-apply` owns them all."""
    entries = (live or {}).get("metadata", {}).get("managedFields")
    if entries or live is None:
        return stored_entries(entries)
    return updated(scope.empty, there, {}, scope=scope, manager=BEFORE, now=now)


def _timed(owners: Owners, owner: ManagerIdentifier, now: str) -> Owners:
    mine = owners.get(owner)
    return owners if mine is None else {**owners, owner: mine._replace(time=now)}


class _Applying:
    """One configuration that is applied to an object."""

    def __init__(self, live: Object, config: Object, scope: Scope, owners: Owners) -> None:
        self._live, self._config, self._scope = live, config, scope
        self._owners = known_owners(owners, scope)

    def outcome(self, manager: str, *, force: bool) -> tuple[Object, Owners]:
        scope, owner = self._scope, self._scope.owner(manager, "Apply")
        last = self._owners.get(owner)
        mine = scope.reset(owned(self._config, scope.schema))
        time = last.time if last else None
        owners = {**self._owners, owner: OwnedFields(scope.api_version, mine, time)}
        merged = merge(self._live, self._config, scope.schema)
        if last is not None and self._drops(last, mine):
            merged = _Pruning(scope, owners, last).pruned(merged)
        owners, _ = settle(self._live, merged, owners, scope=scope, force=force, writer=owner)
        return merged, _without_identity(owners, owner)

    def _drops(self, last: OwnedFields, mine: Fields) -> bool:
        """Report whether the manager does not apply a field that it applied last time.

        If fields are owned in several versions, return True: only conversions can show it.
        """
        version = self._scope.api_version
        if any(each.api_version != version for each in self._owners.values()):
            return bool(last.fields)
        return bool(difference(last.fields, mine))


def _without_identity(owners: Owners, owner: ManagerIdentifier) -> Owners:
    if owner not in owners:
        return owners
    mine = owners[owner]._replace(fields=stripped(owners[owner].fields))
    left = {identity: each for identity, each in owners.items() if identity != owner}
    return {**left, owner: mine} if mine.fields else left


class _Pruning:
    """Removes fields that a manager applied last time, does not apply now, and nobody else owns."""

    def __init__(self, scope: Scope, owners: Owners, last: OwnedFields) -> None:
        self._scope, self._owners, self._last = scope, owners, last

    def pruned(self, merged: Object) -> Object:
        try:
            return self._pruned(merged)
        except Mistyped as error:
            raise Mistyped(f"failed to prune fields: {error}") from None

    def _pruned(self, merged: Object) -> Object:
        version = self._last.api_version
        whole = self._converted(merged, version, "merged object to last applied version")
        if whole is None:
            return merged
        schema = self._schema_of(version)
        last = named(self._last.fields, schema)
        left = self._with_owned(whole, remove(whole, last, schema))
        left = self._converted(left, version, "pruned object to last applied version") or whole
        gone = difference(_named_fields(whole, schema), _named_fields(left, schema))
        found = remove(whole, common(gone, last), schema)
        return self._converted(found, self._scope.api_version, "pruned object") or merged

    def _schema_of(self, version: str) -> ApplySchema:
        return type_of(self._scope.shapes[version])

    def _converted(self, value: Object, version: str, what: str) -> Object | None:
        return self._scope.in_version(value, version, what)

    def _with_owned(self, merged: Object, left: Object) -> Object:
        """Return `left` with the fields that others own restored, each in its own version."""
        first, rest = self._last.api_version, dict[str, Fields]()
        for each in self._owners.values():
            rest[each.api_version] = union(rest.get(each.api_version, {}), each.fields)
        # The last applied version comes first: it may have fields that conversions need.
        for version in sorted(rest, key=lambda each: (each != first, each)):
            try:
                merged, left = self._with_owned_in(version, rest[version], merged, left)
            except Mistyped as error:
                raise Mistyped(f"failed add back owned items: {error}") from None
        return left

    def _with_owned_in(
        self, version: str, theirs: Fields, merged: Object, left: Object
    ) -> tuple[Object, Object]:
        there = self._converted(merged, version, f"merged object at version {version}")
        here = self._converted(left, version, f"pruned object at version {version}")
        if there is None or here is None:
            return merged, left
        schema = self._schema_of(version)
        stays = union(_named_fields(here, schema), named(theirs, schema))
        return there, remove(there, difference(_named_fields(there, schema), stays), schema)


def _named_fields(value: Object, schema: ApplySchema) -> Fields:
    return named(owned(value, schema), schema)


def _refusal(conflicts: Conflicts) -> ApiError:
    """Return the error that lists conflicts by owner, as kube-apiserver does."""
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
    """Return conflicts, except those on unchanged fields that client-side apply wrote.

    A user who moves from client-side to server-side apply then has no conflicts with their own
    changes.
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
    """Update client-side apply's annotation if kubectl applies and the object has one."""
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
