"""Impact: who moves when a lineage changes, at a cost that does not grow with who does not."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests import strategies as our

from polyver.core import (
    UNSPECIFIED,
    Dependent,
    Exact,
    Gate,
    Index,
    Lineage,
    NoMatch,
    Pin,
    Policy,
    Release,
    Selector,
    SemVer,
    Series,
    Stage,
    Unspecified,
    affected,
    resolve,
)

FOLLOW = Policy(
    "follow", usable=frozenset({Stage.PUBLISHED, Stage.DEPRECATED}), best="newest release"
)
KEEP = replace(FOLLOW, name="keep", keeps=frozenset({Unspecified}))


def version(text: str, **more: object) -> Release:
    return replace(Release(SemVer.parse(text)), **more)  # type: ignore[arg-type]


Entry = tuple[Dependent, str, Selector, Policy]


rollouts = st.builds(
    lambda gate: Lineage("web", [version("1.0.0"), version("1.1.0", gate=gate)]), our.gates
)


@st.composite
def changes(draw: st.DrawFn) -> tuple[Lineage, Lineage, list[Entry]]:
    """A lineage before and after, and dependents of which many ask for the same thing."""
    before, after = draw(our.lineages), draw(our.lineages)
    who = our.dependents(draw(st.sampled_from([before, after])))
    names = st.sampled_from(["web", "web", "web", "other"])
    selectors = draw(st.lists(our.selectors, min_size=1, max_size=3))
    policies = st.sampled_from([FOLLOW, KEEP])
    locks = st.sampled_from([None, None, None, *(each.pin for each in after)])
    who = st.builds(lambda one, lock: replace(one, lock=lock), who, locks)
    entries = st.tuples(who, names, st.sampled_from(selectors), policies)
    return before, after, draw(st.lists(entries, max_size=20))


def places(entries: list[Entry]) -> dict[tuple[str, str], Entry]:
    """The last entry for each place: putting one again replaces it."""
    return {(entry[0].name, entry[0].at): entry for entry in entries}


def naively(
    before: Lineage, after: Lineage, entries: list[Entry]
) -> tuple[set[object], set[object]]:
    """Resolve for every dependent, one by one."""
    moves: set[object] = set()
    losses: set[object] = set()
    for place, (dependent, lineage, selector, policy) in places(entries).items():
        if lineage != after.name:
            continue
        try:
            release = resolve(after, selector, policy, dependent).release
            if release.pin != dependent.pin:
                moves.add((place, release.pin))
        except NoMatch as error:
            if dependent.pin is not None or has_answer(before, selector, policy, dependent):
                losses.add((place, str(error)))
    return moves, losses


def has_answer(*question: Any) -> bool:
    try:
        resolve(*question)
    except NoMatch:
        return False
    return True


def answered(index: Index, before: Lineage, after: Lineage) -> tuple[set[object], set[object]]:
    found = affected(index, before, after)
    return (
        {((move.dependent.name, move.dependent.at), move.to.pin) for move in found.moves},
        {((loss.dependent.name, loss.dependent.at), str(loss.error)) for loss in found.losses},
    )


@given(changes())
def test_affected_equals_the_naive_recomputation(
    change: tuple[Lineage, Lineage, list[Entry]],
) -> None:
    before, after, entries = change
    one_by_one = Index()
    for entry in entries:
        one_by_one.put(*entry)
    at_once = Index.of(entries)
    assert len(one_by_one) == len(at_once) == len(places(entries))
    assert answered(one_by_one, before, after) == naively(before, after, entries)
    assert answered(at_once, before, after) == naively(before, after, entries)
    assert answered(at_once, before, after) == naively(before, after, entries), "asked again"


one_bucket = st.lists(
    st.builds(
        Dependent,
        name=st.integers(0, 30).map(str),
        uid=st.integers(0, 30).map(str),
        labels=our.labels,
        pin=st.just(version("1.0.0").pin),
    )
).map(lambda everyone: [(dependent, "web", UNSPECIFIED, FOLLOW) for dependent in everyone])


@given(rollouts, rollouts, one_bucket)
def test_affected_equals_the_naive_recomputation_behind_gates(
    before: Lineage, after: Lineage, entries: list[Entry]
) -> None:
    assert answered(Index.of(entries), before, after) == naively(before, after, entries)


@given(changes(), st.data())
def test_an_index_forgets_what_is_removed(
    change: tuple[Lineage, Lineage, list[Entry]], data: st.DataObject
) -> None:
    before, after, entries = change
    index = Index.of(entries)
    affected(index, before, after)  # which may have split the buckets
    kept = list(places(entries).values())
    known = [dependent for dependent, *_ in kept]
    for dependent in data.draw(st.lists(st.sampled_from([Dependent("stranger"), *known]))):
        index.remove(dependent)
        kept = [e for e in kept if (e[0].name, e[0].at) != (dependent.name, dependent.at)]
    assert len(index) == len(kept)
    assert answered(index, before, after) == naively(before, after, kept)


WEB = Lineage("web", [version(f"{a}.{b}.0") for a in range(5) for b in range(20)])


def many(count: int) -> Index:
    """Dependents spread over all minor series, with ten in the last of them."""

    def entry(number: int) -> Entry:
        series = Series(4, 19) if number < 10 else Series(number % 4, number % 19)
        dependent = Dependent(f"default/app-{number}", "spec.components[0].type", uid=str(number))
        pin = resolve(WEB, series, FOLLOW).release.pin
        return replace(dependent, pin=pin), "web", series, FOLLOW

    return Index.of(map(entry, range(count)))


@pytest.mark.parametrize("count", [1_000, 100_000])
def test_the_work_does_not_grow_with_dependents_that_stay(count: int) -> None:
    index = many(count)
    found = affected(index, WEB, WEB.publish(version("4.19.1")))
    assert {move.dependent.name for move in found.moves} == {f"default/app-{n}" for n in range(10)}
    assert all(move.to.name == "4.19.1" for move in found.moves)
    assert found.buckets == 77, "of as many selectors, whatever the number of dependents"


def test_a_gate_moves_its_share_alone_and_the_next_step_the_rest() -> None:
    index = Index()
    everyone = [Dependent(f"app-{n}", uid=str(n), pin=Pin("4.19.0")) for n in range(200)]
    for dependent in everyone:
        index.put(dependent, "web", Series(4), FOLLOW)
    first = WEB.publish(version("4.20.0", gate=Gate("spring", 1, share=0.25)))
    moved = {move.dependent.name for move in affected(index, WEB, first).moves}
    assert 25 < len(moved) < 75
    for dependent in everyone:
        if dependent.name in moved:
            index.put(replace(dependent, pin=Pin("4.20.0")), "web", Series(4), FOLLOW)
    assert not affected(index, first, first)
    rest = affected(index, first, first.restate(version("4.20.0"))).moves
    assert {move.dependent.name for move in rest} == {d.name for d in everyone} - moved
    back = affected(
        index, first, first.restate(version("4.20.0", gate=Gate("spring", 1, returns=True)))
    ).moves
    assert {move.dependent.name for move in back} == moved


def test_a_gate_by_labels_moves_those_who_have_them() -> None:
    index = Index()
    for number in range(30):
        labels = {"tier": "test" if number % 3 == 0 else "shop", "app": str(number)}
        dependent = Dependent(f"app-{number}", uid=str(number), labels=labels, pin=Pin("4.19.0"))
        index.put(dependent, "web", Series(4), FOLLOW)
    assert affected(index, WEB, WEB).buckets == 1
    gated = WEB.publish(version("4.20.0", gate=Gate("spring", 1, cohorts=({"tier": "test"},))))
    found = affected(index, WEB, gated)
    assert {move.dependent.name for move in found.moves} == {f"app-{n}" for n in range(0, 30, 3)}
    assert found.buckets == 2, "those with the gate's labels, and the others"
    late = Dependent("late", uid="late", labels={"tier": "test"}, pin=Pin("4.19.0"))
    index.put(late, "web", Series(4), FOLLOW)
    assert len(affected(index, WEB, gated).moves) == 11
    assert affected(index, WEB, WEB).buckets == 1, "without the gate they are together again"


def test_a_gate_that_names_one_of_many_values_makes_two_buckets() -> None:
    index = Index()
    for number in range(50):
        labels = {"app": str(number)}
        dependent = Dependent(f"app-{number}", uid=str(number), labels=labels, pin=Pin("4.19.0"))
        index.put(dependent, "web", Series(4), FOLLOW)
    gated = WEB.publish(version("4.20.0", gate=Gate("spring", 1, cohorts=({"app": "7"},))))
    found = affected(index, WEB, gated)
    assert [move.dependent.name for move in found.moves] == ["app-7"]
    assert found.buckets == 2


def test_a_loss_is_still_known_after_a_restart() -> None:
    index = Index()
    exact = Exact(SemVer.parse("4.19.0"))
    index.put(Dependent("a", pin=Pin("4.19.0")), "web", exact, FOLLOW)
    index.put(Dependent("b"), "web", exact, FOLLOW)
    after = WEB.restate(version("4.19.0", stage=Stage.REMOVED))
    assert [loss.dependent.name for loss in affected(index, WEB, after).losses] == ["a", "b"]
    assert [loss.dependent.name for loss in affected(index, after, after).losses] == ["a"]


def test_a_gate_of_the_lineage_before_decides_who_loses() -> None:
    index = Index()
    for number in range(40):
        index.put(Dependent(f"app-{number}", uid=str(number)), "web", Series(9), FOLLOW)
    gate = Gate("spring", 1, share=0.5)
    before = WEB.publish(version("9.0.0", gate=gate))
    losers = {loss.dependent.uid for loss in affected(index, before, WEB).losses}
    assert losers == {str(n) for n in range(40) if gate.admits(Dependent(uid=str(n)))}
    assert 5 < len(losers) < 35


def test_each_loser_is_told_what_it_wrote_and_where() -> None:
    index = Index()
    for number, text in enumerate(("7.0.0", "7.0.0+build")):
        wanted = Exact(SemVer.parse(text))
        dependent = Dependent("a", f"at-{number}", pin=Pin("7.0.0"))
        index.put(dependent, "web", wanted, FOLLOW)
    told = {str(loss.error).partition(";")[0] for loss in affected(index, WEB, WEB).losses}
    assert told == {"web has no 7.0.0 (at-0)", "web has no 7.0.0+build (at-1)"}


def test_taking_a_release_away_names_who_loses_it() -> None:
    index = Index()
    at = "spec.components[2].type"
    index.put(Dependent("a", at, pin=Pin("4.19.0")), "web", Exact(SemVer.parse("4.19.0")), FOLLOW)
    index.put(Dependent("b", at, pin=Pin("4.19.0")), "web", UNSPECIFIED, KEEP)
    index.put(Dependent("c", at, pin=Pin("4.19.0")), "web", UNSPECIFIED, FOLLOW)
    index.put(Dependent("d", at), "web", Exact(SemVer.parse("9.9.9")), FOLLOW)
    after = WEB.restate(version("4.19.0", stage=Stage.REMOVED))
    found = affected(index, WEB, after)
    assert {loss.dependent.name: str(loss.error) for loss in found.losses} == {
        name: f"web 4.19.0 was removed ({at}); nearest: 4.16.0, 4.17.0, 4.18.0 (of 99)"
        if name == "a"
        else f"web 4.19.0 was removed ({at}); known: 0.0.0, 0.1.0, 0.2.0, 0.3.0, 0.4.0, 0.5.0, "
        "0.6.0, 0.7.0, 0.8.0, 0.9.0, 0.10.0, 0.11.0 and 87 more"
        for name in ("a", "b")
    }
    assert [(move.dependent.name, move.to.name) for move in found.moves] == [("c", "4.18.0")]
    assert bool(found)


def test_nothing_moves_when_nothing_changes() -> None:
    found = affected(many(100), WEB, WEB)
    assert not found
    assert found.moves == ()
    assert found.losses == ()
