"""Manifests: read as kubectl reads them, written so that they are read back, errors located."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import Struct

from polyver.kube.objects import InvalidManifest, digest, dump_yaml, encode_json, load_manifests

RECORDED = json.loads((Path(__file__).parents[1] / "peers" / "recorded.json").read_text())["yaml"]

# Where we differ from kubectl's library on purpose.
KNOWN_DIFFERENCES = {
    '"a\\/b"': "our YAML parser knows the escape, and JSON has it",
}


def identical(one: Any, other: Any) -> bool:
    """Equal, and of the same JSON type: 1 is not true, and not "1"."""
    if isinstance(one, dict) and isinstance(other, dict):
        return one.keys() == other.keys() and all(identical(one[k], other[k]) for k in one)
    if isinstance(one, list) and isinstance(other, list):
        return len(one) == len(other) and all(map(identical, one, other))
    return type(one) is type(other) and one == other


@pytest.mark.parametrize("answer", RECORDED, ids=lambda answer: repr(answer["text"]))
def test_yaml_is_read_as_kubectl_reads_it(answer: dict[str, Any]) -> None:
    try:
        documents = load_manifests(answer["text"], "x.yaml")
        same = not answer.get("error") and identical(
            documents[0].value if documents else None, answer["value"]
        )
    except InvalidManifest:
        same = bool(answer.get("error"))
    assert same is (answer["text"] not in KNOWN_DIFFERENCES)


texts = st.one_of(
    st.text(),
    st.sampled_from([answer["text"] for answer in RECORDED]),
    st.from_regex(r"[-+0-9a-fxobeE_.:]{1,8}", fullmatch=True),
)
json_values = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**63), 2**64 - 1)
    # Whole numbers beyond 53 bits are written as JSON shows them: rounded, with zeros at the end.
    | st.floats(-(2.0**53), 2.0**53)
    | texts,
    lambda inner: st.lists(inner) | st.dictionaries(texts, inner),
    max_leaves=12,
)


@given(json_values.filter(lambda value: value is not None))
def test_what_is_written_is_read_back(value: object) -> None:
    written = dump_yaml(value)
    [document] = load_manifests(written, "x.yaml")
    assert document.value == value
    assert "!!" not in written.replace("'", "").replace('"', "") or "!!" in str(value)


@given(json_values.filter(lambda value: isinstance(value, dict | list)))
def test_json_is_yaml(value: object) -> None:
    [document] = load_manifests(encode_json(value).decode(), "x.json")
    assert document.value == value


@given(st.text() | st.text("[]{}:,&*!|>-?'\"#%@` \n\tab<"))
def test_no_text_is_read_with_anything_but_a_located_error(text: str) -> None:
    try:
        load_manifests(text, "x.yaml")
    except InvalidManifest as error:
        assert error.at.startswith("x.yaml:")  # noqa: PT017 - any text may also be valid


def test_a_doubled_key_is_refused_in_json_too() -> None:
    with pytest.raises(InvalidManifest, match='duplicate key "a", first in line 1'):
        load_manifests('{"a": 1,\n"a": 2}', "x.json")


def test_json_that_yaml_cannot_read_is_checked_as_well() -> None:
    smile = '"\\ud83d\\ude00"'
    with pytest.raises(InvalidManifest, match=r'duplicate key "a" \(x\.json\)'):
        load_manifests(f'{{"s": {smile}, "o": {{"a": 1, "a": 2}}}}', "x.json")
    with pytest.raises(InvalidManifest, match="nested deeper than 200"):
        load_manifests(f'{{"s": {smile}, "o": {"[" * 300}{"]" * 300}}}', "x.json")
    with pytest.raises(InvalidManifest, match="not YAML"):
        load_manifests(f'{{"s": {smile}, "n": Infinity}}', "x.json")


def test_json_and_yaml_of_the_same_content_are_the_same() -> None:
    [as_json] = load_manifests('{"a": 1.0, "b": 1e2, "c": 18446744073709551616}', "x.json")
    [as_yaml] = load_manifests("a: 1.0\nb: 1e2\nc: 18446744073709551616", "x.yaml")
    assert identical(as_json.value, as_yaml.value)
    assert digest(as_json.value) == digest(as_yaml.value)


def test_json_knows_its_lines() -> None:
    [document] = load_manifests('{\n "a": {\n  "b": 1}}', "x.json")
    assert document.place("a", "b") == "x.json:3, a.b"


@pytest.mark.parametrize(
    "text", ["a: " + "9" * 5000, '{"a": ' + "9" * 5000 + "}", "9" * 5000 + ": a"]
)
def test_a_number_of_any_length_is_read(text: str) -> None:
    try:
        load_manifests(text, "x")
    except InvalidManifest as error:
        assert "not YAML" in str(error)  # noqa: PT017


def test_an_anchor_ends_with_its_document() -> None:
    with pytest.raises(InvalidManifest, match=r"\*x has no &x before it \(x:3\)"):
        load_manifests("a: &x 1\n---\nb: *x", "x")


def test_whether_a_key_was_text_is_known() -> None:
    [document] = load_manifests("a: {1.10: x, '1.10.0': y, yes: z}", "x")
    assert document.key_was_text("a")
    assert not document.key_was_text("a", "1.1")
    assert document.key_was_text("a", "1.10.0")
    assert not document.key_was_text("a", "true")


def test_documents_are_separate_and_empty_ones_left_out() -> None:
    documents = load_manifests("---\n---\na: 1\n---\n# nothing\n---\nb: &x 2\n--- *x\n"[:-8], "x")
    assert [document.value for document in documents] == [{"a": 1}, {"b": 2}]


def test_a_merge_is_beneath_what_the_mapping_says_itself() -> None:
    text = "base: &base {a: 1, b: 2}\nother: &other {b: 3, c: 4}\nx: {<<: [*base, *other], a: 5}"
    [document] = load_manifests(text, "x")
    assert isinstance(document.value, dict)
    assert document.value["x"] == {"a": 5, "b": 2, "c": 4}


BOMB = "a: &a [x,x,x,x,x,x,x,x,x,x]\n" + "".join(
    f"{name}: &{name} [{','.join([f'*{before}'] * 10)}]\n"
    for before, name in zip("abcdefgh", "bcdefghi", strict=True)
)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("a: 1\nb: 2\na: 3", 'duplicate key "a", first in line 1 (x.yaml:3)'),
        ("a: 1\n\nb: *c", "*c has no &c before it (x.yaml:3)"),
        ("a:\n  - [", "not YAML: did not find expected node content (x.yaml:3)"),
        ("a: 1\nb: .inf", ".inf is a number that JSON does not have (x.yaml:2)"),
        ("? [a]\n: 1", "a key is a mapping or a list, expected a string (x.yaml:1)"),
        ("a: 1\n~: 1", "a key is null, expected a string (x.yaml:2)"),
        ("<<: 3", "<< needs a mapping or a list of mappings (x.yaml:1)"),
        ("a: \x07", "not YAML: unacceptable character"),
        ("a: \ud800", "not YAML: "),
        ("[" * 100_000, "nested deeper than 200 levels (x.yaml:1)"),
        ('{"a":' * 100_000, "nested deeper than 200 levels (x.yaml:1)"),
        (BOMB, "aliases stand for more than can be read (x.yaml:"),
        (f"a: &a {'x' * 1000}\nb: [{'*a,' * 1000}]", "aliases stand for more than can be read"),
        ("%YAML 1.2\n--- a", "the document is not YAML 1.1"),
    ],
)
def test_what_cannot_be_read_is_refused_with_its_line(text: str, message: str) -> None:
    with pytest.raises(InvalidManifest) as caught:
        load_manifests(text, "x.yaml")
    assert message in str(caught.value)


class Item(Struct):
    version: str


class Spec(Struct):
    versions: list[Item]
    size: int = 0
    labels: dict[str, str] = {}


class Object(Struct):
    spec: Spec


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (
            "spec:\n  versions:\n  - version: 1.2",
            "expected a string, got a number (x.yaml:3, spec.versions[0].version);"
            " put it in quotes",
        ),
        ("spec:\n  versions: {}", "expected a list, got a mapping (x.yaml:2, spec.versions)"),
        (
            "spec:\n  versions:\n  - {}",
            '"version" is missing (x.yaml:3, spec.versions[0])',
        ),
        ("a: 1\nspec:", "expected a mapping, got null (x.yaml:2, spec)"),
        (
            "spec:\n  versions: []\n  size: 1.5",
            "expected an integer, got a number (x.yaml:3, spec.size)",
        ),
        (
            "spec:\n  versions: []\n  labels:\n    a: x\n    b: 1",
            "expected a string, got an integer (x.yaml:5, spec.labels.b); put it in quotes",
        ),
        ("[1]", "expected a mapping, got a list (x.yaml:1)"),
    ],
)
def test_a_wrong_type_is_named_with_line_and_field(text: str, message: str) -> None:
    [document] = load_manifests(text, "x.yaml")
    with pytest.raises(InvalidManifest) as caught:
        document.read(Object)
    assert str(caught.value) == message


def test_a_field_that_is_not_there_is_placed_at_what_is_around_it() -> None:
    [document] = load_manifests("a:\n  b: 1\n  c.d/e: 2", "x.yaml")
    assert document.place("a", "b") == "x.yaml:2, a.b"
    assert document.place("a", "x", 3) == "x.yaml:1, a.x[3]"
    assert document.place("a", "c.d/e") == 'x.yaml:3, a."c.d/e"'
    assert document.place() == "x.yaml:1"


@given(st.dictionaries(st.text(), json_values, min_size=2))
def test_a_digest_depends_on_the_content_alone(content: dict[str, object]) -> None:
    turned = dict(reversed(content.items()))
    assert digest(content) == digest(turned)
    assert digest(content) != digest({**content, "": math.pi})
