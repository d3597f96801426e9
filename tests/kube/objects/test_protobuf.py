"""Bodies in protobuf: the same data as the JSON that Go makes of them, or a refusal."""

from __future__ import annotations

import base64
import json
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from polyver.kube.objects.builtin import builtin_kinds, shape_of
from polyver.kube.objects.protobuf import PROTOBUF_PREFIX, decode_protobuf
from polyver.kube.objects.status import ApiError
from polyver.kube.objects.type_shapes import Shape

RECORDED = json.loads(
    (Path(__file__).parents[2] / "peers" / "recorded_protobuf.json").read_text(encoding="utf-8")
)
KINDS = {(kind.api_version, kind.kind): kind for kind in builtin_kinds()}
BODIES = [base64.b64decode(each["protobuf"]) for each in RECORDED["objects"]]


def known(api_version: str, kind: str) -> Shape | None:
    if kind == "DeleteOptions":
        return shape_of("", "v1", kind)
    if kind == "TokenRequest":
        return shape_of("authentication.k8s.io", "v1", kind)
    found = KINDS.get((api_version, kind))
    return shape_of(found.group, found.version, kind) if found else None


def completed(value: Any, shape: Shape | None) -> Any:
    """A value with all that Go writes though nobody set it."""
    match value:
        case _ if shape is None:
            return value
        case dict() if shape.fields:
            whole = {**shape.absent, **value}
            return {key: completed(each, shape.fields.get(key)) for key, each in whole.items()}
        case dict():
            inner = shape.values
            if shape.format.startswith("schema-or"):
                return completed(value, inner)
            return {key: completed(each, inner) for key, each in value.items()}
        case list():
            return [completed(each, shape.items or shape.values) for each in value]
        case _:
            return value


def exact(value: object) -> str:
    """JSON in which 1, 1.0 and true are three, and the order of keys makes no difference."""
    return json.dumps(value, sort_keys=True)


def described(recorded: dict[str, Any]) -> str:
    return f"{recorded['json']['apiVersion']} {recorded['json']['kind']}"


@pytest.mark.parametrize("recorded", RECORDED["objects"], ids=described)
def test_an_object_is_what_its_json_in_go_says(recorded: dict[str, Any]) -> None:
    decoded = decode_protobuf(base64.b64decode(recorded["protobuf"]), known)
    shape = known(decoded["apiVersion"], decoded["kind"])
    assert exact(completed(decoded, shape)) == exact(recorded["json"])


def test_every_built_in_kind_was_compared() -> None:
    compared = {(each["json"]["apiVersion"], each["json"]["kind"]) for each in RECORDED["objects"]}
    assert KINDS.keys() <= compared


def fields_of(value: Any, shape: Shape | None) -> set[tuple[str, str]]:
    """The fields of types that a value has something in."""
    match value:
        case dict() if shape is not None and shape.fields:
            inside = [fields_of(each, shape.fields.get(key)) for key, each in value.items()]
            return {(shape.name, key) for key in value}.union(*inside)
        case dict() if shape is not None:
            parts = [value] if shape.format.startswith("schema-or") else value.values()
            return set().union(*(fields_of(each, shape.values) for each in parts))
        case list() if shape is not None:
            return set().union(*(fields_of(each, shape.items or shape.values) for each in value))
        case _:
            return set()


def fields_inside(shape: Shape, seen: dict[int, Shape]) -> set[tuple[str, str]]:
    """The fields of all types that a shape is made of."""
    if id(shape) in seen:
        return set()
    seen[id(shape)] = shape
    named = {(shape.name, key) for key in shape.fields}
    parts = [*shape.fields.values(), shape.values, shape.items]
    return named.union(*(fields_inside(part, seen) for part in parts if part is not None))


def test_every_field_of_every_type_was_compared() -> None:
    there: set[tuple[str, str]] = set()
    compared: set[tuple[str, str]] = set()
    for api_version, kind in KINDS:
        shape = known(api_version, kind)
        assert shape is not None
        there |= fields_inside(shape, {})
    for each in RECORDED["objects"]:
        compared |= fields_of(each["json"], known(each["json"]["apiVersion"], each["json"]["kind"]))
    assert there - compared == set()


