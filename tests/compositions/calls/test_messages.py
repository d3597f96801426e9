"""The protocol's messages: as the SDK writes them, and back again without a loss."""

from __future__ import annotations

import base64
import json
import math
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import msgspec
import pytest
from google.protobuf.message import DecodeError
from google.protobuf.struct_pb2 import ListValue, Struct, Value
from google.protobuf.unknown_fields import UnknownFieldSet
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from polyver.compositions.calls import UnreadableMessage, UnwritableMessage
from polyver.compositions.calls._slow_structs import load_slowly
from polyver.compositions.calls._structs import dump_struct, load_struct
from polyver.compositions.calls.protocol import (
    decode_request,
    decode_response,
    encode_request,
    encode_response,
)
from polyver.compositions.messages import (
    Condition,
    ProtocolCapability,
    Ready,
    Request,
    RequestMeta,
    Requirements,
    Resource,
    ResourceSelector,
    Response,
    ResponseMeta,
    Result,
    SchemaSelector,
    Severity,
    State,
    Status,
    Target,
)

RECORDED = Path(__file__).parent / "recorded" / "messages.jsonl"


def recorded() -> Iterator[Any]:
    for number, line in enumerate(RECORDED.read_text().splitlines()[1:]):
        record = json.loads(line)
        content = base64.b64decode(record["bytes"])
        yield pytest.param(record["kind"], record["value"], content, id=f"{record['kind']}{number}")


@pytest.mark.parametrize(("kind", "value", "content"), list(recorded()))
def test_messages_are_written_and_read_as_the_sdk_does(
    kind: str, value: Any, content: bytes
) -> None:
    if kind == "Request":
        request = msgspec.convert(value, Request)
        assert encode_request(request) == content
        assert decode_request(content) == request
    else:
        response = msgspec.convert(value, Response)
        assert encode_response(response) == content
        assert decode_response(content) == response


# What is drawn.

texts = st.text(st.characters(exclude_categories=["Cs"]), max_size=12)
numbers = st.integers(-(2**53), 2**53) | st.floats(allow_nan=False, allow_infinity=False)
scalars = st.none() | st.booleans() | numbers | texts
values = st.recursive(
    scalars,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(texts, inner, max_size=4),
    max_leaves=20,
)
objects = st.dictionaries(texts, values, max_size=5)


def maps(inner: st.SearchStrategy[Any]) -> st.SearchStrategy[dict[str, Any]]:
    return st.dictionaries(st.sampled_from(["", "a", "b.c", "ä"]), inner, max_size=2)


def tuples(inner: st.SearchStrategy[Any]) -> st.SearchStrategy[tuple[Any, ...]]:
    return st.lists(inner, max_size=2).map(tuple)


small = st.dictionaries(texts, scalars | st.lists(scalars, max_size=2), max_size=2)
resources = st.builds(Resource, small, maps(st.binary(max_size=4)), st.sampled_from(Ready))
states = st.builds(State, resources, maps(resources))
several = maps(tuples(resources))
requests = st.builds(
    Request,
    st.builds(RequestMeta, texts, tuples(st.sampled_from(ProtocolCapability))),
    states,
    states,
    st.none() | small,
    st.none() | small,
    several,
    maps(maps(st.binary(max_size=4))),
    several,
    maps(small),
)
maybe = st.none() | texts
targets = st.sampled_from(Target)
selectors = st.builds(ResourceSelector, texts, texts, maybe, st.none(), maybe) | st.builds(
    ResourceSelector, texts, texts, st.none(), st.none() | maps(texts), maybe
)
requirements = st.builds(
    Requirements, maps(selectors), maps(selectors), maps(st.builds(SchemaSelector, texts, texts))
)
seconds = st.integers(-(10**12), 10**12).map(lambda nanos: nanos / 1e9)
responses = st.builds(
    Response,
    st.builds(ResponseMeta, texts, st.none() | seconds),
    states,
    tuples(st.builds(Result, st.sampled_from(Severity), texts, maybe, targets)),
    st.none() | small,
    requirements,
    tuples(st.builds(Condition, texts, st.sampled_from(Status), texts, maybe, targets)),
    st.none() | small,
)


@given(requests)
@settings(max_examples=50)
def test_requests_come_back_as_they_were(request: Request) -> None:
    assert decode_request(encode_request(request)) == request


