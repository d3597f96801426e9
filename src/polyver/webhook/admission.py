"""Answer AdmissionReviews, which an API server sends before it stores an object.

The admission chain decides about the write. The embedded server calls the same chain in its own
process, so its decisions and messages are the same as those of the webhook server. In the answer to
an AdmissionReview, a change of the object is a JSON patch, and a refusal is a Status.
"""

from __future__ import annotations

import asyncio
import base64
from typing import Literal

import msgspec

from polyver.core.plain import Object
from polyver.kube.objects.codec import encode_json, prepare
from polyver.kube.objects.converted_metadata import fresh
from polyver.kube.objects.kinds import ResourceKind
from polyver.kube.objects.patch import json_patch
from polyver.kube.objects.status import ApiError, internal
from polyver.kube.server.admission import AdmissionChain, AdmissionRequest, User
from polyver.webhook.reviews import Admitted, ReviewBody, Reviewed, ReviewForm, bad, refused

__all__ = ["Act", "admit"]

Act = Literal["mutate", "validate"]


class _Kind(msgspec.Struct):
    kind: str
    version: str = ""
    group: str = ""


class _Resource(msgspec.Struct):
    resource: str
    version: str = ""
    group: str = ""


class _User(msgspec.Struct):
    username: str = ""
    uid: str = ""
    groups: list[str] | None = None
    extra: dict[str, list[str]] | None = None


class _Options(msgspec.Struct, rename="camel"):
    kind: str = ""
    field_manager: str = ""


class _Request(msgspec.Struct, rename="camel"):
    uid: str
    kind: _Kind
    resource: _Resource
    operation: str
    sub_resource: str = ""
    name: str = ""
    namespace: str = ""
    user_info: _User = msgspec.field(default_factory=_User)
    object: Object | None = None
    old_object: Object | None = None
    dry_run: bool | None = None
    options: _Options | None = None
    request_kind: _Kind | None = None


class _Metadata(msgspec.Struct):
    name: str = ""
    labels: dict[str, str] | None = None
    annotations: dict[str, str] | None = None


class _Object(msgspec.Struct, rename="camel"):
    """The fields of an object that admission needs. Decoding fails if one has a wrong type."""

    api_version: str
    kind: str
    metadata: _Metadata


prepare(_Object)


_decoder = msgspec.json.Decoder(ReviewBody[_Request])
_form = ReviewForm("AdmissionReview", "admission.k8s.io", _decoder)


async def admit(
    body: bytes | bytearray, chain: AdmissionChain, act: Act, *, timeout: float = 10.0
) -> Reviewed:
    """Answer an AdmissionReview by running the admission chain, within `timeout` seconds.

    `body` is the body of the request. `act` selects the part of the chain: `mutate` or `validate`.
    """
    try:
        version, request = _form.read(body)
        return await _admitted(version, request, chain, act, timeout)
    except RecursionError:
        return refused(bad("the body is nested too deeply"))
    except ApiError as error:
        return refused(error)


async def _admitted(
    version: str, request: _Request, chain: AdmissionChain, act: Act, timeout: float
) -> Reviewed:
    kind = _kind(request)
    if not chain.handles(kind, request.operation):
        return _answer(version, request, Admitted(act, ("", ""), "allowed"))
    review, key = _review(request, kind, timeout), (kind.group, kind.kind)
    before = fresh(review.object) if act == "mutate" else None
    try:
        await _run_chain(chain, act, review)
    except ApiError as error:
        refusal = {"allowed": False, "status": error.status}
        admitted = Admitted(act, key, "refused")
        return _answer(version, request, admitted, refusal | _warned(review))
    made = _patched(before, review.object) if act == "mutate" else {}
    admitted = Admitted(act, key, "changed" if made else "allowed")
    return _answer(version, request, admitted, made | _warned(review))


async def _run_chain(chain: AdmissionChain, act: Act, review: AdmissionRequest) -> None:
    try:
        async with asyncio.timeout(review.timeout):
            await (chain.mutate(review) if act == "mutate" else chain.validate(review))
    except TimeoutError:
        raise internal(f"a hook did not answer within {review.timeout:g} s") from None


def _kind(request: _Request) -> ResourceKind:
    kind, resource = request.kind, request.resource
    namespaced = bool(request.namespace)
    return ResourceKind(
        kind.group, kind.version, kind.kind, resource.resource, "", namespaced, custom=True
    )


def _review(request: _Request, kind: ResourceKind, timeout: float) -> AdmissionRequest:
    named = ""
    if request.operation != "DELETE":
        named = _checked(request.object, "object").metadata.name
    if request.operation != "CREATE":
        _checked(request.old_object, "oldObject")
    user = request.user_info
    extra = {name: tuple(values) for name, values in (user.extra or {}).items()}
    return AdmissionRequest(
        operation=request.operation,
        kind=kind,
        namespace=request.namespace,
        name=request.name or named,
        subresource=request.sub_resource,
        object=request.object,
        old=request.old_object,
        user=User(user.username, tuple(user.groups or ()), user.uid, extra),
        dry_run=bool(request.dry_run),
        applied=_is_apply(request),
        requested=request.request_kind.version if request.request_kind else "",
        timeout=timeout,
    )


def _is_apply(request: _Request) -> bool:
    """Report whether a write is a server-side apply, which an AdmissionReview does not state.

    An API server updates managedFields before it sends the review. So if the write is an apply, the
    managedFields entry of its field manager differs between the old and the new object.
    """
    options = request.options
    if options is None or options.kind != "PatchOptions":
        return False
    now, before = (
        _applied(each, options.field_manager) for each in (request.object, request.old_object)
    )
    return now is not None and now != before


def _applied(obj: Object | None, manager: str) -> Object | None:
    """Return the managedFields entry of a field manager for server-side apply; None if it has none.

    The entry contains the time of the last apply.
    """
    entries = ((obj or {}).get("metadata") or {}).get("managedFields") or ()
    found = [e for e in entries if (e.get("manager"), e.get("operation")) == (manager, "Apply")]
    return found[0] if found else None


def _checked(given: Object | None, field: str) -> _Object:
    if given is None:
        raise bad(f"the AdmissionReview has no request.{field}")
    try:
        return msgspec.convert(given, _Object)
    except msgspec.ValidationError as error:
        raise bad(f"request.{field} is not an object: {error}") from None


def _patched(before: Object | None, after: Object | None) -> Object:
    """Build the fields `patch` and `patchType` of the answer; {} if the chain changed nothing."""
    operations = json_patch(before, after)
    if not operations:
        return {}
    patch = base64.b64encode(encode_json(operations)).decode()
    return {"patchType": "JSONPatch", "patch": patch}


def _warned(review: AdmissionRequest) -> Object:
    return {"warnings": review.warnings} if review.warnings else {}


def _answer(
    version: str, request: _Request, admitted: Admitted, fields: Object | None = None
) -> Reviewed:
    response = {"uid": request.uid, "allowed": True} | (fields or {})
    body = {"apiVersion": version, "kind": _form.kind, "response": response}
    return Reviewed(200, encode_json(body), admitted=admitted)
