"""What a Composition means for its revisions, rule by rule, and whatever users may do."""

from __future__ import annotations

import copy
import re
from dataclasses import dataclass, field
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st
from tests.compositions.composing import ALPHA, SEED_COMPOSITION, composition, manifest, step

from polyver.compositions.decisions import (
    Changes,
    composition_changes,
    composition_revision_object,
    composition_revision_patch,
    known_composition_revision,
)
from polyver.compositions.names import COMPOSITION, CONTENT
from polyver.kube.objects import apply_merge_patch

Object = dict[str, Any]


@dataclass
class World:
    """A Composition and its revisions as a server has them, changed by plans alone."""

    obj: Object
    revisions: dict[str, Object] = field(default_factory=dict)

    def plan(self) -> Changes:
        return composition_changes(
            self.obj, [known_composition_revision(each) for each in self.revisions.values()]
        )

    def settle(self) -> Changes:
        plan = self.plan()
        if plan.create:
            made = composition_revision_object(plan.create, self.obj)
            self.revisions[made["metadata"]["name"]] = made
        for after in plan.changes:
            there = self.revisions[after.name]
            before = known_composition_revision(there)
            patch = composition_revision_patch(before, after, self.obj)
            self.revisions[after.name] = apply_merge_patch(there, patch)
        return plan

    def write(self, size: int | None = None, **labels: str) -> Changes:
        """Have the Composition written anew, and its plan carried out."""
        obj = copy.deepcopy(self.obj)
        if size is not None:
            obj["spec"]["pipeline"] = [step(input=content(size))]
        obj["metadata"]["labels"] = labels
        self.obj = obj
        return self.settle()

    @property
    def newest(self) -> Object:
        return max(self.revisions.values(), key=lambda each: int(each["spec"]["revision"]))

    @property
    def numbers(self) -> list[int]:
        return sorted(each["spec"]["revision"] for each in self.revisions.values())


def content(size: int) -> Object:
    return {"apiVersion": "example.org/v1", "kind": "Input", "size": size}


def labels_of(obj: Object) -> dict[str, str]:
    return {k: v for k, v in obj["metadata"]["labels"].items() if k not in (COMPOSITION, CONTENT)}


def test_the_seeds_composition_makes_a_revision_with_its_labels() -> None:
    world = World(manifest(SEED_COMPOSITION))
    world.settle()
    [made] = world.revisions.values()
    assert re.fullmatch(r"example-[0-9a-f]{7}", made["metadata"]["name"])
    assert labels_of(made) == ALPHA
    assert made["metadata"]["labels"][COMPOSITION] == "example"
    assert made["spec"] == {**world.obj["spec"], "revision": 1}
    assert made["metadata"]["ownerReferences"][0]["uid"] == "uid-of-example"


def test_the_same_again_makes_nothing_even_with_other_annotations() -> None:
    world = World(composition())
    world.settle()
    world.obj["metadata"]["annotations"] = {"kubectl.kubernetes.io/last-applied": "{}"}
    assert world.plan().is_empty


def test_a_change_of_labels_alone_makes_a_revision() -> None:
    world = World(composition())
    world.write(1)
    world.write(1, channel="alpha")
    assert world.numbers == [1, 2]
    assert labels_of(world.newest) == {"channel": "alpha"}
    assert [labels_of(each) for each in world.revisions.values()] == [{}, {"channel": "alpha"}]


def test_content_that_comes_back_is_the_highest_again_with_its_labels() -> None:
    world = World(composition())
    first = world.write(1, channel="alpha").current
    world.write(2)
    world.revisions[first]["metadata"]["labels"]["channel"] = "changed-by-somebody"
    plan = world.write(1, channel="alpha")
    assert plan.create is None
    assert (world.newest["metadata"]["name"], world.numbers) == (first, [2, 3])
    assert labels_of(world.newest) == {"channel": "alpha"}


def test_the_label_of_the_composition_is_not_for_users() -> None:
    world = World(composition())
    world.write(1, **{COMPOSITION: "another", CONTENT: "mine"})
    assert world.newest["metadata"]["labels"][COMPOSITION] == "example"
    assert world.plan().is_empty


def test_revisions_without_an_owner_are_adopted() -> None:
    world = World(composition())
    world.write(1)
    world.write(2)
    for each in world.revisions.values():
        del each["metadata"]["ownerReferences"]
    assert len(world.settle().changes) == 2
    owners = [each["metadata"]["ownerReferences"][0]["uid"] for each in world.revisions.values()]
    assert owners == ["uid-of-example"] * 2
    assert world.plan().is_empty


def test_revisions_of_a_composition_that_was_deleted_are_waited_for() -> None:
    world = World(composition())
    world.write(1)
    world.obj["metadata"]["uid"] = "another"
    [refusal] = world.plan().refusals
    assert refusal.reason == "NotOwned"
    for each in world.revisions.values():
        each["metadata"]["deletionTimestamp"] = "2026-01-01T00:00:00Z"
    assert world.plan().is_empty
    world.revisions.clear()
    assert world.plan().create is not None


def test_content_with_the_name_of_other_content_is_refused() -> None:
    world = World(composition())
    name = world.write(1).current
    world.revisions[name]["metadata"]["labels"][CONTENT] = "0" * 63
    [refusal] = world.plan().refusals
    assert refusal.reason == "NameTaken"


def test_two_revisions_with_one_number_get_two() -> None:
    world = World(composition())
    for size in (1, 2, 3):
        world.write(size)
    for each in world.revisions.values():
        each["spec"]["revision"] = 7
    world.settle()
    assert len(set(world.numbers)) == 3
    assert world.newest["metadata"]["name"] == world.plan().current
    assert world.plan().is_empty


writes = st.tuples(st.integers(0, 2), st.sampled_from(["", "alpha", "beta"]))


@given(st.lists(writes, min_size=1, max_size=12))
@settings(max_examples=60, deadline=None)
def test_whatever_users_write_the_newest_revision_is_what_they_wrote(
    history: list[tuple[int, str]],
) -> None:
    world = World(composition())
    for size, channel in history:
        before = dict(world.revisions)
        highest = max(world.numbers, default=0)
        world.write(size, **({"channel": channel} if channel else {}))
        assert world.plan().is_empty
        newest = world.newest
        assert newest["spec"]["pipeline"] == world.obj["spec"]["pipeline"]
        assert labels_of(newest) == world.obj["metadata"]["labels"]
        assert len(set(world.numbers)) == len(world.revisions)
        assert newest["spec"]["revision"] in (highest, highest + 1)
        for name, there in before.items():
            now = world.revisions[name]
            kept = {**now["spec"], "revision": there["spec"]["revision"]}
            assert (kept, labels_of(now)) == (there["spec"], labels_of(there))
    assert len(world.revisions) == len(set(history))


@given(st.lists(writes, min_size=1, max_size=6), st.integers(0, 3))
@settings(max_examples=40, deadline=None)
def test_a_plan_that_was_interrupted_is_made_again_from_wherever_it_got_to(
    history: list[tuple[int, str]], done: int
) -> None:
    whole, broken = World(composition()), World(composition())
    for size, channel in history:
        labels = {"channel": channel} if channel else {}
        whole.write(size, **labels)
        broken.obj = whole.obj
        plan = broken.plan()
        if done:  # some of it was carried out before somebody pulled the plug
            for after in plan.changes[:done]:
                there = broken.revisions[after.name]
                patch = composition_revision_patch(
                    known_composition_revision(there), after, broken.obj
                )
                broken.revisions[after.name] = apply_merge_patch(there, patch)
        broken.settle()
        assert broken.revisions == whole.revisions
