"""Decodes request bodies into objects of the kind that the request path names."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import msgspec

from polyver.core.plain import Object
from polyver.kube.objects import encode_json
from polyver.kube.objects.builtin import builtin_kinds, metadata_shape, shape_of
from polyver.kube.objects.kinds import ResourceKind
from polyver.kube.objects.protobuf import decode_protobuf
from polyver.kube.objects.schema import MalformedMetadata
from polyver.kube.objects.status import ApiError, bad_request, invalid, invalid_field
from polyver.kube.objects.type_shapes import Shape
from polyver.kube.objects.typed_bodies import (
    Undecodable,
    decode_plain,
    decode_typed,
    read_yaml,
    strictly_refused,
    undecodable,
    what_is,
)
from polyver.kube.server.call import Call
from polyver.kube.server.http import PROTOBUF, YAML, body_type
from polyver.kube.server.options import DeleteOptions
from polyver.kube.server.rules import SCALE

__all__ = ["conform", "judge", "read_delete_options", "read_object"]

_SHOWN = 30
_DELETE_OPTIONS = ResourceKind("meta.k8s.io", "v1", "DeleteOptions", "", "", namespaced=False)
# kube-apiserver still knows these kinds, although it no longer serves them.
_KNOWN_UNSERVED = frozenset({("apiextensions.k8s.io/v1beta1", "CustomResourceDefinition")})


class _Identity(msgspec.Struct, rename="camel"):
    api_version: str = ""
    kind: str = ""


_identity = msgspec.json.Decoder(_Identity)


def read_object(call: Call, validation: str) -> Object:
    """Decode the object in the body of a request.

    Unknown fields are removed. `validation` is the query parameter `fieldValidation`: with
    `Strict`, unknown and duplicate fields are an error; with `Warn`, the client gets warnings; with
    `Ignore`, they are ignored.
    """
    kind = _expected(call)
    try:
        obj, problems = _read_custom(call) if kind.custom else _read_typed(call, kind)
    except Undecodable as error:
        raise undecodable(kind, call.request.body, error) from None
    judge(call, problems, validation, lambda refused: strictly_refused(kind, refused))
    obj["apiVersion"], obj["kind"] = kind.api_version, kind.kind
    return obj


def _expected(call: Call) -> ResourceKind:
    """Return the kind that the body must have: Scale for /scale, otherwise the resource's kind."""
    return SCALE if call.api_path.subresource == "scale" else call.resource.kind


def judge(
    call: Call,
    problems: Sequence[str],
    validation: str,
    refusal: Callable[[Sequence[str]], ApiError],
) -> None:
    """Refuse a request for its duplicate and unknown fields, warn the client, or do nothing.

    `validation`, the query parameter `fieldValidation`, decides which. `refusal` builds the error.
    """
    if problems and validation == "Strict":
        raise refusal(problems)
    if validation == "Warn":
        for problem in problems:
            if call.warnings.full:
                return
            call.warn(problem)


# Built-in kinds: the body is decoded into the types of the kind's fields.


def _read_typed(call: Call, kind: ResourceKind) -> tuple[Object, Sequence[str]]:
    doubled: list[str] = []
    body = _typed_body(call, kind, doubled)
    identity = _identity_of(body)
    # A body may leave out its version and its kind.
    version, name = identity.api_version or kind.api_version, identity.kind or kind.kind
    if (version, name) != (kind.api_version, kind.kind):
        raise _other_kind(kind, version, name)
    decoded = decode_typed(body, _shape(call, kind))
    if kind is not SCALE:
        call.resource.rules.default(decoded.value)
    return decoded.value, [*doubled, *decoded.problems]


def _typed_body(
    call: Call, kind: ResourceKind, problems: list[str] | None = None
) -> bytes | Object:
    match body_type(call.request.headers.get("content-type", "")):
        case "application/vnd.kubernetes.protobuf":
            return decode_protobuf(
                call.request.body,
                lambda version, name: _builtin_shape(kind, version, name),
                expected=kind.kind,
            )
        case "application/yaml":
            data, doubled = _yaml(call.request.body, kind)
            if problems is not None:
                problems += doubled
            return data if isinstance(data, dict) else msgspec.json.encode(data)
    return call.request.body


def _builtin_shape(expected: ResourceKind, api_version: str, name: str) -> Shape | None:
    """Find the shape of the kind that a protobuf body states; None for an unknown kind.

    If the body does not state its version or its kind, use those of `expected`.
    """
    if (name or expected.kind) == _DELETE_OPTIONS.kind:
        return shape_of("", "v1", _DELETE_OPTIONS.kind)  # clients put it in any group
    wanted = api_version or expected.api_version, name or expected.kind
    for kind in (expected, SCALE, *builtin_kinds()):
        if (kind.api_version, kind.kind) == wanted:
            return shape_of(kind.group, kind.version, kind.kind)
    return None


def _shape(call: Call, kind: ResourceKind) -> Shape:
    if kind is SCALE:
        return shape_of(SCALE.group, SCALE.version, SCALE.kind)
    return call.resource.shape


def _yaml(body: bytes, kind: ResourceKind) -> tuple[Any, list[str]]:
    try:
        return read_yaml(body)
    except Undecodable as error:
        what = f"the object provided is unrecognized (must be of type {kind.kind})"
        raise bad_request(f"{what}: {error} ({body[:_SHOWN].hex()})") from None


