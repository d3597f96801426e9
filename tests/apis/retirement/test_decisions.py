"""The steps of a retirement: in order, resumable from any state, and undone until the drop."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from polyver.apis.retirement import PASSES, PassProgress, RetirementSnapshot, decide
from polyver.apis.retirement import RetirementState as State
from polyver.apis.retirement import RetirementStep as Step

Object = dict[str, Any]
ORDER: list[Step] = [each for each in Step if each != Step.SERVE_AGAIN]
CHUNK = 2


@dataclass
class Stored:
    """An object: the version in which it is stored, and the versions that its managers use."""

    version: str
    managers: set[str]
    preserves: bool = True


@dataclass
class World:
    """A kind with objects on a cluster, and the retirement of its version v1."""

    objects: list[Stored]
    served: dict[str, bool] = field(default_factory=lambda: {"v1": True, "v2": True, "v3": True})
    storage: str = "v2"
    generation: int = 1
    stored: set[str] = field(default_factory=lambda: {"v1", "v2"})
    converted: list[str] = field(default_factory=lambda: ["v1", "v2", "v3"])
    status: dict[str, Any] = field(default_factory=dict)
    aborted: bool = False
    attempt: int = 1
    done: list[Step] = field(default_factory=list)

    @property
    def snapshot(self) -> RetirementSnapshot:
        return RetirementSnapshot(
            version="v1",
            served=dict(self.served),
            storage=self.storage,
            generation=self.generation,
            stored=sorted(self.stored),
            converted=tuple(self.converted),
            aborted=self.aborted,
            attempt=self.attempt,
            **self.status,
        )

    def act(self, *, killed: bool = False) -> bool:
        """Reconcile once; if killed, the status is not written. Report whether it goes on."""
        decision = decide(self.snapshot)
        status = {**self.status, "state": decision.state.value}
        if decision.resets:
            status |= {"passes": {}, "checked": None}
        if decision.step is not None:
            status["step"] = decision.step.value
        if decision.acts and decision.step and self.status.get("step") == decision.step:
            self._execute(decision.step, status)
        if not killed:
            self.status = status
        return decision.state == State.RUNNING

    def _execute(self, step: Step, status: dict[str, Any]) -> None:
        self.done.append(step)
        match step:
            case Step.STOP_SERVING | Step.SERVE_AGAIN:
                self.generation += 1
                self.served["v1"] = step == Step.SERVE_AGAIN
                status["stopped"] = self.attempt
            case Step.TRIM:
                assert all(each.version != "v1" for each in self.objects)
                self.stored.discard("v1")
            case Step.DROP:
                self._check_drop()
                del self.served["v1"]
            case Step.NARROW:
                self.converted.remove("v1")
            case _:
                self._run_chunk(step, status)

    def _check_drop(self) -> None:
        assert not self.served["v1"]
        assert not self.aborted
        assert "v1" not in self.stored
        for each in self.objects:
            assert each.version != "v1"
            assert "v1" not in each.managers
            assert not each.preserves

    def _run_chunk(self, step: Step, status: dict[str, Any]) -> None:
        known = status.get("passes") or {}
        before = known.get(step, PassProgress())
        at = int(before.after or 0)
        changed = sum(self._change(step, each) for each in self.objects[at : at + CHUNK])
        changed += 0 if at == 0 else before.changed
        at += CHUNK
        now = PassProgress(changed=changed, rounds=before.rounds, after=str(at))
        if at >= len(self.objects):
            done = step == Step.REWRITE or not changed
            now = replace(now, rounds=before.rounds + 1, done=done, after="")
        status["passes"] = {**known, step: now}
        status["checked"] = self.generation

    def _change(self, step: Step, obj: Stored) -> bool:
        match step:
            case Step.REWRITE | Step.VERIFY:
                changed, obj.version = obj.version != self.storage, self.storage
            case Step.OWNERS:
                changed = "v1" in obj.managers
                obj.managers = {"v2" if each == "v1" else each for each in obj.managers}
            case _:
                changed, obj.preserves = obj.preserves, False
        return changed

    def check(self) -> None:
        """Every object can be converted to every served version, and the CRD has its version."""
        for each in self.objects:
            assert each.version in self.served
            for name, served in self.served.items():
                assert not served or {name, each.version} <= {*self.converted}

    # Other clients.

    def write(self, index: int) -> None:
        if self.objects and self.served.get("v1"):
            obj = self.objects[index % len(self.objects)]
            obj.version = self.storage
            obj.managers.add("v1")
            obj.preserves = True
            self.stored.add(self.storage)

    def create(self, index: int) -> None:
        name = "v1" if self.served.get("v1") and index % 2 else "v2"
        self.objects.append(Stored(self.storage, {name}, name == "v1"))

    def store_in(self, index: int) -> None:
        name = ["v1", "v2", "v3"][index % 3]
        if name in self.served:
            self.generation += 1
            self.storage = name
            self.stored.add(name)

    def serve(self, index: int) -> None:
        if "v1" in self.served:
            self.generation += 1
            self.served["v1"] = bool(index % 2)

    def confirm(self, _: int) -> None:
        self.attempt += 1


stored_objects = st.builds(
    Stored, st.sampled_from(["v1", "v2"]), st.sets(st.sampled_from(["v1", "v2"])), st.booleans()
)
worlds = st.builds(World, st.lists(stored_objects, max_size=5))
events = st.lists(
    st.tuples(
        st.sampled_from(["act", "act", "act", "killed", "write", "create", "store_in", "serve"]),
        st.integers(0, 9),
    ),
    max_size=40,
)


def play(world: World, happened: list[tuple[str, int]]) -> None:
    for name, index in happened:
        if name in ("act", "killed"):
            world.act(killed=name == "killed")
        else:
            getattr(world, name)(index)
        world.check()


def settle(world: World) -> None:
    for _ in range(200):
        if not world.act():
            return
        world.check()
    raise AssertionError(f"no end: {world.status}")


@given(worlds)
def test_the_steps_run_in_order(world: World) -> None:
    settle(world)
    assert world.status["state"] == State.COMPLETED
    assert world.done == sorted(world.done, key=ORDER.index)
    assert "v1" not in world.served
    assert "v1" not in world.converted


@given(worlds, events)
def test_it_can_be_continued_from_any_state(world: World, happened: list[tuple[str, int]]) -> None:
    play(world, happened)
    if "v1" in world.served:
        world.storage = "v2"
        world.confirm(0)
    settle(world)
    assert world.status["state"] == State.COMPLETED
    assert "v1" not in world.converted


@given(worlds, events)
def test_an_abort_serves_the_version_again_unless_it_is_dropped(
    world: World, happened: list[tuple[str, int]]
) -> None:
    play(world, happened)
    world.aborted = True
    dropped = "v1" not in world.served
    settle(world)
    assert world.status["state"] == (State.COMPLETED if dropped else State.ABORTED)
    assert dropped or world.served["v1"]


@given(worlds, events)
def test_after_an_abort_it_can_be_confirmed_again(
    world: World, happened: list[tuple[str, int]]
) -> None:
    play(world, happened)
    world.aborted = True
    settle(world)
    world.aborted = False
    world.confirm(0)
    if "v1" in world.served:
        world.storage = "v2"
    settle(world)
    assert world.status["state"] == State.COMPLETED


# What forbids a step.


def snapshot(**changed: Any) -> RetirementSnapshot:
    known: dict[str, Any] = {"version": "v1", "served": {"v1": True, "v2": True}, "storage": "v2"}
    return RetirementSnapshot(**(known | {"stored": ["v1", "v2"], "attempt": 1} | changed))


@pytest.mark.parametrize(
    ("changed", "reason"),
    [
        ({"exists": False}, "NoDefinition"),
        ({"served": {"v2": True, "v3": True}}, "UnknownVersion"),
        ({"storage": "v1"}, "StorageVersion"),
        ({"served": {"v1": True, "v2": False}}, "OnlyServedVersion"),
        ({"through": ["v2 to v3"]}, "ConversionPath"),
        ({"terminating": True}, "Terminating"),
        ({"others": ["crontabs-v3"]}, "OtherRetirement"),
        ({"clients": ["alice"]}, "Clients"),
        ({"dependents": ["Application a"]}, "Dependents"),
        ({"appliers": ["argocd"]}, "AppliedElsewhere"),
        ({"stopped": 1}, "ServedAgain"),
    ],
)
def test_a_version_that_something_needs_stays_served(changed: dict[str, Any], reason: str) -> None:
    decision = decide(snapshot(**changed))
    assert decision.state == State.BLOCKED
    assert [each.reason for each in decision.blockers] == [reason]
    assert not decision.acts


@pytest.mark.parametrize(
    "changed",
    [
        {"clients": ["alice"], "ignores_clients": True},
        {"dependents": ["Application a"], "ignores_dependents": True},
        {"appliers": ["argocd"], "takes_over": True},
        {"stopped": 1, "attempt": 2},
    ],
)
def test_a_user_may_override_the_users_of_a_version(changed: dict[str, Any]) -> None:
    decision = decide(snapshot(**changed))
    assert (decision.state, decision.step) == (State.RUNNING, Step.STOP_SERVING)
    assert decision.acts


def test_a_manager_that_applies_the_version_delays_the_drop_and_the_narrowing() -> None:
    passes = {each: PassProgress(done=True) for each in PASSES}
    known: Object = {"served": {"v1": False, "v2": True}, "stored": ["v2"], "passes": passes}
    decision = decide(snapshot(**known, appliers=["argocd"]))
    assert (decision.step, decision.acts) == (Step.DROP, False)
    assert "argocd applies the CustomResourceDefinition" in decision.blockers[0].message
    gone: Object = {"served": {"v2": True}, "step": Step.DROP.value, "converted": ["v1", "v2"]}
    decision = decide(snapshot(**gone, conversion_appliers=["argocd"]))
    assert (decision.step, decision.acts) == (Step.NARROW, False)
