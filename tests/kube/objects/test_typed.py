"""Bodies of requests: read as a real server reads them, which is recorded, whatever they are."""

from __future__ import annotations

import base64
import json
from contextlib import suppress
from datetime import UTC, datetime, timedelta, timezone
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from polyver.kube.objects.builtin import builtin_kinds, shape_of
from polyver.kube.objects.kinds import ResourceKind
from polyver.kube.objects.type_shapes import Shape
from polyver.kube.objects.typed_bodies import (
    DEEPEST,
    Undecodable,
    decode_plain,
    decode_typed,
    read_yaml,
    strictly_refused,
    undecodable,
)
from polyver.languages.values.canonical_values import base64_problem, micro_time, quantity, time

RECORDED: list[dict[str, Any]] = json.loads(
    Path(__file__).with_name("recorded_typed.json").read_text()
)
KINDS = {kind.plural: kind for kind in reversed(builtin_kinds())}
CONFIG_MAP = shape_of("", "v1", "ConfigMap")


def asked(answer: dict[str, Any]) -> tuple[ResourceKind, Shape, bytes]:
    kind = KINDS[answer["resource"]]
    return kind, shape_of(kind.group, kind.version, kind.kind), answer["body"].encode()


def with_status(status: int) -> list[Any]:
    found = [answer for answer in RECORDED if answer["status"] == status]
    assert len(found) > 70
    return [pytest.param(each, id=f"{each['resource']} {each['body'][:60]}") for each in found]


@pytest.mark.parametrize("answer", with_status(400))
def test_a_body_is_refused_in_the_real_servers_words(answer: dict[str, Any]) -> None:
    kind, shape, body = asked(answer)
    with pytest.raises(Undecodable) as refused:
        decode_typed(body, shape)
    assert undecodable(kind, body, refused.value).message == answer["message"]


@pytest.mark.parametrize("answer", with_status(201))
def test_a_body_becomes_what_the_real_server_replies(answer: dict[str, Any]) -> None:
    kind, shape, body = asked(answer)
    decoded = decode_typed(body, shape)
    value = decoded.value | {"apiVersion": kind.api_version, "kind": kind.kind}
    if kind.kind == "CustomResourceDefinition":
        del value["status"]  # the real server writes it at once
    assert value == answer["value"]
    assert list(decoded.problems) == answer["problems"]


@pytest.mark.parametrize("answer", with_status(201))
def test_what_was_read_is_read_again_as_it_is(answer: dict[str, Any]) -> None:
    _, shape, body = asked(answer)
    value = decode_typed(body, shape).value
    again = decode_typed(value, shape)
    assert (again.value, again.problems) == (value, ())
    assert decode_typed(json.dumps(value).encode(), shape).value == value


def test_replies_share_nothing_with_each_other() -> None:
    service = shape_of("", "v1", "Service")
    decode_typed(b"{}", service).value["status"]["loadBalancer"]["ingress"] = []
    assert decode_typed(b"{}", service).value["status"] == {"loadBalancer": {}}


def test_strictness_names_all_problems() -> None:
    body = b'{"metadata":{"what":1},"data":{"k":"1","k":"2"},"zzz":1}'
    problems = decode_typed(body, CONFIG_MAP).problems
    assert strictly_refused(KINDS["configmaps"], problems).message == (
        'ConfigMap in version "v1" cannot be handled as a ConfigMap: strict decoding error: '
        'unknown field "metadata.what", duplicate field "data.k", unknown field "zzz"'
    )


def test_no_more_than_a_hundred_problems_are_told() -> None:
    body = json.dumps({f"f{number}": 1 for number in range(300)}).encode()
    assert len(decode_typed(body, CONFIG_MAP).problems) == 100


@pytest.mark.parametrize(
    ("text", "value", "problems"),
    [
        ('{"a":{"b":1,"b":2}}', {"a": {"b": 2}}, ['duplicate field "a.b"']),
        (
            '{"a":[{"b":1},{"b":1,"b":{}}]}',
            {"a": [{"b": 1}, {"b": {}}]},
            ['duplicate field "a[1].b"'],
        ),
        ('{"a":1,"a":1,"a":1}', {"a": 1}, ['duplicate field "a"']),
        ('{"a":5.0,"b":1e3,"c":-0,"d":1.50}', {"a": 5, "b": 1000, "c": 0, "d": 1.5}, []),
        ('{"a":9223372036854775807}', {"a": 9223372036854775807}, []),
        ('{"a":null}', {"a": None}, []),
    ],
)
def test_a_custom_kind_is_read_as_it_is(text: str, value: Any, problems: list[str]) -> None:
    found, told = decode_plain(text.encode())
    assert (found, list(told)) == (value, problems)
    assert [type(each) for each in found.values()] == [type(each) for each in value.values()]


def test_a_number_that_64_bits_cannot_count_is_a_float() -> None:
    found, _ = decode_plain(b'{"a":99999999999999999999}')
    assert isinstance(found["a"], float)
    assert found["a"] == 1e20


def test_a_number_that_64_bits_cannot_hold_is_refused() -> None:
    with pytest.raises(Undecodable, match="cannot unmarshal number 1e400 into Go value of type"):
        decode_plain(b'{"a":1e400}')


def nested(depth: int, opening: str, closing: str) -> bytes:
    return f'{{"zzz":{opening * (depth - 1)}{closing * (depth - 1)}}}'.encode()


