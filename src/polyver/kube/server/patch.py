"""Applies the body of a PATCH request to an object."""

from __future__ import annotations

import copy
from collections.abc import Sequence
from typing import Any

from polyver.core.plain import Object
from polyver.kube.objects import InvalidPatch, PatchFailed, apply_json_patch, apply_merge_patch
from polyver.kube.objects.apply import Entry, apply
from polyver.kube.objects.codec import encode_sorted
from polyver.kube.objects.status import ApiError, Cause, bad_request
from polyver.kube.objects.strategic import apply_strategic_merge
from polyver.kube.objects.typed_bodies import read_yaml, what_is
from polyver.kube.server.bodies import conform, judge
from polyver.kube.server.call import Call
from polyver.kube.server.managed_fields import decided
from polyver.kube.server.options import WriteOptions
from polyver.kube.server.rules import ObjectView
from polyver.languages.values.json_values import Undecodable, plain, read

__all__ = ["APPLY", "patch_type", "patched"]

JSON_PATCH = "application/json-patch+json"
MERGE = "application/merge-patch+json"
STRATEGIC = "application/strategic-merge-patch+json"
APPLY = "application/apply-patch+yaml"
_CUSTOM = (JSON_PATCH, MERGE, APPLY)
_BUILTIN = (*_CUSTOM, STRATEGIC)
_MOST_OPERATIONS = 10_000
_GO_MAP = "Go value of type map[string]interface {}"


def patch_type(call: Call) -> str:
    """Return the media type of a patch. If the kind does not accept it, raise an error 415."""
    media = call.request.headers.get("content-type", "").partition(";")[0].strip().lower()
    if call.resource.kind.custom:
        if media not in _CUSTOM:
            text = "the body of the request was in an unknown format - accepted media types include"
            raise ApiError(415, "UnsupportedMediaType", f"{text}: {', '.join(_CUSTOM)}")
    elif media not in _BUILTIN:
        raise ApiError(415, "UnsupportedMediaType", "415: Unsupported Media Type", details={})
    return media


def patched(call: Call, obj: Object, options: WriteOptions) -> Object:
    """Apply a patch (but not a server-side apply) to an object.

    Unknown fields are removed from the result; the query parameter `fieldValidation` determines
    whether they are an error.
    """
    data: Any
    kind = patch_type(call)
    if kind == JSON_PATCH:
        data, problems = _json_patched(call, obj)
    else:
        patch, problems = _patch_object(call)
        if kind == MERGE:
            data = apply_merge_patch(obj, patch)
        else:
            data = apply_strategic_merge(obj, patch, call.resource.shape)
    text = encode_sorted(data).decode()
    try:
        result, unknown = conform(call, data)
    except Undecodable as error:
        raise _invalid(text, str(error)) from None
    judge(
        call,
        [*problems, *unknown],
        options.validation,
        lambda refused: _invalid(text, f"strict decoding error: {', '.join(refused)}"),
    )
    return result


def read_config(call: Call) -> Object:
    """Decode the body of a server-side apply, which is YAML or JSON."""
    try:
        config, _ = read_yaml(call.request.body)
    except Undecodable as error:
        raise bad_request(f"error encoding patch: {error}") from None
    if isinstance(config, dict):
        return config
    message = "error decoding patch: error unmarshaling JSON: while decoding JSON"
    raise bad_request(f"{message}: json: cannot unmarshal {what_is(config)} into {_GO_MAP}")


async def applied_to(
    call: Call, part: ObjectView, live: Object | None, config: Object, options: WriteOptions
) -> tuple[Object, Sequence[Entry]]:
    """Merge the configuration of a server-side apply into the object `live`.

    If `live` is None, the object does not exist yet. Return the new object and its managedFields
    entries.
    """
    if part.name == "scale":
        raise _no_scale(config)
    now = call.server.timestamp()
    found, owners = await decided(
        call,
        part,
        lambda scope: apply(
            live, config, scope=scope, manager=options.manager, now=now, force=options.force
        ),
    )
    try:
        obj, _ = await call.run(lambda: conform(call, copy.deepcopy(found), drop_nulls=False))
    except Undecodable as error:
        raise _invalid(encode_sorted(found).decode(), str(error)) from None
    return obj, owners


def _no_scale(config: Object) -> ApiError:
    metadata = config.get("metadata")
    name = metadata.get("name", "") if isinstance(metadata, dict) else ""
    text = "request to convert CR to an invalid group/version: autoscaling/v1"
    what = f"(/{name}; autoscaling/v1, Kind=Scale)"
    return ApiError(500, "", f"failed to convert new object {what} to proper version: {text}")


def _patch_object(call: Call) -> tuple[Object, Sequence[str]]:
    try:
        patch, doubled = _data(call)
    except Undecodable:
        raise bad_request("invalid JSON patch") from None
    if isinstance(patch, dict):
        return patch, doubled
    if patch is None:
        raise bad_request("invalid JSON patch")
    message = "error decoding patch: json: cannot unmarshal"
    raise bad_request(f"{message} {what_is(patch)} into {_GO_MAP}")


def _data(call: Call) -> tuple[Any, Sequence[str]]:
    doubled: dict[str, None] = {}
    return plain(read(call.request.body), "", doubled), tuple(doubled)


def _json_patched(call: Call, obj: Object) -> tuple[Any, Sequence[str]]:
    try:
        operations, _ = _data(call)
    except Undecodable:
        raise bad_request("invalid JSON patch") from None
    if not isinstance(operations, list):
        text = "Go value of type []handlers.jsonPatchOp"
        what = what_is(operations)
        raise bad_request(f"error decoding patch: json: cannot unmarshal {what} into {text}")
    if len(operations) > _MOST_OPERATIONS:
        text = (
            f"The allowed maximum operations in a JSON patch is {_MOST_OPERATIONS}, got "
            f"{len(operations)}"
        )
        raise ApiError(413, "RequestEntityTooLarge", text)
    try:
        return apply_json_patch(obj, operations), _odd_operations(operations)
    except (PatchFailed, InvalidPatch):
        text = "the server rejected our request due to an error in our request"
        raise ApiError(422, "Invalid", text, details={}) from None


_OPERATION = {"op", "path", "from", "value"}


def _odd_operations(operations: list[Any]) -> list[str]:
    return [
        f'json patch unknown field "[{number}].{name}"'
        for number, operation in enumerate(operations)
        if isinstance(operation, dict)
        for name in operation
        if name not in _OPERATION
    ]


def _invalid(value: str, problem: str) -> ApiError:
    """Build the error for a patched object that is not valid; the message contains the object."""
    shown = encode_sorted(value).decode()
    cause = Cause("patch", f"Invalid value: {shown}: {problem}")
    message = f' "" is invalid: {cause.field}: {cause.message}'
    return ApiError(422, "Invalid", message, details={"causes": [cause.as_detail]})