@given(responses)
@settings(max_examples=50)
def test_responses_come_back_as_they_were(response: Response) -> None:
    assert decode_response(encode_response(response)) == response


def same_kinds(one: Any, other: Any) -> bool:
    """Whether numbers are integers in both or in none, unless they have no fraction."""
    match one:
        case dict():
            return all(same_kinds(inner, other[key]) for key, inner in one.items())
        case list():
            return all(same_kinds(*each) for each in zip(one, other, strict=True))
        case float():
            return not one.is_integer() or abs(one) >= 2**63 or type(other) is int
    return type(one) is type(other)


@given(objects)
def test_objects_come_back_as_they_were(value: dict[str, Any]) -> None:
    written = dump_struct(value)
    for found in (load_struct(written), load_slowly(written)):
        assert found == value
        assert same_kinds(value, found)


@given(objects)
def test_objects_are_read_and_written_as_protobuf_does(value: dict[str, Any]) -> None:
    theirs = Struct()
    theirs.update(value)
    assert Struct.FromString(dump_struct(value)) == theirs
    assert load_struct(theirs.SerializeToString()) == value


def plain(message: Struct | ListValue | Value) -> Any:
    """What protobuf has read, as plain data; ValueError for what is no JSON."""
    match message:
        case Struct():
            return {key: plain(inner) for key, inner in message.fields.items()}
        case ListValue():
            return [plain(inner) for inner in message.values]
    chosen = message.WhichOneof("kind")
    if chosen in ("struct_value", "list_value"):
        return plain(getattr(message, chosen))
    if chosen == "number_value" and not math.isfinite(message.number_value):
        raise ValueError
    return None if chosen in (None, "null_value") else getattr(message, chosen)


def has_lost_entries(message: Struct | ListValue | Value) -> bool:
    """Whether protobuf for Python took entries for unknown, since they have unknown fields.

    That for Go, and polyver, pass over the unknown fields alone.
    """
    found = UnknownFieldSet(message)
    unknown = [(found[at].field_number, found[at].wire_type) for at in range(len(found))]
    match message:
        case Struct():
            inner = list(message.fields.values())
            return (1, 2) in unknown or any(map(has_lost_entries, inner))
        case ListValue():
            return any(map(has_lost_entries, message.values))
    chosen = message.WhichOneof("kind")
    if chosen in ("struct_value", "list_value"):
        return has_lost_entries(getattr(message, chosen))
    return False


keys = st.sampled_from(["", "a", "ä", "x" * 130])
few = st.dictionaries(
    keys,
    st.recursive(
        st.none() | st.booleans() | st.sampled_from([0, -1, 2.5]) | keys,
        lambda inner: st.lists(inner, max_size=3) | st.dictionaries(keys, inner, max_size=2),
        max_leaves=6,
    ),
    max_size=2,
)


@st.composite
def spoiled(draw: st.DrawFn) -> bytes:
    """The bytes of an object, or of two, with some of them changed, added or left out."""
    content = bytearray(dump_struct(draw(few)))
    if draw(st.booleans()):
        content += dump_struct(draw(few))
    for _ in range(draw(st.integers(0, 4))):
        place = draw(st.integers(0, len(content)))
        match draw(st.integers(0, 2)):
            case 0:
                content[place : place + 1] = draw(st.binary(max_size=2))
            case 1:
                content[place:place] = draw(st.sampled_from(_INSERTED))
            case 2:
                del content[place:]
    return bytes(content)


_INSERTED = [
    b"\x12\x00",
    b"\x1a\x01x",
    b"\x22\x01x",
    b"\x0a\x00",
    b"\x0a\x02\x12\x00",
    b"\x80\x01\x05",
    b"\x11" + b"\xff" * 8,
    b"\x20\x02",
    b"\x08\x05",
    b"\x3b\x08\x01\x3c",
]
"""Fields that are unknown, empty, there twice, or not what they should be."""


@given(spoiled())
@settings(max_examples=300)
def test_spoiled_objects_are_read_as_protobuf_reads_them(content: bytes) -> None:
    try:
        read = Struct.FromString(content)
        theirs = plain(read)
    except (DecodeError, ValueError):
        with suppress(UnreadableMessage):
            load_struct(content)
    else:
        assume(not has_lost_entries(read))
        assert load_struct(content) == theirs


