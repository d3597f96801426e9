"""JSONPath: paths find what the real server's find; the tables it recorded say so too."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from polyver.languages.jsonpath import InvalidJsonPath, parse_path

WIDGET: dict[str, Any] = {
    "metadata": {"name": "a", "annotations": {"ex.io/x": "noted"}},
    "spec": {
        "ports": [{"name": "http", "port": 80}, {"name": "https", "port": 443}, {"name": "ssh"}],
        "nested": [[1, 2], [], [3]],
        "nothing": None,
    },
    "status": {
        "conditions": [
            {"type": "Ready", "status": "True", "since": 3},
            {"type": "Synced", "status": "False", "since": 5},
        ]
    },
}


@pytest.mark.parametrize(
    ("path", "found"),
    [
        ("", [WIDGET]),
        (".metadata.name", ["a"]),
        ("$.metadata.name", ["a"]),
        (".metadata['name']", ["a"]),
        (r".metadata.annotations.ex\.io/x", ["noted"]),
        (r".metadata.annotations['ex\.io/x']", ["noted"]),
        (".metadata.annotations['ex.io/x']", []),
        (".spec.nothing", [None]),
        (".spec.nothing.more", []),
        (".spec.ports[0].port", [80]),
        (".spec.ports[-1].name", ["ssh"]),
        (".spec.ports[*].port", [80, 443]),
        (".spec.ports[1:].name", ["https", "ssh"]),
        (".spec.ports[:2].name", ["http", "https"]),
        (".spec.ports[:-1].name", ["http", "https"]),
        (".spec.ports[::2].name", ["http", "ssh"]),
        (".spec.ports[2,0].name", ["ssh", "http"]),
        (".metadata['zzz','name']", ["a"]),
        (".spec.ports.*.port", [80, 443]),
        ("..port", [80, 443]),
        (".spec..name", ["http", "https", "ssh"]),
        ('.status.conditions[?(@.type=="Ready")].status', ["True"]),
        (".status.conditions[?(@.type=='Ready')].status", ["True"]),
        ('.status.conditions[?(@.type!="Ready")].type', ["Synced"]),
        (".status.conditions[?(@.since>3)].type", ["Synced"]),
        (".status.conditions[?(@.since>=3)].type", ["Ready", "Synced"]),
        (".status.conditions[?(@.since<5)].type", ["Ready"]),
        (".spec.ports[?(@.port)].name", ["http", "https"]),
        (".spec.nested[?(@[0]==3)]", []),
        (".metadata.zzz", []),
    ],
)
def test_a_path_finds_its_values(path: str, found: list[Any]) -> None:
    assert parse_path(path).find(WIDGET) == found


@pytest.mark.parametrize(
    "path",
    [
        ".spec.ports[7].name",
        ".spec.ports[0:7].name",
        ".spec.ports[0:1:0].name",
        ".metadata[0]",
        '.metadata[?(@.name=="a")]',
        '.status.conditions[?(@.since=="3")].type',
        ".status.conditions[?(@.since==3.0)].type",
        ".status.conditions[?(@.since=3)].type",
        ".spec.ports[?(@.*==80)].name",
        "spec.ports",
    ],
)
def test_what_does_not_fit_the_object_finds_nothing(path: str) -> None:
    assert parse_path(path).find(WIDGET) == []


def test_an_empty_list_hides_those_after_it_as_on_the_real_server() -> None:
    assert parse_path(".spec.nested[*][*]").find(WIDGET) == [1, 2]


@pytest.mark.parametrize(
    ("path", "problem"),
    [
        (".spec[", "a bracket is not closed"),
        (".spec[a]", "a is not an index"),
        (".spec[-]", "- is not an index"),
        (".spec['a',b]", "b is not an index"),
        (".spec[?(@.a==1", "a filter is not closed"),
        (".spec[?(@.a==1)", "the bracket of a filter is not closed"),
        (".spec[?(@.a=='1)]", "a filter is not closed"),
        (".spec[?(@.a==#)]", "'#' is not allowed here"),
        ("....a", "one `..` follows another"),
        ("..*", "'*' is not allowed here"),
        ("{.spec}", "'{' is not allowed here"),
        (".spec 'a", "a quote is not closed"),
        (r".spec '\q'", r"unknown escape \q"),
        (".spec 1.2.3", "1.2.3 is not a number"),
        (".spec\n.a", "it contains a line break"),
    ],
)
def test_a_path_that_cannot_be_read_says_why(path: str, problem: str) -> None:
    with pytest.raises(InvalidJsonPath) as caught:
        parse_path(path)
    assert caught.value.problem == problem
    assert caught.value.path == path


@pytest.mark.parametrize(
    ("path", "names"),
    [
        (".spec.replicas", ("spec", "replicas")),
        (r".spec['a\.b'].c", ("spec", "a.b", "c")),
        (".spec.ports[0]", None),
        (".spec.*", None),
    ],
)
def test_a_path_of_fields_alone_tells_their_names(path: str, names: tuple[str, ...] | None) -> None:
    assert parse_path(path).names == names


VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text("ab."),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.text("ab019"), inner, max_size=3)
    ),
    max_leaves=12,
)
NAMES = st.text(st.characters(exclude_characters="\\", exclude_categories=["Cs"]), min_size=1)


@given(st.lists(NAMES, min_size=1, max_size=4), VALUES)
def test_any_field_can_be_reached_with_backslashes(names: list[str], value: Any) -> None:
    path = "".join("." + "".join(f"\\{letter}" for letter in name) for name in names)
    nested = value
    for name in reversed(names):
        nested = {name: nested}
    assert parse_path(path).names == tuple(names)
    assert parse_path(path).find(nested) == [value]


@given(VALUES)
def test_a_filter_and_an_index_find_the_same_item(value: Any) -> None:
    items = {"items": [{"id": "other"}, {"id": "wanted", "value": value}]}
    by_filter = parse_path('.items[?(@.id=="wanted")].value').find(items)
    assert by_filter == parse_path(".items[1].value").find(items) == [value]


@given(st.text(st.sampled_from(".[]()?@$*:,'\"\\ -019ab=<>!{}\n")), VALUES)
def test_any_text_is_a_path_or_is_refused(text: str, value: Any) -> None:
    try:
        found = parse_path(text).find(value)
    except InvalidJsonPath:
        found = []
    assert isinstance(found, list)