def _identity_of(body: bytes | Object) -> _Identity:
    """Read the version and the kind that a body states; both are "" if the body is malformed."""
    try:
        if isinstance(body, bytes):
            return _identity.decode(body)
        return msgspec.convert(body, _Identity)
    except (msgspec.MsgspecError, RecursionError, UnicodeDecodeError):
        return _Identity()


def _other_kind(kind: ResourceKind, version: str, name: str) -> ApiError:
    """Build the error for a body that states a wrong version or kind.

    `kind` is the built-in kind of the request path.
    """
    if (version, name) in _KNOWN_UNSERVED:
        return _other_version(kind, version)
    short = version.rpartition("/")[2]
    message = f'{name} in version "{short}" cannot be handled as a {kind.kind}'
    if any((one.api_version, one.kind) == (version, name) for one in builtin_kinds()):
        internal = kind.group.partition(".")[0] or "core"
        text = f"converting ({short}.{name}) to ({internal}.{kind.kind}): unknown conversion"
        return bad_request(f"{message}: {text}")
    scheme = '"pkg/runtime/scheme.go:111"'
    text = f'no kind "{name}" is registered for version "{version}" in scheme {scheme}'
    return bad_request(f"{message}: {text}")


# Custom kinds: the body is decoded as plain JSON or YAML, and then made to fit the schema.


def _read_custom(call: Call) -> tuple[Object, Sequence[str]]:
    kind = call.resource.kind
    doubled: Sequence[str] = ()
    media = body_type(call.request.headers.get("content-type", ""))
    if media == PROTOBUF:
        raise ApiError(415, "UnsupportedMediaType", "custom kinds have no protobuf encoding")
    if media == YAML:
        data, doubled = _yaml(call.request.body, kind)
    else:
        data, doubled = decode_plain(call.request.body)
    if not isinstance(data, dict) or not data.get("kind"):
        raise bad_request(_kind_missing(kind, call.request.body))
    version = data.get("apiVersion") or ""
    if version != kind.api_version:
        raise _other_version(kind, version)
    obj, unknown = conform(call, data)
    return obj, [*doubled, *unknown]


def _other_version(kind: ResourceKind, version: str) -> ApiError:
    text = f"the API version in the data ({version}) does not match the expected API version"
    return bad_request(f"{text} ({kind.api_version})")


def _kind_missing(kind: ResourceKind, body: bytes) -> str:
    text = body.decode(errors="replace")
    shown = text if len(body) <= _SHOWN else f"{text[:_SHOWN]} ..."
    what = f"the object provided is unrecognized (must be of type {kind.kind})"
    return f"{what}: Object 'Kind' is missing in '{text}' ({shown})"


def conform(call: Call, data: Object, *, drop_nulls: bool = True) -> tuple[Object, Sequence[str]]:
    """Convert data to an object of the kind in the path.

    Return the object, and a message for each unknown field of the data.
    """
    kind = _expected(call)
    if not kind.custom:
        decoded = decode_typed(data, _shape(call, kind))
        if kind is not SCALE:
            call.resource.rules.default(decoded.value)
        return decoded.value, decoded.problems
    if not isinstance(data, dict):
        raise Undecodable("the result is not an object")
    if data.get("kind") != kind.kind or data.get("apiVersion") != kind.api_version:
        raise _other_custom(kind, data)
    given = data.get("metadata")
    if given is not None and not isinstance(given, dict):
        text = f"json: cannot unmarshal {what_is(given)} into Go value of type v1.ObjectMeta"
        raise Undecodable(text)
    metadata = decode_typed(given or {}, metadata_shape())
    unknown = [problem.replace(' field "', ' field "metadata.', 1) for problem in metadata.problems]
    obj = {**data, "metadata": metadata.value}
    try:
        dropped = call.resource.conform(obj, drop_nulls=drop_nulls) if call.resource.conform else ()
    except MalformedMetadata as error:
        raise Undecodable(str(error)) from None
    return obj, sorted([*unknown, *(f'unknown field "{path}"' for path in dropped)])


def _other_custom(kind: ResourceKind, data: Mapping[str, Any]) -> Exception:
    """Build the error for a body that states a wrong version or kind.

    `kind` is the custom kind of the request path.
    """
    metadata = data.get("metadata")
    name = str(metadata.get("name") or "") if isinstance(metadata, dict) else ""
    given, version = data.get("kind"), data.get("apiVersion")
    if not given:
        return Undecodable(f"Object 'Kind' is missing in '{encode_json(data).decode()}'")
    if given != kind.kind:
        named_kind = ResourceKind(
            kind.group, kind.version, str(given), kind.plural, "", kind.namespaced
        )
        return invalid(named_kind, name, [invalid_field("kind", given, f"must be {kind.kind}")])
    text = f"must be {kind.api_version}"
    return invalid(kind, name, [invalid_field("apiVersion", version, text)])


def read_delete_options(call: Call) -> DeleteOptions:
    """Read the options of a DELETE request from its body, or from the query if there is no body."""
    body = call.request.body
    if not body:
        return DeleteOptions.of(call.query, None)
    kind = _DELETE_OPTIONS
    try:
        content = _typed_body(call, kind)
        given = _identity_of(content).kind
        if given and given != kind.kind:
            raise bad_request(f"a {given} in the body of a deletion, expected {kind.kind}")
        decoded = decode_typed(content, shape_of("", "v1", kind.kind))
    except Undecodable as error:
        raise undecodable(kind, body, error) from None
    return DeleteOptions.of(call.query, decoded.value)
