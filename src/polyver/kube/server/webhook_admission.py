"""Calls admission webhooks during a write: builds the objects for them, and applies their changes.

Webhooks are called after the admission chain of this process. Changes by a webhook are checked like
changes by the client.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, NamedTuple

from polyver.core.plain import Object
from polyver.kube.objects.apply import Entry, InvalidEntries, read_entries
from polyver.kube.objects.builtin import metadata_shape
from polyver.kube.objects.kinds import ResourceKind
from polyver.kube.objects.status import ApiError, invalid, invalid_field
from polyver.kube.objects.typed_bodies import decode_typed
from polyver.kube.server.call import Call
from polyver.kube.server.managed_fields import set_entries
from polyver.kube.server.options import DeleteOptions
from polyver.kube.server.rules import SCALE, ObjectView, ScaleView, dig
from polyver.kube.server.webhooks import AdmissionAttributes

__all__ = [
    "deleted",
    "mutate_create",
    "mutate_update",
    "pruned",
    "shown_kind",
    "subject_of",
    "validate",
]

_OPTIONS = {"CREATE": "CreateOptions", "UPDATE": "UpdateOptions", "DELETE": "DeleteOptions"}
_INVALID_STATE = (
    ".metadata.managedFields was in an invalid state after admission; this could be caused by an "
    "outdated mutating admission controller; please fix your requests"
)


async def subject_of(
    call: Call,
    operation: str,
    *,
    name: str,
    subresource: str = "",
    other_kind: ResourceKind | None = None,
    deletion: DeleteOptions | None = None,
) -> AdmissionAttributes | None:
    """Build the attributes of a write for webhooks; return None if no webhook is configured."""
    webhooks = call.server.webhooks
    if webhooks.idle or not await webhooks.any():
        return None
    kind = call.resource.kind
    options = _write_options(call) if deletion is None else _delete_options(deletion)
    return AdmissionAttributes(
        resource=call.resource,
        operation=operation,
        # As in kube-apiserver, a Namespace has its own name as its namespace.
        namespace=name if kind.resource == "namespaces" else call.api_path.namespace,
        name=name,
        object=None,
        old=None,
        user=call.request.user,
        options={"kind": _OPTIONS[operation], "apiVersion": "meta.k8s.io/v1"} | options,
        dry_run=bool(options.get("dryRun")),
        warn=call.warn,
        subresource=subresource,
        other_kind=other_kind,
    )


def _write_options(call: Call) -> Object:
    fields = {
        "dryRun": list(call.query.all.get("dryRun", ())),
        "fieldManager": call.query.text("fieldManager"),
        "fieldValidation": call.query.text("fieldValidation"),
    }
    return {key: value for key, value in fields.items() if value}


def _delete_options(options: DeleteOptions) -> Object:
    conditions = {"uid": options.uid, "resourceVersion": options.revision}
    fields = {
        "gracePeriodSeconds": options.grace,
        "preconditions": {key: each for key, each in conditions.items() if each is not None}
        or None,
        "orphanDependents": options.orphan,
        "propagationPolicy": options.propagation,
        "dryRun": ["All"] if options.dry_run else None,
    }
    return {key: value for key, value in fields.items() if value is not None}


async def mutate_create(call: Call, subject: AdmissionAttributes, obj: Object) -> Object:
    """Call the mutating webhooks for a new object, and return the object with their changes."""
    subject.object = obj
    await call.server.webhooks.mutate(subject)
    changed = subject.object
    if changed is not obj:
        _check_kind(call, changed)
        _keep_entries(call, changed, obj["metadata"].get("managedFields"))
    return changed


class PendingUpdate(NamedTuple):
    """The objects of an update.

    `shown` is the new object as the request path shows it, `obj` is the object to store, and `old`
    is the stored object.
    """

    shown: Object
    obj: Object
    old: Object


async def mutate_update(
    call: Call, subject: AdmissionAttributes, part: ObjectView, change: PendingUpdate
) -> Object | None:
    """Call the mutating webhooks for an update.

    Return the object to store, or None if the webhooks change nothing. Webhooks get the object as
    the request path shows it. Their changes are merged into the stored object like those of a
    request to this path.
    """
    shown, obj, old = change
    seen = _seen(call, part, shown, obj)
    subject.object, subject.old = seen, part.base(old)
    if isinstance(part, ScaleView):
        set_entries(subject.old, _scale_entries(call, part, old))
    await call.server.webhooks.mutate(subject)
    changed = subject.object
    if changed is seen:
        return None
    if isinstance(part, ScaleView):
        return part.merge(changed, old)
    _check_kind(call, changed)
    _keep_entries(call, changed, obj["metadata"].get("managedFields"))
    merged = part.merge(changed, old)
    merged = merged | {"metadata": dict(merged["metadata"])}
    set_entries(merged, changed["metadata"].get("managedFields") or ())
    return merged


def _seen(call: Call, part: ObjectView, shown: Object, obj: Object) -> Object:
    """Return the object that webhooks get: as the request path shows it, and with managedFields."""
    if isinstance(part, ScaleView):
        seen = shown | {"metadata": dict(shown["metadata"])}
        set_entries(seen, _scale_entries(call, part, obj))
        return seen
    if not part.name:
        status = {"status": shown["status"]} if "status" in shown else {}
        return {key: value for key, value in obj.items() if key != "status"} | status
    seen = shown | {"metadata": dict(shown["metadata"])}
    set_entries(seen, obj["metadata"].get("managedFields") or ())
    return seen


def _scale_entries(call: Call, part: ScaleView, obj: Object) -> list[Entry]:
    """Return the managedFields entries of the Scale of an object: entries about its replicas."""
    fields: Object = {"f:spec": {"f:replicas": {}}}
    about = {"apiVersion": SCALE.api_version, "fieldsType": "FieldsV1", "fieldsV1": fields}
    path = tuple(f"f:{name}" for name in part.replicas)
    return [
        {"time": call.server.timestamp()} | entry | about
        for entry in obj["metadata"].get("managedFields") or ()
        if dig(entry.get("fieldsV1"), path) is not None
    ]


async def validate(
    call: Call, subject: AdmissionAttributes, part: ObjectView, obj: Object, old: Object | None
) -> None:
    """Call the validating webhooks with the object that will be stored."""
    subject.object = part.base(obj)
    subject.old = None if old is None else part.base(old)
    await call.server.webhooks.validate(subject)


async def deleted(call: Call, subject: AdmissionAttributes, old: Object) -> None:
    """Call all webhooks for an object that a client wants to delete."""
    subject.old = old
    await call.server.webhooks.mutate(subject)
    await call.server.webhooks.validate(subject)


def pruned(call: Call, obj: Object) -> None:
    """Remove unknown fields of a custom resource, because webhooks may have added them."""
    if call.resource.conform is not None:
        obj["metadata"] = decode_typed(obj["metadata"], metadata_shape()).value
        call.resource.conform(obj)


def _check_kind(call: Call, changed: Object) -> None:
    kind = call.resource.kind
    given, version = changed.get("kind"), changed.get("apiVersion")
    if not kind.custom:
        changed |= {"kind": kind.kind, "apiVersion": kind.api_version}
    elif given != kind.kind:
        named_kind = replace(kind, kind=str(given or ""))
        name = changed["metadata"].get("name") or ""
        raise invalid(named_kind, name, [invalid_field("kind", given, f"must be {kind.kind}")])
    elif version != kind.api_version:
        text = f"request to convert CR from an invalid group/version: {version}"
        raise ApiError(500, "", text)


def _keep_entries(call: Call, changed: Object, before: Any) -> None:
    """If a webhook made managedFields invalid, replace them by the old entries, `before`."""
    metadata: Mapping[str, Any] = changed["metadata"]
    entries = metadata.get("managedFields") or ()
    if entries == (before or ()):
        return
    try:
        read_entries(entries)
    except InvalidEntries as error:
        call.warn(f"{_INVALID_STATE}: {error}")
        set_entries(changed, before or ())


def shown_kind(part: ObjectView) -> ResourceKind | None:
    """Return Scale for the view of /scale; None for views that show the kind of the resource."""
    return SCALE if isinstance(part, ScaleView) else None
