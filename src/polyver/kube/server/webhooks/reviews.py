"""AdmissionReviews: builds the request to a webhook, checks the answer, and applies its patch.

Errors have the wording of kube-apiserver.
"""

from __future__ import annotations

import base64
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from typing import Any

from polyver.core.plain import Object
from polyver.kube.objects import InvalidPatch, PatchFailed, apply_json_patch, encode_json
from polyver.kube.objects.builtin import builtin_kinds, metadata_shape, shape_of
from polyver.kube.objects.kinds import ResourceKind
from polyver.kube.objects.status import ApiError, internal
from polyver.kube.objects.type_shapes import Shape
from polyver.kube.objects.typed_bodies import Undecodable, decode_typed, what_is
from polyver.kube.server.conversion.reviews import WebhookCallFailed, parsed, refuse_others
from polyver.kube.server.http import User
from polyver.kube.server.resource import ServedResource
from polyver.kube.server.rules import SCALE
from polyver.kube.server.webhooks.subjects import AdmissionAttributes, VersionedObjects
from polyver.languages.values.json_values import plain, read
from polyver.languages.values.strings import quoted

__all__ = [
    "AdmissionResponse",
    "denied",
    "patched",
    "read_patch",
    "read_verdict",
    "request_of",
    "review_body",
    "review_version",
]

GROUP = "admission.k8s.io"
KIND = "AdmissionReview"
_KNOWN_VERSIONS = ("v1", "v1beta1")
_LOWEST_REFUSAL = 400
_HIGHEST_CODE = 599  # the highest code in HTTP; kube-apiserver also sends higher codes


def review_version(accepted: Sequence[str]) -> str:
    """Return the first review version that the webhook accepts and this server supports.

    >>> review_version(["v9", "v1beta1", "v1"])
    'v1beta1'
    """
    known = next((each for each in accepted if each in _KNOWN_VERSIONS), None)
    if known is None:
        problem = "webhook does not accept known AdmissionReview versions (v1, v1beta1)"
        raise WebhookCallFailed(f"could not create admission objects: {problem}")
    return known


def request_of(
    subject: AdmissionAttributes, kind: ResourceKind, plural: ResourceKind, shown: VersionedObjects
) -> Object:
    """Build the field `request` of a review, without its uid.

    `kind` is the kind of the objects in `shown`. `plural` is the resource that matched a rule of
    the webhook.
    """
    requested = subject.resource.kind
    fields: Object = {
        "kind": _kind(kind),
        "resource": _resource(plural),
        "subResource": subject.subresource,
        "requestKind": _kind(subject.kind),
        "requestResource": _resource(requested),
        "requestSubResource": subject.subresource,
        "name": subject.name,
        "namespace": subject.namespace,
    }
    return {name: value for name, value in fields.items() if value} | {
        "operation": subject.operation,
        "userInfo": _user(subject.user),
        "object": shown.object,
        "oldObject": shown.old,
        "dryRun": subject.dry_run,
        "options": subject.options,
    }


def _kind(kind: ResourceKind) -> Object:
    return {"group": kind.group, "version": kind.version, "kind": kind.kind}


def _resource(kind: ResourceKind) -> Object:
    return {"group": kind.group, "version": kind.version, "resource": kind.plural}


def _user(user: User) -> Object:
    fields = {
        "username": user.name,
        "uid": user.uid,
        "groups": list(user.groups),
        "extra": {key: list(values) for key, values in user.extra.items()},
    }
    return {name: value for name, value in fields.items() if value}


def review_body(request: Object, uid: str, version: str) -> bytes:
    """Encode an AdmissionReview as JSON. `request` is its field `request`, without the uid."""
    return encode_json(
        {"kind": KIND, "apiVersion": f"{GROUP}/{version}", "request": {"uid": uid} | request}
    )


@dataclass(frozen=True, slots=True)
class AdmissionResponse:
    """The answer of a webhook to a review: whether the write is allowed, and its changes."""

    allowed: bool
    status: Mapping[str, Any] = field(default_factory=dict)
    warnings: tuple[str, ...] = ()
    patch: bytes = b""
    patch_type: str = ""


_TEXT = Shape(type="string", name="string")


@cache
def _shape() -> Shape:
    """Return the shape by which an AdmissionReview in an answer is decoded."""
    response = Shape(
        type="object",
        name="v1.AdmissionResponse",
        fields={
            "uid": Shape(type="string", name="types.UID"),
            "allowed": Shape(type="boolean", name="bool"),
            "status": shape_of("", "v1", "Status"),
            "patch": Shape(type="string", format="byte", name="[]uint8"),
            "patchType": Shape(type="string", name="v1.PatchType"),
            "auditAnnotations": Shape(type="object", name="map[string]string", values=_TEXT),
            "warnings": Shape(type="array", name="[]string", items=_TEXT),
        },
    )
    fields = {"apiVersion": _TEXT, "kind": _TEXT, "response": response}
    return Shape(type="object", name="v1.AdmissionReview", fields=fields)


def read_verdict(body: bytes, *, uid: str, version: str, mutating: bool) -> AdmissionResponse:
    """Read an answer; raise `WebhookCallFailed` if it is not valid."""
    try:
        answer = _read(body, version)
    except WebhookCallFailed as error:
        raise WebhookCallFailed(f"failed to call webhook: {error}") from None
    try:
        return _verified(answer, uid=uid, strict=version == "v1", mutating=mutating)
    except WebhookCallFailed as error:
        raise WebhookCallFailed(f"received invalid webhook response: {error}") from None


