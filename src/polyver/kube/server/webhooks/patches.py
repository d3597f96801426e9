"""Application of the patch in a webhook's answer to an object."""

from __future__ import annotations

from typing import Any

from polyver.core.plain import Object
from polyver.kube.objects import InvalidPatch, PatchFailed, apply_json_patch
from polyver.kube.objects.builtin import builtin_kinds, metadata_shape, shape_of
from polyver.kube.objects.kinds import ResourceKind
from polyver.kube.objects.status import ApiError, internal
from polyver.kube.objects.typed_bodies import Undecodable, decode_typed, what_is
from polyver.kube.server.conversion.reviews import WebhookCallFailed
from polyver.kube.server.resource import ServedResource
from polyver.kube.server.subresources import SCALE
from polyver.languages.values.json_values import plain, read

__all__ = ["patched", "read_patch"]

_UNREADABLE = "received undecodable patch in webhook response"
_IDENTITY = (
    'struct { APIVersion string "json:\\"apiVersion,omitempty\\""; '
    'Kind string "json:\\"kind,omitempty\\"" }'
)


def read_patch(patch: bytes, kind: str) -> list[Any]:
    """Return the operations of a patch; none if the patch is empty."""
    if not patch:
        return []
    try:
        operations = plain(read(patch), "", {})
    except Undecodable as error:
        raise WebhookCallFailed(f"{_UNREADABLE}: {error}") from None
    if operations is not None and not isinstance(operations, list):
        what = f"json: cannot unmarshal {what_is(operations)} into Go value of type jsonpatch.Patch"
        raise WebhookCallFailed(f"{_UNREADABLE}: {what}")
    for each in operations or ():
        if not isinstance(each, dict):
            into = "Go value of type jsonpatch.Operation"
            what = f"json: cannot unmarshal {what_is(each)} into {into}"
            raise WebhookCallFailed(f"{_UNREADABLE}: {what}")
    if operations and kind != "JSONPatch":
        raise WebhookCallFailed(f'unsupported patch type "{kind}"')
    return operations or []


def patched(
    obj: Object, operations: list[Any], resource: ServedResource, kind: ResourceKind
) -> Object:
    """Apply a patch to an object; raise an error if the result is not an object of the kind."""
    try:
        made = apply_json_patch(obj, operations)
    except (PatchFailed, InvalidPatch) as error:
        raise internal(str(error)) from None
    if not isinstance(made, dict):
        what = f"json: cannot unmarshal {what_is(made)} into Go value of type {_IDENTITY}"
        raise internal(f"couldn't get version/kind; json parse error: {what}")
    if not kind.custom or kind is SCALE:
        return _typed(made, resource, kind)
    _check_metadata(made)
    return made


def _typed(made: Object, resource: ServedResource, kind: ResourceKind) -> Object:
    _check_identity(made, kind)
    shape = (
        resource.shape if kind is resource.kind else shape_of(kind.group, kind.version, kind.kind)
    )
    try:
        found: Object = decode_typed(made, shape).value
    except Undecodable as error:
        raise internal(str(error)) from None
    return found


def _check_identity(made: Object, kind: ResourceKind) -> None:
    """Raise an error if an object states another version or kind; it may leave them out."""
    version, name = made.get("apiVersion") or kind.api_version, made.get("kind") or kind.kind
    if (version, name) == (kind.api_version, kind.kind):
        return
    if any((each.api_version, each.kind) == (version, name) for each in builtin_kinds()):
        short, own = str(version).rpartition("/")[2], kind.group.partition(".")[0] or "core"
        text = f"converting ({short}.{name}) to ({own}.{kind.kind}): unknown conversion"
        raise ApiError(500, "", text)
    told = f'no kind "{name}" is registered for version "{version}"'
    raise internal(f'{told} in scheme "pkg/runtime/scheme.go:111"')


def _check_metadata(made: Object) -> None:
    """Check the known fields of metadata; unknown fields stay until the object is stored."""
    metadata = made.get("metadata")
    if not isinstance(metadata, dict):
        raise internal("system metadata was not initialized")
    try:
        decode_typed(dict(metadata), metadata_shape())
    except Undecodable as error:
        raise internal(str(error)) from None