@given(st.binary(max_size=60) | spoiled())
@settings(max_examples=300)
def test_any_bytes_are_an_answer_or_an_error(content: bytes) -> None:
    for framed in (content, b"\x12" + bytes([len(content) & 0x7F]) + content):
        with suppress(UnreadableMessage):
            assert isinstance(decode_response(framed), Response)


def test_unknown_fields_and_numbers_without_a_name_are_no_error() -> None:
    newer = b"\xf8\x07\x01" + b"\x1a\x04\x08\x63\x20\x63" + b"\x9a\x06\x02hi" + b"\x0d\0\0\0\0"
    (result,) = decode_response(newer).results
    assert (result.severity, result.target) == (0, 0)


def test_the_last_of_two_that_exclude_each_other_counts() -> None:
    name, labels = b"\x1a\x01n", b"\x22\x06\x0a\x04\x0a\x02ab"
    for first, second in ((name, labels), (labels, name)):
        entry = b"\x0a\x01k\x12" + bytes([len(first + second)]) + first + second
        requirements = b"\x12" + bytes([len(entry)]) + entry
        found = decode_response(b"\x2a" + bytes([len(requirements)]) + requirements)
        selector = found.requirements.resources["k"]
        assert (selector.match_name is None) == (second is labels)
        assert (selector.match_labels is None) == (second is name)


@pytest.mark.parametrize(
    ("value", "at", "problem"),
    [
        (2**53 + 1, "a.b[1]", "9007199254740993 cannot be sent"),
        (-(2**53) - 1, "a.b[1]", "cannot be sent"),
        (10**400, "a.b[1]", "cannot be sent"),
        (math.nan, "a.b[1]", "nan cannot be expressed in JSON"),
        (-math.inf, "a.b[1]", "-inf cannot be expressed in JSON"),
        (b"x", "a.b[1]", "a bytes cannot be expressed in JSON"),
        ("\ud800", "a.b[1]", "half of a surrogate pair"),
        ({1: 2}, "a.b[1].1", "a int cannot be a key in JSON"),
    ],
)
def test_what_cannot_be_sent_is_refused_with_its_place(value: Any, at: str, problem: str) -> None:
    observed = State(resources={"x.y": Resource({"a": {"b": [0, value]}})})
    with pytest.raises(UnwritableMessage, match=problem) as raised:
        encode_request(Request(observed=observed))
    assert raised.value.at == f"observed.resources[x.y].resource.{at}"


def test_an_answer_that_is_wrong_inside_is_refused_with_its_place() -> None:
    good = encode_response(Response(desired=State(resources={"b": Resource({"a": [1, 2.5]})})))
    bad = good.replace(b"\x00\x00\x00\x00\x00\x00\x04@", b"\x00\x00\x00\x00\x00\x00\xf0\x7f")
    with pytest.raises(UnreadableMessage, match="inf cannot be expressed in JSON") as raised:
        decode_response(bad)
    assert raised.value.at == "desired.resources[b].resource.a[1]"


@pytest.mark.parametrize("opened", ["list", "object"])
def test_what_is_nested_too_deeply_is_refused_both_ways(opened: str) -> None:
    def nested(depth: int) -> Any:
        value: Any = 1
        for _ in range(depth):
            value = [value] if opened == "list" else {"a": value}
        return {"a": value}

    assert load_struct(dump_struct(nested(199))) == nested(199)
    with pytest.raises(UnreadableMessage, match="nested too deeply"):
        load_struct(dump_struct(nested(210)))
    with pytest.raises(UnwritableMessage, match="nested too deeply"):
        dump_struct(nested(20_000))
    hostile = b""
    for _ in range(3000):
        hostile = b"\x2a" + _sized(b"\x0a" + _sized(b"\x0a\x01a\x12" + _sized(hostile)))
    with pytest.raises(UnreadableMessage, match="nested too deeply"):
        load_struct(b"\x0a" + _sized(b"\x0a\x01a\x12" + _sized(hostile)))


def _sized(content: bytes) -> bytes:
    size, parts = len(content), bytearray()
    while size > 0x7F:
        parts.append(size & 0x7F | 0x80)
        size >>= 7
    return bytes([*parts, size]) + content