@pytest.mark.parametrize("depth", [DEEPEST + 1, 1_000, 10_000, 100_000])
@pytest.mark.parametrize(("opening", "closing"), [("[", "]"), ('{"a":', "}")])
def test_what_nests_too_deep_is_refused(depth: int, opening: str, closing: str) -> None:
    body = nested(depth, opening, closing).replace(b":}", b":1}")
    expected = f"invalid character '{opening[0]}' exceeded max depth"
    for read in (decode_plain, lambda body: decode_typed(body, CONFIG_MAP)):
        with pytest.raises(Undecodable) as refused:
            read(body)
        assert str(refused.value) == expected


def test_what_nests_as_deep_as_it_may_is_read() -> None:
    body = nested(DEEPEST, "[", "]")
    assert decode_plain(body)[0] == json.loads(body)
    assert decode_typed(body, CONFIG_MAP).problems == ('unknown field "zzz"',)


def test_of_yaml_the_first_document_counts() -> None:
    body = b"kind: ConfigMap\ndata: {b: z, a: x}\nzzz: 1\nAAA: 2\n---\nkind: Secret\n"
    decoded = decode_typed(read_yaml(body)[0], CONFIG_MAP)
    assert decoded.value["data"] == {"a": "x", "b": "z"}
    assert decoded.problems == ('unknown field "AAA"', 'unknown field "zzz"')


@pytest.mark.parametrize(
    ("body", "problem"),
    [
        (b"a: [1", "yaml: line 1: did not find expected ',' or ']'"),
        (b"\xff", "yaml: invalid leading UTF-8 octet"),
    ],
)
def test_yaml_that_is_none_is_refused(body: bytes, problem: str) -> None:
    with pytest.raises(Undecodable) as caught:
        read_yaml(body)
    assert str(caught.value) == problem


def test_of_a_key_that_is_there_twice_in_yaml_the_last_one_counts() -> None:
    told = 'yaml: unmarshal errors:\n  line 2: key "a" already set in map'
    assert read_yaml(b"a: 1\na: 2") == ({"a": 2}, [told])


# Numbers that Go prints as they are written.
floats = st.floats(allow_nan=False, allow_infinity=False).filter(lambda each: each % 1 != 0)
integers = st.integers(-(1 << 63), (1 << 63) - 1)
scalars = st.none() | st.booleans() | st.text() | integers | floats
values = st.recursive(
    scalars, lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner), max_leaves=8
)
objects = st.dictionaries(st.sampled_from(["spec", "é", "x y", '"', "\n"]), values)


@given(objects, st.booleans(), st.sampled_from([None, 1]))
def test_plain_data_is_read_as_it_was_written(value: Any, ascii_only: bool, indent: Any) -> None:
    body = json.dumps(value, ensure_ascii=ascii_only, indent=indent)
    assert decode_plain(body.encode()) == (value, ())


@given(st.binary() | st.text(alphabet='{}[]",:\\u0d1e.-tfn \n').map(str.encode))
def test_whatever_is_sent_is_read_or_refused(body: bytes) -> None:
    for read in (decode_plain, lambda body: decode_typed(body, CONFIG_MAP), read_yaml):
        with suppress(Undecodable):
            read(body)


@given(st.text(alphabet='{}[]",:\\u0d1e.-tfn \n', max_size=12))
def test_a_text_is_refused_if_it_is_no_json(text: str) -> None:
    try:
        json.loads(text)
    except ValueError:
        with pytest.raises(Undecodable, match=r"invalid character '|unexpected end of JSON input"):
            decode_plain(text.encode())


@given(
    st.decimals(-(10**9), 10**9, places=6),
    st.sampled_from(["", "n", "u", "m", "k", "M", "G", "Ki", "Mi", "Gi", "e3", "E-2"]),
)
def test_a_quantity_keeps_its_worth_and_its_form(number: Decimal, suffix: str) -> None:
    found = quantity(f"{number}{suffix}")
    assert quantity(found) == found
    if suffix not in ("n", "u"):  # what is less than a billionth is rounded up
        assert worth(found) == worth(f"{number}{suffix}")


def test_a_binary_quantity_is_no_more_than_64_bits_count() -> None:
    assert quantity("1000000000000Gi") == "9223372036854775807"


def worth(text: str) -> Decimal:
    digits = text.rstrip("numkKMGTPEi")
    suffix = text[len(digits) :]
    if "e" in digits or "E" in digits:
        return Decimal(digits)
    powers = {"Ki": 2**10, "Mi": 2**20, "Gi": 2**30, "Ti": 2**40, "Pi": 2**50, "Ei": 2**60}
    thousands = dict(zip("numkMGTPE", (-9, -6, -3, 3, 6, 9, 12, 15, 18), strict=True))
    return Decimal(digits) * (powers.get(suffix) or Decimal(10) ** thousands.get(suffix, 0))


@given(
    st.datetimes(datetime(1000, 1, 1), datetime(9000, 1, 1)),
    st.integers(-14 * 60, 14 * 60).map(lambda minutes: timezone(timedelta(minutes=minutes))),
)
def test_a_time_is_the_same_moment_in_utc(moment: datetime, zone: timezone) -> None:
    moment = moment.replace(tzinfo=UTC)
    local = moment.astimezone(zone)
    second = moment.replace(microsecond=0)
    assert time(local.isoformat()) == second.isoformat().replace("+00:00", "Z")
    micro = micro_time(local.isoformat(timespec="microseconds"))
    assert micro == moment.isoformat(timespec="microseconds").replace("+00:00", "Z")


@given(st.binary())
def test_bytes_in_base64_come_back(content: bytes) -> None:
    text = base64.b64encode(content).decode()
    assert base64_problem(text) == ""
    body = json.dumps({"binaryData": {"a": text}}).encode()
    assert decode_typed(body, CONFIG_MAP).value["binaryData"] == {"a": text}