def _read(body: bytes, version: str) -> Object:
    value = parsed(body)
    api_version, kind = value.get("apiVersion") or "", value.get("kind") or ""
    refuse_others(api_version, kind, GROUP, version, KIND)
    try:
        found: Object = decode_typed(value, _shape()).value
    except Undecodable as error:
        raise WebhookCallFailed(str(error)) from None
    # Keep the version and kind that the webhook sent, because errors show them.
    return {"response": found.get("response"), "apiVersion": api_version, "kind": kind} | {
        "given": value.get("response")
    }


def _verified(answer: Object, *, uid: str, strict: bool, mutating: bool) -> AdmissionResponse:
    response, given = answer["response"], answer["given"]
    if given is None:
        raise WebhookCallFailed("webhook response was absent")
    response = response or {}
    if strict:
        _check_identity(answer, response.get("uid") or "", uid)
        _check_patch(given, mutating=mutating)
    patch = _patch_of(response) if mutating else b""
    kind = (response.get("patchType") or "") if strict else "JSONPatch"
    return AdmissionResponse(
        allowed=bool(response.get("allowed")),
        status=response.get("status") or {},
        warnings=tuple(response.get("warnings") or ()),
        patch=patch,
        patch_type=kind,
    )


def _check_identity(answer: Object, given: str, uid: str) -> None:
    if given != uid:
        raise WebhookCallFailed(f"expected response.uid={quoted(uid)}, got {quoted(given)}")
    version, kind = answer["apiVersion"], answer["kind"]
    if (version, kind) != (f"{GROUP}/v1", KIND):
        shown = version if "/" in version else f"/{version}"
        expected = f"expected webhook response of {GROUP}/v1, Kind={KIND}"
        raise WebhookCallFailed(f"{expected}, got {shown}, Kind={kind}")


def _check_patch(response: Mapping[str, Any], *, mutating: bool) -> None:
    patch, kind = response.get("patch"), response.get("patchType")
    if not mutating:
        for name, value in (("patch", patch or None), ("patchType", kind)):
            if value is not None:
                raise WebhookCallFailed(f"validating webhook may not return response.{name}")
        return
    if patch and kind is None:
        raise WebhookCallFailed("webhook returned response.patch but not response.patchType")
    if not patch and kind is not None:
        raise WebhookCallFailed("webhook returned response.patchType but not response.patch")
    if kind == "":
        raise WebhookCallFailed('webhook returned invalid response.patchType of ""')


def _patch_of(response: Mapping[str, Any]) -> bytes:
    return base64.b64decode(response.get("patch") or "")


def denied(name: str, status: Mapping[str, Any]) -> ApiError:
    """Build the error for a write that a webhook refused; `status` is from its answer.

    >>> print(denied("a.b.c", {"reason": "TooRed"}))
    admission webhook "a.b.c" denied the request: TooRed
    """
    message = f"admission webhook {quoted(name)} denied the request"
    reason = status.get("reason") or ""
    explained = status.get("message") or reason
    details = status.get("details") or {}
    seconds = details.get("retryAfterSeconds") or 0
    code = max(status.get("code") or 0, _LOWEST_REFUSAL)
    return ApiError(
        code if code <= _HIGHEST_CODE else 500,
        reason,
        f"{message}: {explained}" if explained else f"{message} without explanation",
        details=details or None,
        headers={"Retry-After": str(seconds)} if seconds > 0 else None,
        metadata=status.get("metadata"),
    )


_UNREADABLE = "received undecodable patch in webhook response"
_IDENTITY = (
    'struct { APIVersion string "json:\\"apiVersion,omitempty\\""; '
    'Kind string "json:\\"kind,omitempty\\"" }'
)


def read_patch(patch: bytes, kind: str) -> list[Any]:
    """Decode the operations of a JSON patch; return an empty list if the patch is empty."""
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
    """Apply the patch of a webhook. If the result is not an object of the kind, raise an error."""
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
    _check_patched_identity(made, kind)
    shape = (
        resource.shape if kind is resource.kind else shape_of(kind.group, kind.version, kind.kind)
    )
    try:
        found: Object = decode_typed(made, shape).value
    except Undecodable as error:
        raise internal(str(error)) from None
    return found


def _check_patched_identity(made: Object, kind: ResourceKind) -> None:
    """Raise an error if a patch changed the version or the kind of an object.

    A patch may remove the version and the kind.
    """
    version, name = made.get("apiVersion") or kind.api_version, made.get("kind") or kind.kind
    if (version, name) == (kind.api_version, kind.kind):
        return
    if any((each.api_version, each.kind) == (version, name) for each in builtin_kinds()):
        short, own = str(version).rpartition("/")[2], kind.group.partition(".")[0] or "core"
        text = f"converting ({short}.{name}) to ({own}.{kind.kind}): unknown conversion"
        raise ApiError(500, "", text)
    message = f'no kind "{name}" is registered for version "{version}"'
    raise internal(f'{message} in scheme "pkg/runtime/scheme.go:111"')


def _check_metadata(made: Object) -> None:
    """Raise an error if a known metadata field of a patched object has a wrong type.

    Unknown fields are removed later.
    """
    metadata = made.get("metadata")
    if not isinstance(metadata, dict):
        raise internal("system metadata was not initialized")
    try:
        decode_typed(dict(metadata), metadata_shape())
    except Undecodable as error:
        raise internal(str(error)) from None