ELSEWHERE = ("no kind", "Object '", "quantities")
"""What Go refuses for reasons that are looked at elsewhere: kinds, and values of any body."""
BROKEN = [each for each in RECORDED["broken"] if "error" in each]
BROKEN = [each for each in BROKEN if not each["error"].startswith(ELSEWHERE)]


@pytest.mark.parametrize("recorded", BROKEN, ids=lambda each: each["error"])
def test_what_go_cannot_read_is_refused_with_its_words(recorded: dict[str, Any]) -> None:
    with pytest.raises(ApiError) as refusal:
        decode_protobuf(base64.b64decode(recorded["protobuf"]), known)
    assert refusal.value.code == 400
    # Go names a field of the wrong type as its source does.
    if "wrong wireType" not in recorded["error"]:
        assert refusal.value.message == recorded["error"]


EXPECTED = [
    (b"", "the object provided is unrecognized (must be of type ConfigMap): empty data (<empty>)"),
    (
        b"garbage",
        "the object provided is unrecognized (must be of type ConfigMap): provided data does not "
        "appear to be a protobuf message, expected prefix [107 56 115 0] (67617262616765)",
    ),
    (
        b'{"apiVersion":"v1","kind":"ConfigMap"}',
        "the object provided is unrecognized (must be of type ConfigMap): provided data does not "
        "appear to be a protobuf message, expected prefix [107 56 115 0] "
        '({"apiVersion":"v1","kind":"Con ...)',
    ),
    (
        b"k8s\x00\n\x0f\n\x02v1\x12\tConfigMap\x12\x04\n\x05ab",
        'ConfigMap in version "v1" cannot be handled as a ConfigMap: unexpected EOF',
    ),
]


@pytest.mark.parametrize(("body", "text"), EXPECTED)
def test_a_refusal_names_the_kind_that_was_expected(body: bytes, text: str) -> None:
    with pytest.raises(ApiError) as refusal:
        decode_protobuf(body, known, expected="ConfigMap")
    assert refusal.value.message == text


def test_a_body_may_leave_kind_and_version_to_the_path() -> None:
    body = PROTOBUF_PREFIX + b"\x12\x09\x12\x07\n\x01k\x12\x02vv"
    decoded = decode_protobuf(body, lambda api_version, kind: known("v1", kind or "ConfigMap"))
    assert decoded == {"data": {"k": "vv"}}


def test_numbers_may_lie_together_in_one_field() -> None:
    shape = Shape("object", numbers={4: "groups"})
    shape.fields = {"groups": Shape("array", items=Shape("integer", format="int64"))}
    body = PROTOBUF_PREFIX + b"\x12\x07\x22\x03\x01\x96\x01\x20\x07"
    assert decode_protobuf(body, lambda api_version, kind: shape) == {"groups": [1, 150, 7]}


def test_messages_without_end_are_refused() -> None:
    shape = Shape("object", numbers={1: "not"})
    shape.fields = {"not": shape}
    message = b""
    for _ in range(5000):
        message = b"\n" + varint(len(message)) + message
    body = PROTOBUF_PREFIX + b"\x12" + varint(len(message)) + message
    with pytest.raises(ApiError, match="nested too deeply"):
        decode_protobuf(body, lambda api_version, kind: shape)


def varint(value: int) -> bytes:
    low, high = value & 0x7F, value >> 7
    return bytes([low | 0x80]) + varint(high) if high else bytes([low])


@given(st.binary(max_size=200), st.sampled_from(sorted(KINDS)))
def test_any_bytes_are_an_object_or_a_refusal(data: bytes, kind: tuple[str, str]) -> None:
    body = PROTOBUF_PREFIX + b"\x12" + varint(len(data)) + data
    read(body, kind)
    read(data, kind)


@given(st.sampled_from(BODIES), st.data())
def test_any_change_of_an_object_is_an_object_or_a_refusal(
    body: bytes, data: st.DataObject
) -> None:
    start = data.draw(st.integers(0, len(body)))
    end = data.draw(st.integers(start, len(body)))
    read(body[:start] + data.draw(st.binary(max_size=8)) + body[end:], ("v1", "Pod"))


def read(body: bytes, kind: tuple[str, str]) -> None:
    """Read a body, which only a refusal may stop; what comes of it is JSON."""
    with suppress(ApiError):
        decoded = decode_protobuf(body, lambda *given: known(*given) or known(*kind))
        json.dumps(decoded, allow_nan=False)
