"""ConversionReviews: builds the request to a webhook, and checks the answer.

As in kube-apiserver, each review contains one object; errors have the wording of kube-apiserver. If
the object that a client sends cannot be converted, the client gets the error of the conversion. If
a stored object cannot be converted, the client gets an error that `unreadable`, `unreadable_update`
or `unreadable_list` builds.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NoReturn

import msgspec

from polyver.core import PolyverError
from polyver.core.plain import Object
from polyver.kube.objects import encode_json
from polyver.kube.objects.converted_metadata import (
    InvalidMetadata,
    InvalidObject,
    check_identity,
    restored,
)
from polyver.kube.objects.kinds import ResourceKind
from polyver.kube.objects.status import ApiError, internal
from polyver.kube.objects.type_shapes import Shape
from polyver.kube.objects.typed_bodies import Undecodable, decode_plain, decode_typed, read_yaml
from polyver.languages.values.strings import quoted

__all__ = [
    "ConversionRequest",
    "UnreadableObject",
    "WebhookCallFailed",
    "failure",
    "parsed",
    "refuse_others",
    "review_version",
    "unreadable",
    "unreadable_list",
    "unreadable_update",
]

GROUP = "apiextensions.k8s.io"
KIND = "ConversionReview"
_KNOWN_VERSIONS = ("v1", "v1beta1")


class WebhookCallFailed(PolyverError):
    """Raised if a call of a webhook gets no usable answer; the message states why."""


def failure(text: str) -> ApiError:
    """Build the error for a failed conversion. It has no reason and no details."""
    return ApiError(500, "", text)


def review_version(accepted: Sequence[str]) -> str:
    """Return the first review version that the webhook accepts and this server supports.

    >>> review_version(["v9", "v1beta1", "v1"])
    'v1beta1'
    """
    known = next((each for each in accepted if each in _KNOWN_VERSIONS), None)
    if known is None:
        raise failure("no supported conversion review versions")
    return known


@dataclass(frozen=True, slots=True)
class ConversionRequest:
    """One request to a webhook: an object, and the version to which the webhook must convert it."""

    obj: Object
    wanted: str
    uid: str
    version: str = "v1"
    """The version of the ConversionReview, not of the object."""

    @property
    def body(self) -> bytes:
        """Encode the ConversionReview for the webhook.

        The object in it has no resourceVersion, because conversions do not need it.
        """
        metadata = self.obj.get("metadata")
        sent = self.obj
        if isinstance(metadata, dict) and "resourceVersion" in metadata:
            rest = {key: each for key, each in metadata.items() if key != "resourceVersion"}
            sent = self.obj | {"metadata": rest}
        request = {"uid": self.uid, "desiredAPIVersion": self.wanted, "objects": [sent]}
        empty: Object = {"uid": "", "convertedObjects": None, "result": {"metadata": {}}}
        version = f"{GROUP}/{self.version}"
        return encode_json(
            {"kind": KIND, "apiVersion": version, "request": request, "response": empty}
        )

    @property
    def source(self) -> str:
        """The text with which every error message about this request begins."""
        return source_of(self.obj)

    def converted(self, body: bytes) -> Object:
        """Return the converted object in an answer; raise ApiError if there is none.

        Metadata that a conversion must not change is taken from the original object.
        """
        try:
            objects = self._objects(body)
        except WebhookCallFailed as error:
            raise failure(f"{self.source} failed: {error}") from None
        if len(objects) != 1:
            raise failure(f"{self.source} returned {len(objects)} objects, expected 1")
        found = self._object(objects[0])
        return accepted(self.obj, found)

    def _objects(self, body: bytes) -> Sequence[bytes]:
        answer, problem = _read(body)
        group_version = _parsed_version(answer.api_version or "")
        refuse_others(answer.api_version or "", answer.kind or "", GROUP, self.version, KIND)
        if problem:
            raise WebhookCallFailed(problem)
        if self.version == "v1" and (*group_version, answer.kind) != (GROUP, "v1", KIND):
            expected, found = (
                f"{GROUP}/v1, Kind={KIND}",
                f"{'/'.join(group_version)}, Kind={answer.kind or ''}",
            )
            raise WebhookCallFailed(f"expected webhook response of {expected}, got {found}")
        if answer.response is None:
            raise WebhookCallFailed("no response provided")
        if self.version == "v1" and answer.response.uid != self.uid:
            found = quoted(answer.response.uid or "")
            raise WebhookCallFailed(f"expected response.uid={quoted(self.uid)}, got {found}")
        result = answer.response.result or _Result()
        if result.status != "Success":
            problem = f"response.result.status was '{result.status or ''}', not 'Success'"
            raise WebhookCallFailed(result.message or problem)
        return [bytes(raw) for raw in answer.response.converted_objects or ()]

    def _object(self, raw: bytes) -> Object:
        """Check the kind and version of an object in an answer, then decode the object."""
        check_kind(self.obj, self.wanted, *_identity_of(raw))
        try:
            found: Object = decode_plain(raw)[0]
        except Undecodable as error:
            raise failure(str(error)) from None
        return found


def source_of(obj: Object) -> str:
    """Return the name of an object's conversion webhook for error messages.

    An example is `conversion webhook for ex.io/v1, Kind=Widget`.
    """
    return f"conversion webhook for {obj.get('apiVersion', '')}, Kind={obj.get('kind', '')}"


def check_kind(original: Object, wanted: str, version: str, kind: str) -> None:
    """Raise an error if a converted object has another version than `wanted`, or another kind."""
    if version != wanted:
        problem = f"invalid groupVersion (expected {wanted}, received {version})"
    elif kind != original.get("kind"):
        problem = f"invalid kind (expected {original.get('kind')}, received {kind})"
    else:
        return
    raise failure(f"{source_of(original)} returned invalid object at index 0: {problem}")


def accepted(original: Object, converted: Object) -> Object:
    """Return the converted object; metadata that a conversion must not change is restored.

    Raise an error if the name, the namespace or the uid changed.
    """
    source = source_of(original)
    try:
        check_identity(original, converted)
        metadata = restored(original.get("metadata") or {}, converted.get("metadata"))
    except InvalidObject as error:
        raise failure(f"{source} returned invalid object: {error}") from None
    except InvalidMetadata as error:
        raise failure(f"{source} returned invalid metadata: {error}") from None
    return {**converted, "metadata": metadata}


class _Result(msgspec.Struct):
    status: str | None = None
    message: str | None = None


class _Response(msgspec.Struct, rename="camel"):
    uid: str | None = None
    result: _Result | None = None
    converted_objects: list[msgspec.Raw] | None = None


class _Answer(msgspec.Struct, rename="camel"):
    api_version: str | None = None
    kind: str | None = None
    response: _Response | None = None


_answer = msgspec.json.Decoder(_Answer)


def _read(body: bytes) -> tuple[_Answer, str]:
    """Decode an answer; return it with the error message for its content, or "" if it is valid.

    The caller first checks the kind of the answer, and then raises this error.
    """
    try:
        return _answer.decode(body), ""
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
        return _read_slowly(body)


def _read_slowly(body: bytes) -> tuple[_Answer, str]:
    """Decode an answer that the fast decoder has refused; the answer may be YAML."""
    value = parsed(body)
    try:
        decode_typed(value, _SHAPE)
    except Undecodable as error:
        return _Answer(value.get("apiVersion"), value.get("kind")), str(error)
    return _answer.decode(encode_json(value)), ""


def parsed(body: bytes) -> dict[str, Any]:
    """Decode an answer, which is JSON or YAML, to plain data."""
    try:
        # A body that does not begin like a JSON object is read as YAML.
        text = body if body.lstrip()[:1] == b"{" else encode_json(read_yaml(body)[0])
    except Undecodable as error:
        raise WebhookCallFailed(str(error)) from None
    try:
        found: dict[str, Any] | None = decode_plain(text)[0]
    except Undecodable as error:
        raise WebhookCallFailed(f"couldn't get version/kind; json parse error: {error}") from None
    return found or {}


_TEXT = Shape(type="string", name="string")
_RESULT = Shape(
    type="object", name="v1.Status", fields={"status": _TEXT, "message": _TEXT}, preserves=True
)
_RESPONSE = Shape(
    type="object",
    name="v1.ConversionResponse",
    fields={
        "uid": Shape(type="string", name="types.UID"),
        "result": _RESULT,
        "convertedObjects": Shape(
            type="array", name="[]runtime.RawExtension", items=Shape(format="json")
        ),
    },
)
_SHAPE = Shape(
    type="object",
    name="v1.ConversionReview",
    fields={"apiVersion": _TEXT, "kind": _TEXT, "response": _RESPONSE},
)


def _parsed_version(text: str) -> tuple[str, str]:
    """Split an apiVersion into group and version."""
    if text.count("/") > 1:
        raise WebhookCallFailed(f"unexpected GroupVersion string: {text}")
    group, _, version = text.rpartition("/")
    return group, version


_REGISTERED = {
    GROUP: (KIND, "CustomResourceDefinition", "CustomResourceDefinitionList"),
    "admission.k8s.io": ("AdmissionReview",),
}


def refuse_others(api_version: str, kind: str, group: str, version: str, expected: str) -> None:
    """Raise an error if an answer has another version or kind than the expected ones.

    An answer without version and kind is allowed.
    """
    wanted = f"{group}/{version}"
    api_version, kind = api_version or wanted, kind or expected
    if (api_version, kind) == (wanted, expected):
        return
    own, _, short = api_version.rpartition("/")
    known = own == group and short in _KNOWN_VERSIONS and kind in _REGISTERED[group]
    if not known and (api_version, kind) != ("v1", "Status"):
        scheme = '"pkg/runtime/scheme.go:111"'
        text = f'no kind "{kind}" is registered for version "{api_version}" in scheme {scheme}'
        raise WebhookCallFailed(text)
    raise WebhookCallFailed(
        f"converting ({short}.{kind}) to ({version}.{expected}): unknown conversion"
    )


class _Identity(msgspec.Struct, rename="camel"):
    api_version: object = None
    kind: object = None


_identity = msgspec.json.Decoder(_Identity)
_STARTS = {'"': "string", "[": "array", "t": "bool", "f": "bool"}


def _identity_of(raw: bytes) -> tuple[str, str]:
    """Read the version and the kind of a converted object, without decoding the rest."""
    if raw == b"null":
        raise failure("unexpected end of JSON input")
    try:
        identity = _identity.decode(raw)
    except msgspec.ValidationError:
        found = _STARTS.get(chr(raw[0]), "number")
        text = f"json: cannot unmarshal {found} into Go value of type map[string]interface {{}}"
        raise failure(text) from None
    except RecursionError:
        raise failure("exceeded max depth") from None
    version = identity.api_version if isinstance(identity.api_version, str) else ""
    if not isinstance(identity.kind, str) or not identity.kind or version.count("/") > 1:
        _refuse_kindless(raw)
    return version, identity.kind


def _refuse_kindless(raw: bytes) -> NoReturn:
    text = raw.decode(errors="replace")
    raise failure(f"Object 'Kind' is missing in '{text}'")


_MOST_REPORTED = 100


@dataclass(frozen=True, slots=True)
class UnreadableObject:
    """A stored object that cannot be converted, and the error of its conversion."""

    namespace: str
    name: str
    revision: int
    problem: ApiError

    def key(self, kind: ResourceKind) -> str:
        """Return the key under which kube-apiserver would store the object in etcd."""
        parts = (kind.group, kind.plural, self.namespace, self.name)
        return "".join(f"/{part}" for part in parts if part)

    def text(self, key: str) -> str:
        about = f"Code: 7, Key: {key}, ResourceVersion: 0, AdditionalErrorMsg: {self.undecodable}"
        return f"StorageError: corrupt object, {about}"

    @property
    def undecodable(self) -> str:
        return f"object not decodable revision={self.revision}: {self.problem.message}"


def unreadable(kind: ResourceKind, found: UnreadableObject) -> ApiError:
    """Build the error for a GET, DELETE or deletecollection of an object that is unreadable.

    An object is unreadable if it cannot be converted from its stored version.
    """
    return internal(found.text(found.key(kind)))


def unreadable_update(found: UnreadableObject) -> ApiError:
    """Build the error for a write if the stored object cannot be converted.

    The write itself may have succeeded: the answer to the write also needs a conversion.
    """
    return failure(found.undecodable)


def unreadable_list(kind: ResourceKind, found: Sequence[UnreadableObject]) -> ApiError:
    """Build the error for a list or deletecollection with objects that cannot be converted.

    The message contains the first problem. The causes contain up to 100 problems.
    """
    reported = found[:_MOST_REPORTED]
    texts = {f"/registry{each.key(kind)}": each for each in reported}
    causes: list[dict[str, Any]] = [
        {"reason": "UnexpectedServerResponse", "message": each.text(key), "field": key}
        for key, each in texts.items()
    ]
    message = f"failed to read one or more {kind.resource} from the storage: {causes[0]['message']}"
    more = f" (and {len(reported) - 1} more)" if len(reported) > 1 else ""
    if len(found) >= _MOST_REPORTED:
        text = "too many errors, the list is truncated"
        causes.append({"reason": "FieldValueTooMany", "message": text})
    details = {"name": "list", "group": kind.group, "kind": kind.plural, "causes": causes}
    return ApiError(500, "StorageReadError", message + more, details=details)
