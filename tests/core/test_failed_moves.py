"""Dependents that could not take a release: they keep their pin, and nobody is moved for it."""

from __future__ import annotations

import pytest

from polyver.core import (
    Dependent,
    Exact,
    FailedMove,
    Index,
    Lineage,
    Pin,
    Policy,
    Release,
    Selector,
    SemVer,
    Series,
    Stage,
    affected,
    resolve,
)

POLICY = Policy("test", usable=frozenset({Stage.PUBLISHED}), best="newest release")


def lineage(*versions: str) -> Lineage:
    return Lineage("web", [Release(SemVer.parse(each), f"digest of {each}") for each in versions])


def pin(version: str) -> Pin:
    return Pin(version, f"digest of {version}")


def failing(version: str, *, at: str = "1.0.0", why: str = "it is broken") -> Dependent:
    return Dependent("Application a/b", pin=pin(at), failed_move=FailedMove(pin(version), why=why))


def test_a_dependent_that_could_not_take_a_release_keeps_its_pin_and_is_told_why() -> None:
    found = resolve(lineage("1.0.0", "1.1.0"), Series(1), POLICY, failing("1.1.0"))
    assert (found.release.name, found.reason) == ("1.0.0", "kept: the move to 1.1.0 failed")
    assert [(each.release.name, each.why) for each in found.rejected] == [("1.1.0", "it is broken")]


@pytest.mark.parametrize(
    ("known", "selector", "dependent", "wanted"),
    [
        (("1.0.0", "1.1.0", "1.2.0"), Series(1), failing("1.1.0"), "1.2.0"),
        (("1.0.0", "1.1.0"), Exact(SemVer.parse("1.1.0")), failing("1.1.0"), "1.1.0"),
        (("1.0.0", "1.1.0"), Series(1, 1), failing("1.1.0"), "1.1.0"),
        (("1.1.0",), Series(1), failing("1.1.0"), "1.1.0"),
        (("1.0.0", "1.1.0"), Series(1), failing("1.1.0", at="0.9.0"), "1.1.0"),
    ],
    ids=["newer", "exact", "another series", "pin gone", "pin unknown"],
)
def test_it_moves_when_there_is_another_release_or_nothing_to_stay_with(
    known: tuple[str, ...], selector: Selector, dependent: Dependent, wanted: str
) -> None:
    assert resolve(lineage(*known), selector, POLICY, dependent).release.name == wanted


def test_only_a_release_that_it_has_not_tried_moves_it() -> None:
    index = Index.of([(failing("1.1.0"), "web", Series(1), POLICY)])
    first, second = lineage("1.0.0"), lineage("1.0.0", "1.1.0")
    assert not affected(index, first, second)
    [move] = affected(index, second, lineage("1.0.0", "1.1.0", "1.1.1")).moves
    assert move.to.name == "1.1.1"


def test_the_message_does_not_tell_dependents_apart() -> None:
    one, other = failing("1.1.0", why="for one"), failing("1.1.0", why="for the other")
    assert one.failed_move == other.failed_move
    entries = [(one, "web", Series(1), POLICY)]
    entries.append((Dependent("c", pin=other.pin, failed_move=other.failed_move), *entries[0][1:]))
    assert affected(Index.of(entries), lineage("1.0.0"), lineage("1.0.0")).buckets == 1
