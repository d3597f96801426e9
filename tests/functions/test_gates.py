"""Gates of rollouts on function versions, and what is observed of them; all without a server."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from polyver.core import UNSPECIFIED, Dependent, Exact, Gate, PolyverError, SemVer, Stage, resolve
from polyver.functions import Registry
from polyver.functions.catalogue import read_catalogue
from polyver.functions.gates import (
    GateRecord,
    StableVersion,
    gated,
    read_record,
    record_data,
    with_gate,
    with_stable_versions,
)
from polyver.functions.observations import (
    FollowedVersion,
    PhaseCall,
    PhaseCallHistory,
    observations_in,
    state_towards,
)
from polyver.functions.policy import FUNCTIONS
from polyver.functions.registering import Functions, KnownFunction, known_functions
from polyver.kube.objects import load_manifests

NUMBERS = ("v0.1.0", "v0.2.0", "v0.3.0")
HALF = Gate("greet-2", 1, 0.5)
TAKEN_BACK = Gate("greet-2", 1, returns=True)


def functions(stable: str, *removed: str) -> Functions:
    """Greet in three versions, of which one is stable; those before it are deprecated."""
    found = Registry()
    entries = []
    for number in NUMBERS:
        stage = "stable" if number == stable else "deprecated" if number < stable else "candidate"
        if number in removed:
            stage = "removed, removedIn: 1.0.0"
        else:
            found.register("Greet", version=number)(lambda ctx, name="": {})
        dates = ", since: 1.0.0, removedIn: 1.2.0" if stage == "deprecated" else ""
        entries.append(f"      {number}: {{stage: {stage}{dates}}}")
    text = "\n".join(["releases: [1.0.0]", "functions:", "  Greet:", "    versions:", *entries])
    [document] = load_manifests(text, "catalogue.yaml")
    return known_functions(found, [read_catalogue(document)])


def greet(known: Functions) -> KnownFunction:
    return known.known["Greet"]


def used(known: Functions, uid: str = "x", **about: Any) -> str:
    """The version that a blueprint without `funcVersion` uses."""
    function = greet(known)
    user = function.dependent(Dependent("b", uid=uid, **about))
    return resolve(function.lineage, UNSPECIFIED, FUNCTIONS, user).release.name


def record(*versions: str, **gates: Gate | None) -> GateRecord:
    return {"Greet": tuple(StableVersion(each, gates.get(each[3:-2])) for each in versions)}


gates = st.one_of(
    st.none(),
    st.builds(
        Gate,
        st.text(min_size=1),
        st.integers(0, 5),
        st.floats(0, 1),
        st.lists(st.dictionaries(st.text(), st.text())).map(tuple),
        st.booleans(),
    ),
)
records = st.dictionaries(
    st.text(), st.lists(st.builds(StableVersion, st.text(), gates)).map(tuple)
)


@given(records)
def test_a_record_is_read_as_it_was_written(written: GateRecord) -> None:
    assert read_record({"data": record_data(written)}) == written


def test_a_record_that_somebody_has_broken_is_an_error_with_its_place() -> None:
    for text in ("{", "[]", '{"Greet": [{}]}', '{"Greet": [{"version": "v1", "state": "closed"}]}'):
        with pytest.raises(PolyverError, match="polyver-function-rollouts") as error:
            read_record({"data": {"functions.json": text}})
        assert "delete the ConfigMap" in error.value.hint


def test_a_version_that_becomes_stable_is_closed_if_a_policy_is_ready() -> None:
    known = functions("v0.2.0")
    closed = with_stable_versions(record("v0.1.0"), known, {"Greet": "careful"})
    assert closed["Greet"][-1] == StableVersion("v0.2.0", Gate("careful"))
    opened = with_stable_versions(record("v0.1.0"), known, {})
    assert opened == record("v0.1.0", "v0.2.0")


def test_without_a_record_nothing_is_held() -> None:
    known = functions("v0.2.0")
    assert with_stable_versions({}, known, {"Greet": "careful"}) == {}
    assert gated(known, {}) is known


def test_a_version_that_is_stable_again_keeps_its_state_and_is_the_newest() -> None:
    before = record("v0.1.0", "v0.2.0")
    again = with_stable_versions(before, functions("v0.1.0"), {"Greet": "careful"})
    assert again == record("v0.2.0", "v0.1.0")
    # What comes next falls back to it, and not to the version with the higher number.
    later = with_stable_versions(again, functions("v0.3.0"), {"Greet": "careful"})
    assert used(gated(functions("v0.3.0"), later)) == "v0.1.0"


@given(st.floats(0, 1), st.uuids().map(str))
def test_a_blueprint_uses_a_held_version_only_if_the_gate_admits_it(share: float, uid: str) -> None:
    known = gated(
        functions("v0.2.0"),
        with_gate(record("v0.1.0"), "Greet", "v0.2.0", Gate("greet-2", 1, share)),
    )
    admitted = Dependent(uid=uid).position < share
    assert used(known, uid) == ("v0.2.0" if admitted else "v0.1.0")


def test_a_held_version_with_a_lower_number_is_held_too() -> None:
    closed = with_gate(record("v0.3.0"), "Greet", "v0.2.0", Gate("careful"))
    assert used(gated(functions("v0.2.0"), closed)) == "v0.3.0"


def test_a_version_that_was_taken_back_is_nobodys() -> None:
    known = gated(functions("v0.2.0"), with_gate(record("v0.1.0"), "Greet", "v0.2.0", TAKEN_BACK))
    assert used(known) == "v0.1.0"


def test_those_of_a_superseded_rollout_keep_its_version() -> None:
    both = with_gate(record("v0.1.0"), "Greet", "v0.2.0", HALF)
    known = gated(functions("v0.3.0"), with_gate(both, "Greet", "v0.3.0", Gate("greet-3")))
    inside = next(str(n) for n in range(99) if Dependent(uid=str(n)).position < 0.5)
    outside = next(str(n) for n in range(99) if Dependent(uid=str(n)).position >= 0.5)
    assert (used(known, inside), used(known, outside)) == ("v0.2.0", "v0.1.0")


def test_a_version_is_open_if_nothing_else_can_be_used() -> None:
    closed = with_gate(record("v0.1.0"), "Greet", "v0.2.0", TAKEN_BACK)
    assert used(gated(functions("v0.2.0", "v0.1.0"), closed)) == "v0.2.0"
    assert used(gated(functions("v0.2.0"), {"Greet": closed["Greet"][1:]})) == "v0.2.0"


def test_an_exact_version_sees_what_is_held() -> None:
    known = greet(gated(functions("v0.2.0"), with_gate(record("v0.1.0"), "Greet", "v0.2.0", HALF)))
    user = known.dependent(Dependent("b"))
    exact = Exact(SemVer.parse("v0.2.0"))
    assert resolve(known.lineage, exact, FUNCTIONS, user).release.name == "v0.2.0"
    found = resolve(known.lineage, UNSPECIFIED, FUNCTIONS, user)
    assert found.reason == "kept: v0.2.0 is held by rollout greet-2, step 1"
    assert found.release.stage is Stage.DEPRECATED


# Observations.


def use(state: Any, time: float = 1.0, rollout: str = "greet-2") -> FollowedVersion:
    return FollowedVersion("default/b", "Greet", "v0.2.0", rollout, state, time)


@pytest.mark.parametrize(
    ("uses", "state"),
    [
        ([], "idle"),
        ([use("running")], "running"),
        ([use("healthy"), use("running", 2.0)], "healthy"),
        ([use("healthy", 1.0), use("unhealthy", 2.0)], "unhealthy"),
        ([use("unhealthy", 1.0), use("healthy", 2.0)], "healthy"),
        ([use("unhealthy", rollout="an earlier one")], "idle"),
    ],
)
def test_the_state_of_a_blueprint_is_that_of_its_last_ended_action(uses: Any, state: str) -> None:
    assert state_towards(HALF, uses, misfits=False) == state


def test_arguments_that_do_not_fit_fail_before_anybody_runs_them() -> None:
    assert state_towards(HALF, [], misfits=True) == "failing"


def test_after_a_rollback_only_running_actions_still_use_the_version() -> None:
    assert state_towards(TAKEN_BACK, [use("healthy"), use("running")], misfits=False) == "running"
    assert state_towards(TAKEN_BACK, [use("unhealthy")], misfits=True) == "idle"


def action_set(state: str, *phases: dict[str, Any]) -> dict[str, Any]:
    written = [{"func": "Greet", "name": each["name"]} for each in phases]
    action = {
        "name": "run",
        "blueprint": "b",
        "state": state,
        "phases": [*phases],
        "snapshot": {"time": "2030-01-01T00:00:00.0Z", "action": {"phases": written}},
    }
    metadata = {"name": "a", "namespace": "default"}
    return {"metadata": metadata, "status": {"state": state, "actions": [action]}}


def phase(state: str, start: int = 0, end: int = 0) -> dict[str, Any]:
    found = {"name": f"p{start}", "state": state, "resolvedVersion": "v0.2.0", "rollout": "greet-2"}
    found |= {"startTime": f"2030-01-01T00:00:{start:02}.000000Z"} if start else {}
    return found | ({"endTime": f"2030-01-01T00:00:{end:02}.500000Z"} if end else {})


def states(obj: dict[str, Any], *, is_cancelled: bool = False) -> list[str]:
    found = observations_in(obj, is_cancelled=is_cancelled)
    return [each.state for each in found.versions]


def test_an_action_that_ended_is_healthy_or_unhealthy() -> None:
    assert states(action_set("running", phase("running", 1))) == ["running"]
    assert states(action_set("complete", phase("complete", 1, 2))) == ["healthy"]
    assert states(action_set("failed", phase("failed", 1, 2))) == ["unhealthy"]
    # A later phase may fail because of what the first one returned; it was never called.
    assert states(action_set("failed", phase("complete", 1, 2), phase("failed"))) == [
        "unhealthy",
        "unhealthy",
    ]


def test_an_interrupted_or_cancelled_action_shows_nothing() -> None:
    assert states(action_set("failed", phase("failed", 1))) == []
    assert states(action_set("failed", phase("failed", 1, 2)), is_cancelled=True) == []
    # The phase with the version was not reached.
    assert states(action_set("failed", phase("failed", 1, 2), phase("pending"))) == ["unhealthy"]


def test_only_calls_that_ended_are_counted() -> None:
    obj = action_set("failed", phase("complete", 1, 2), phase("failed", 3))
    [(name, call)] = observations_in(obj, is_cancelled=False).calls
    assert (name, call.version, call.seconds, call.has_failed) == ("Greet", "v0.2.0", 1.5, False)


@given(st.lists(st.tuples(st.floats(0, 100), st.sampled_from(NUMBERS), st.booleans())))
def test_calls_are_counted_since_a_time(made: list[tuple[float, str, bool]]) -> None:
    history = PhaseCallHistory()
    calls = [
        PhaseCall(time, time, version, failed, str(n))
        for n, (time, version, failed) in enumerate(made)
    ]
    for each in calls:
        history.add(each)
    mine, others = history.since(50.0, "v0.2.0")
    recent = [each for each in calls if each.ended >= 50.0]
    assert mine.count == sum(each.version == "v0.2.0" for each in recent)
    assert mine.count + others.count == len(recent)
    assert mine.errors + others.errors == sum(each.has_failed for each in recent)
    for each in calls:
        history.remove(each)
    assert history.since(0.0, "v0.2.0")[0].count == 0
