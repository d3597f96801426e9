"""Counting the followers of a cohort: the same as counting them one by one."""

from __future__ import annotations

from typing import get_args

import pytest
from hypothesis import given
from hypothesis import strategies as st

from polyver.core import Dependent
from polyver.core.cohorts import Cohorts, FollowerState
from polyver.core.rollout import Exposure

names = st.integers(0, 15).map(str)
labels = st.dictionaries(st.sampled_from("ab"), st.sampled_from("xy"))
states: st.SearchStrategy[FollowerState] = st.sampled_from(get_args(FollowerState))
followers = st.builds(lambda name, known: Dependent(name, uid=name, labels=known), names, labels)
wanted = st.sampled_from([{"a": "x"}, {"b": "y"}, {"a": "x", "b": "y"}])
exposures = st.builds(Exposure, st.floats(0, 1), st.lists(wanted, max_size=2).map(tuple))
USING: tuple[FollowerState, ...] = ("moved", "healthy", "unhealthy", "running")
"""The states of those that use the release: they stay in the cohort when their labels change."""
changes = st.one_of(st.tuples(followers, states), names, exposures)


first = st.lists(st.tuples(followers, states), unique_by=lambda each: each[0].name)


@given(first, st.lists(changes), exposures)
def test_counts_are_those_of_each_follower(
    first: list[tuple[Dependent, FollowerState]], steps: list[object], exposure: Exposure
) -> None:
    cohorts = Cohorts()
    cohorts.put_all(first)
    known = {each[0].name: each for each in first}
    for each in steps:
        match each:
            case tuple():
                cohorts.put(*each)
                known[each[0].name] = each
            case str():
                cohorts.remove(each)
                known.pop(each, None)
            case Exposure():
                cohorts.counts(each)
    inside = {
        n: s for n, (d, s) in known.items() if s in USING or exposure.includes(d.position, d.labels)
    }
    by_state = [*inside.values()]
    counts = cohorts.counts(exposure)
    assert (counts.total, counts.cohort) == (len(known), len(inside))
    assert counts.waiting == by_state.count("waiting")
    assert counts.held == by_state.count("held")
    assert counts.healthy == by_state.count("healthy")
    assert counts.failing == by_state.count("failing") + by_state.count("unhealthy")
    assert counts.moved == sum(by_state.count(s) for s in USING)
    assert counts.idle == by_state.count("idle")
    assert counts.running == by_state.count("running")
    for state in get_args(FollowerState):
        assert {*cohorts.names(exposure, state)} == {n for n, s in inside.items() if s == state}


@given(st.sets(names), st.integers(0, 20))
def test_a_threshold_includes_that_many(there: set[str], count: int) -> None:
    cohorts = Cohorts()
    for name in there:
        cohorts.put(Dependent(name, uid=name), "waiting")
    assert cohorts.counts(Exposure(cohorts.threshold(count))).cohort == min(count, len(there))


def test_a_follower_that_changes_is_counted_once() -> None:
    cohorts = Cohorts()
    for state in get_args(FollowerState):
        cohorts.put(Dependent("a", uid="a"), state)
    assert len(cohorts) == 1
    assert cohorts.state("a") == get_args(FollowerState)[-1]
    cohorts.remove("a")
    cohorts.remove("b")
    assert cohorts.counts(Exposure(1.0)).total == 0
    assert cohorts.state("a") is None


@pytest.mark.parametrize("number", [10, 1000])
def test_a_count_does_not_visit_followers(number: int, monkeypatch: pytest.MonkeyPatch) -> None:
    cohorts = Cohorts()
    for each in range(number):
        cohorts.put(Dependent(str(each), uid=str(each), labels={"a": "x"}), "waiting")
    cohorts.counts(Exposure(0.1, ({"a": "y"},)))
    visited = []
    monkeypatch.setattr(Cohorts, "_sides", lambda *args: visited.append(args))
    cohorts.counts(Exposure(0.2, ({"a": "y"},)))
    assert not visited
