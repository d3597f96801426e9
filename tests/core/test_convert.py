"""Conversion trees: one way between any two versions, or an error that names what is wrong."""

from __future__ import annotations

from itertools import permutations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from polyver.core import ConversionTree, Edge, InvalidTree

VERSIONS = ["v1alpha1", "v1beta1", "v1", "v2beta1", "v2", "v3"]


def edge(source: str, target: str) -> Edge[str]:
    return Edge(source, target, f"{source}>{target}", f"{target}>{source}")


@st.composite
def graphs(draw: st.DrawFn) -> tuple[list[str], list[Edge[str]]]:
    versions = draw(st.lists(st.sampled_from(VERSIONS), min_size=1, unique=True))
    pairs = list(permutations(versions, 2))
    if draw(st.booleans()):  # a tree, in any direction and order
        order = draw(st.permutations(versions))
        chosen = [
            draw(st.permutations([order[n], draw(st.sampled_from(order[:n]))]))
            for n in range(1, len(order))
        ]
        return versions, [edge(source, target) for source, target in chosen]
    found = draw(st.lists(st.sampled_from(pairs), max_size=7)) if pairs else []
    return versions, [edge(source, target) for source, target in found]


def simple_ways(edges: list[Edge[str]], source: str, target: str) -> list[list[str]]:
    """Every way without a detour, by trying all of them."""
    hops = [hop for e in edges for hop in ((e.source, e.target), (e.target, e.source))]

    def walk(at: str, seen: list[str]) -> list[list[str]]:
        if at == target:
            return [seen]
        return [
            way
            for start, end in hops
            if start == at and end not in seen
            for way in walk(end, [*seen, end])
        ]

    return walk(source, [source])


@given(graphs())
def test_a_tree_is_accepted_exactly_when_there_is_one_way_between_any_two(
    graph: tuple[list[str], list[Edge[str]]],
) -> None:
    versions, edges = graph
    ways = {(a, b): simple_ways(edges, a, b) for a in versions for b in versions}
    sound = all(len(found) == 1 for found in ways.values())
    try:
        tree = ConversionTree(versions=versions, edges=edges)
    except InvalidTree:
        assert not sound
        return
    assert sound
    for (source, target), [way] in ways.items():
        found = tree.way(source, target)
        assert [source, *(hop.target for hop in found)] == way
        assert [hop.convert for hop in found] == [f"{hop.source}>{hop.target}" for hop in found]


@given(graphs(), st.data())
def test_a_hub_changes_no_way(
    graph: tuple[list[str], list[Edge[str]]], data: st.DataObject
) -> None:
    versions, edges = graph
    try:
        tree = ConversionTree(versions=versions, edges=edges)
    except InvalidTree:
        return
    hub = data.draw(st.sampled_from(versions))
    rooted = ConversionTree(versions=versions, edges=edges, hub=hub)
    for source, target in permutations(versions, 2):
        assert rooted.way(source, target) == tree.way(source, target)


@pytest.mark.parametrize(
    ("versions", "edges", "hub", "problem"),
    [
        (["v1", "v2", "v1alpha1"], [edge("v1", "v2")], "v2", "no edge leads to v1alpha1 from v2"),
        (["v1", "v2"], [edge("v1", "v2"), edge("v2", "v1")], None, "v1 ⇄ v2 has two edges"),
        (
            ["v1", "v2", "v3"],
            [edge("v1", "v2"), edge("v2", "v3"), edge("v3", "v1")],
            None,
            "the edge v3 ⇄ v1 closes a cycle",
        ),
        (["v1", "v2"], [edge("v1", "v2"), edge("v2", "v9")], None, "v9, which is not declared"),
        (["v1", "v2"], [edge("v1", "v2")], "v9", "the hub v9 is not declared"),
        (["v1", "v1"], [], None, "v1 is declared twice"),
        ([], [], None, "no version is declared"),
        (["v1"], [edge("v1", "v1")], None, "from v1 to itself"),
        (["v1", "v2"], [Edge("v1", "v2", "up", None)], "v2", "v1 cannot be converted back from v2"),
        (["v1", "v2"], [Edge("v1", "v2", None, "down")], "v2", "v1 cannot be converted to v2"),
    ],
)
def test_an_unsound_tree_is_refused_when_it_is_built(
    versions: list[str], edges: list[Edge[str]], hub: str | None, problem: str
) -> None:
    with pytest.raises(InvalidTree) as caught:
        ConversionTree(versions=versions, edges=edges, hub=hub)
    assert problem in str(caught.value)


def test_all_problems_are_named_at_once() -> None:
    with pytest.raises(InvalidTree) as caught:
        ConversionTree(versions=["v1", "v2"], edges=[edge("v1", "v8"), edge("v2", "v9")], hub="v7")
    assert len(caught.value.problems) == 3


def test_kube_order_does_not_make_a_chain() -> None:
    """Priority is not chronology: the declared edges are the only ways."""
    tree = ConversionTree(
        versions=["v1", "v2beta1", "v2"], edges=[edge("v2beta1", "v1"), edge("v1", "v2")]
    )
    assert [hop.target for hop in tree.way("v2beta1", "v2")] == ["v1", "v2"]


def test_a_way_to_an_unknown_version_is_refused() -> None:
    tree = ConversionTree(versions=["v1", "v2"], edges=[edge("v1", "v2")])
    with pytest.raises(InvalidTree, match="v3 is not one of v1, v2"):
        tree.way("v1", "v3")
