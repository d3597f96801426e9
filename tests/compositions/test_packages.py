"""What a Function means for its revisions: the rules one by one, and whatever users may do."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.compositions.samples import (
    SEED,
    by_label,
    by_name,
    digest_of,
    function,
    package,
    seed,
    use,
)

from polyver.compositions.names import PACKAGE, revision_name
from polyver.compositions.packages import (
    FunctionPlan,
    KnownFunctionRevision,
    StepFunctionUse,
    check_package,
    check_reference,
    check_revision,
    decide,
    ignored_fields,
    known_revision,
    read_function,
    results_of,
    revision_object,
    revision_patch,
    selected_in,
)
from polyver.compositions.packages._functions import lineage_of
from polyver.kube.objects import apply_merge_patch

Object = dict[str, Any]


@dataclass
class World:
    """A function and its revisions, changed by plans alone."""

    obj: Object
    revisions: list[KnownFunctionRevision] = field(default_factory=list)
    uses: list[StepFunctionUse] = field(default_factory=list)

    def plan(self) -> FunctionPlan:
        wanted = read_function(self.obj)
        return decide(wanted, self.revisions, digest_of(wanted.package), self.uses)

    def settle(self) -> FunctionPlan:
        plan = self.plan()
        self.revisions = results_of(plan, self.revisions)
        return plan

    def change(
        self, version: str = "", *, labels: dict[str, str] | None = None, **spec: Any
    ) -> FunctionPlan:
        """Have the Function written anew, and its plan carried out."""
        if version:
            spec["package"] = package(version)
        metadata = self.obj["metadata"]
        self.obj = {
            **self.obj,
            "metadata": {**metadata, "labels": metadata["labels"] if labels is None else labels},
            "spec": {**self.obj["spec"], **spec},
        }
        return self.settle()

    def set_active(self, version: str, *, active: bool) -> None:
        name = name_of(version)
        self.revisions = [
            replace(each, active=active) if each.name == name else each for each in self.revisions
        ]

    @property
    def numbers(self) -> dict[str, int]:
        return {version_of(each): each.number for each in self.revisions}

    @property
    def active(self) -> list[str]:
        return sorted(version_of(each) for each in self.revisions if each.active)

    def labels(self, version: str) -> dict[str, str]:
        [found] = [each for each in self.revisions if each.name == name_of(version)]
        return {key: text for key, text in found.labels.items() if key != PACKAGE}


VERSIONS = ["v1", "v2", "v3", "v4", "v5"]


def name_of(version: str) -> str:
    return revision_name("resize", digest_of(package(version)))


def version_of(known: KnownFunctionRevision) -> str:
    return next(each for each in VERSIONS if name_of(each) == known.name)


def world(*versions: str, **spec: Any) -> World:
    made = World(function(**spec))
    for version in versions:
        made.change(version)
    return made


def test_a_package_change_makes_the_next_revision_and_deactivates_the_last() -> None:
    made = world("v1", "v2", revisionHistoryLimit=4)
    assert made.numbers == {"v1": 1, "v2": 2}
    assert made.active == ["v2"]
    assert {each.labels[PACKAGE] for each in made.revisions} == {"resize"}


def test_the_same_package_again_makes_nothing() -> None:
    made = world("v1", "v2", revisionHistoryLimit=0)
    assert made.change("v2").is_empty


def test_the_seeds_function_has_two_active_revisions_of_four() -> None:
    made = World(seed())
    made.settle()
    for number in range(3, 8):
        made.obj = seed(version=f"v0.8.{number}", release_channel="alpha")
        made.settle()
    assert [each.number for each in made.revisions] == [3, 4, 5, 6]
    assert [each.number for each in made.revisions if each.active] == [5, 6]
    assert made.revisions[-1].labels["release-channel"] == "alpha"
    assert made.revisions[-1].name == revision_name(
        "function-patch-and-transform", digest_of(f"{SEED}:v0.8.7")
    )


def test_content_that_comes_back_is_the_highest_again_with_the_labels_of_now() -> None:
    made = world(revisionHistoryLimit=4)
    made.change("v1", labels={"channel": "old", "was": "here"})
    made.change("v2", labels={"channel": "other"})
    plan = made.change("v1", labels={"channel": "alpha"})
    assert plan.create is None
    assert made.numbers == {"v1": 3, "v2": 2}
    assert made.active == ["v1"]
    assert made.labels("v1") == {"channel": "alpha"}
    assert made.labels("v2") == {"channel": "other"}


def test_labels_alone_change_the_current_revision_only() -> None:
    made = world("v1", "v2", revisionHistoryLimit=4, activeRevisionLimit=2)
    plan = made.change(labels={"channel": "beta", PACKAGE: "another"})
    assert [each.name for each in plan.changes] == [name_of("v2")]
    assert made.labels("v1") == {}
    assert made.labels("v2") == {"channel": "beta"}
    assert all(each.labels[PACKAGE] == "resize" for each in made.revisions)
    made.change(labels={})
    assert made.labels("v2") == {}


def test_labels_that_others_gave_a_revision_stay() -> None:
    made = world("v1")
    [only] = made.revisions
    made.revisions = [replace(only, labels={**only.labels, "theirs": "x"})]
    made.change(labels={"channel": "beta"})
    made.change(labels={"other": "y"})
    assert made.labels("v1") == {"theirs": "x", "other": "y"}


def test_an_address_is_the_function_s_or_else_the_revision_s_own() -> None:
    made = world("v1")
    [only] = made.revisions
    made.revisions = [replace(only, address="localhost:1")]
    assert made.plan().is_empty
    there = {"polyver.dev/endpoint": "localhost:2"}
    made.obj["metadata"] |= {"annotations": there}
    made.settle()
    assert made.revisions[0].address == "localhost:2"
    made.obj["metadata"] |= {"annotations": {}}
    made.settle()
    assert made.revisions[0].address == ""
    assert made.plan().is_empty


def test_a_third_revision_deactivates_the_lowest_of_two() -> None:
    made = world("v1", "v2", "v3", revisionHistoryLimit=4, activeRevisionLimit=2)
    assert made.active == ["v2", "v3"]
    made.change(activeRevisionLimit=3)
    assert made.active == ["v1", "v2", "v3"]


def test_with_manual_new_revisions_are_inactive_and_users_decide() -> None:
    made = world("v1", "v2", "v3", revisionActivationPolicy="Manual", revisionHistoryLimit=0)
    assert made.active == []
    for version in ("v1", "v2", "v3"):
        made.set_active(version, active=True)
        assert made.plan().is_empty
    made.set_active("v3", active=False)
    assert made.plan().is_empty
    made.change(revisionActivationPolicy="Automatic")
    assert made.active == ["v3"]


def test_what_is_active_or_current_is_never_collected() -> None:
    made = world("v1", revisionActivationPolicy="Manual")
    made.set_active("v1", active=True)
    made.change("v2")
    assert made.numbers == {"v1": 1, "v2": 2}
    made.set_active("v1", active=False)
    made.settle()
    assert made.numbers == {"v2": 2}


def test_a_history_limit_of_0_keeps_all() -> None:
    made = world(*VERSIONS, revisionHistoryLimit=0)
    assert made.numbers == {version: number for number, version in enumerate(VERSIONS, 1)}


def test_what_is_selected_is_not_deactivated_and_the_plan_says_for_whom() -> None:
    made = world(revisionHistoryLimit=4)
    made.change("v1", labels={"channel": "stable"})
    made.uses = [use("shop-0123456", by_label(channel="stable")), use("blog-0123456")]
    plan = made.change("v2", labels={"channel": "alpha"})
    assert made.active == ["v1", "v2"]
    assert [str(each) for each in plan.postponed] == [
        f"{name_of('v1')} is not deactivated: selected by CompositionRevision shop-0123456"
    ]
    made.uses = [use("shop-0123456", by_label(channel="alpha")), use("blog-0123456")]
    assert not made.settle().postponed
    assert made.active == ["v2"]


def test_without_strict_references_nobody_is_asked() -> None:
    made = world("v1", revisionHistoryLimit=4, strictReferences=False)
    made.uses = [use("shop-0123456", by_name(name_of("v1")))]
    plan = made.change("v2")
    assert made.active == ["v2"]
    assert not plan.postponed
    assert plan.selected == {name_of("v1"): ("CompositionRevision shop-0123456",)}


def test_what_is_named_is_not_collected_though_it_is_inactive() -> None:
    made = world("v1", "v2", "v3", revisionHistoryLimit=3)
    made.uses = [use("shop-0123456", by_name(name_of("v1")))]
    plan = made.change("v4")
    assert made.numbers == {"v1": 1, "v2": 2, "v3": 3, "v4": 4}
    assert "is not collected: selected by CompositionRevision shop" in str(plan.postponed[0])
    made.uses = []
    made.settle()
    assert made.numbers == {"v2": 2, "v3": 3, "v4": 4}


def test_steps_that_ask_for_nothing_follow_and_hold_up_nothing() -> None:
    made = world("v1", "v2", revisionHistoryLimit=2)
    made.uses = [use(f"shop-{number:07}") for number in range(3)]
    plan = made.change("v3")
    assert made.active == ["v3"]
    assert not plan.postponed
    assert len(plan.selected[name_of("v3")]) == 3


def test_while_nobody_knows_who_uses_it_nothing_is_taken_away() -> None:
    made = world("v1", "v2", revisionHistoryLimit=2)
    wanted = read_function(function(version="v3", revisionHistoryLimit=2))
    plan = decide(wanted, made.revisions, digest_of(package("v3")), None)
    made.revisions = results_of(plan, made.revisions)
    assert made.numbers == {"v1": 1, "v2": 2, "v3": 3}
    assert made.active == ["v2", "v3"]
    assert "selected by users that cannot be listed at the moment" in str(plan.postponed[0])
    bare = replace(wanted, strict=False)
    assert len(results_of(decide(bare, made.revisions, None, None), made.revisions)) == 2


def test_another_function_s_users_hold_up_nothing() -> None:
    made = world("v1", revisionHistoryLimit=4)
    made.uses = [use("shop-0123456", by_name(name_of("v1")), function="other")]
    made.change("v2")
    assert made.active == ["v2"]


def test_without_a_digest_what_is_there_goes_on() -> None:
    made = world("v1", "v2", "v3", revisionHistoryLimit=3)
    wanted = read_function(function(version="v9", revisionHistoryLimit=2, activeRevisionLimit=2))
    plan = decide(wanted, made.revisions, None)
    made.revisions = results_of(plan, made.revisions)
    assert plan.current == ""
    assert made.numbers == {"v2": 2, "v3": 3}
    assert made.active == ["v2", "v3"]


def test_a_revision_that_is_being_deleted_is_waited_for() -> None:
    made = world("v1")
    made.revisions = [replace(each, deleting=True) for each in made.revisions]
    plan = made.plan()
    assert plan.is_empty
    assert plan.current == name_of("v1")


def test_two_revisions_with_one_number_get_two() -> None:
    made = world("v1", "v2", revisionHistoryLimit=0)
    made.revisions = [replace(each, number=7) for each in made.revisions]
    made.settle()
    assert len(set(made.numbers.values())) == 2
    assert made.numbers["v2"] > made.numbers["v1"] >= 7
    assert made.plan().is_empty


def test_content_with_the_name_of_other_content_is_refused() -> None:
    made = world("v1")
    [only] = made.revisions
    digits = only.digest.removeprefix("sha256:")
    made.revisions = [replace(only, digest=f"sha256:{digits[:12]}{'0' * 52}")]
    [refusal] = made.plan().refusals
    assert refusal.reason == "NameTaken"


# Whatever users do.

steps = st.one_of(
    st.tuples(st.just("package"), st.sampled_from(VERSIONS)),
    st.tuples(st.just("labels"), st.sampled_from(["", "alpha", "beta"])),
    st.tuples(st.just("history"), st.integers(0, 4)),
    st.tuples(st.just("active"), st.integers(1, 3)),
    st.tuples(st.just("policy"), st.sampled_from(["Automatic", "Manual"])),
    st.tuples(st.just("activate"), st.sampled_from(VERSIONS)),
    st.tuples(st.just("deactivate"), st.sampled_from(VERSIONS)),
    st.tuples(st.just("delete"), st.sampled_from(VERSIONS)),
    st.tuples(st.just("use"), st.sampled_from(["", "alpha", "beta", *VERSIONS])),
    st.tuples(st.just("leave"), st.none()),
)


def act(made: World, what: str, value: Any) -> None:
    """What a user does; nothing is decided yet."""
    metadata, spec = made.obj["metadata"], made.obj["spec"]
    fields = {
        "package": "package",
        "history": "revisionHistoryLimit",
        "active": "activeRevisionLimit",
        "policy": "revisionActivationPolicy",
    }
    if what in fields:
        written = package(value) if what == "package" else value
        made.obj = {**made.obj, "spec": {**spec, fields[what]: written}}
    elif what == "labels":
        labels = {"channel": value} if value else {}
        made.obj = {**made.obj, "metadata": {**metadata, "labels": labels}}
    elif what in ("activate", "deactivate"):
        made.set_active(value, active=what == "activate")
    elif what == "delete":
        made.revisions = [each for each in made.revisions if each.name != name_of(value)]
    elif what == "use":
        chosen = by_name(name_of(value)) if value in VERSIONS else by_label(channel=value)
        made.uses.append(use(f"c{len(made.uses)}", chosen) if value else use(f"c{len(made.uses)}"))
    else:
        made.uses = []


def interrupt(made: World, plan: FunctionPlan, after: int) -> None:
    """Carry out only the first few writes of a plan."""
    writes: list[FunctionPlan] = [FunctionPlan(create=plan.create)] if plan.create else []
    writes += [FunctionPlan(changes=(each,)) for each in plan.changes]
    writes += [FunctionPlan(collect=(each,)) for each in plan.collect]
    for write in writes[:after]:
        made.revisions = results_of(write, made.revisions)


def check_invariants(made: World, plan: FunctionPlan) -> None:
    wanted = read_function(made.obj)
    late = {each.revision for each in plan.postponed}
    numbers = sorted(made.numbers.values())
    assert len(set(numbers)) == len(numbers), "numbers are unique"
    by_number = [each.name for each in lineage_of("", made.revisions).releases]
    assert by_number[-1] == plan.current, "the content that is asked for is the highest"
    active = {each.name for each in made.revisions if each.active}
    if wanted.automatic:
        assert active - late == {*by_number[-wanted.active_limit :]} - late
        assert len(active - late) <= wanted.active_limit
    if wanted.history_limit:
        bound = max(wanted.history_limit, len(active | {plan.current}))
        assert len(made.revisions) <= bound + len(late - active)
    selected = selected_in(made.uses, lineage_of("resize", made.revisions))
    assert late <= selected.keys(), "only what is selected is late"


def identical(one: World, other: World) -> bool:
    def shown(made: World) -> Any:
        return sorted(made.revisions, key=lambda each: each.name)

    return bool(shown(one) == shown(other))


@settings(max_examples=150)
@given(st.lists(st.tuples(steps, st.none() | st.integers(0, 3)), max_size=12))
def test_any_sequence_of_changes_and_crashes_ends_where_the_rules_say(
    sequence: list[tuple[tuple[str, Any], int | None]],
) -> None:
    made = World(function(version="v1"))
    highest: dict[str, int] = {}
    for (what, value), crash in sequence:
        act(made, what, value)
        wanted = read_function(made.obj)
        if wanted.history_limit and wanted.active_limit > wanted.history_limit:
            assert check_package(made.obj, several=True)  # and so never gets here
            act(made, "active", 1)
        if crash is not None:
            interrupt(made, made.plan(), crash)
        plan = made.settle()
        check_invariants(made, plan)
        assert made.plan().is_empty, "a plan that was carried out leaves nothing to do"
        for version, number in made.numbers.items():
            if what != "delete":
                assert number >= highest.get(version, 0), "numbers never go down"
        highest = made.numbers


@settings(max_examples=60)
@given(st.lists(steps, max_size=10), st.integers(0, 4), steps)
def test_an_interrupted_plan_ends_where_it_would_have_without(
    before: list[tuple[str, Any]], after: int, last: tuple[str, Any]
) -> None:
    worlds = World(function(version="v1")), World(function(version="v1"))
    for made in worlds:
        for step in before:
            act(made, *step)
            act(made, "active", 1)
            made.settle()
        act(made, *last)
        act(made, "active", 1)
    whole, broken = worlds
    interrupt(broken, broken.plan(), after)
    whole.settle()
    broken.settle()
    assert identical(whole, broken)


@given(st.data())
def test_a_patch_makes_of_a_revision_what_the_plan_says(data: st.DataObject) -> None:
    owner = function(version="v1", labels={"a": "b"})
    owner["metadata"]["uid"] = "u"
    known = st.builds(
        KnownFunctionRevision,
        name=st.just(name_of("v1")),
        number=st.integers(1, 9),
        digest=st.just(digest_of(package("v1"))),
        active=st.booleans(),
        labels=st.dictionaries(st.sampled_from("abc"), st.sampled_from("xy")),
        copied=st.frozensets(st.sampled_from("abc")),
        address=st.sampled_from(["", "localhost:1"]),
    )
    before, after = data.draw(known), data.draw(known)
    stored = revision_object(before, owner)
    patch: Callable[[Any, Any], Any] = apply_merge_patch
    assert known_revision(patch(stored, revision_patch(before, after))) == after
    assert revision_patch(before, before) == {}


# What is refused.


@pytest.mark.parametrize(
    ("obj", "complaint"),
    [
        (function(activeRevisionLimit=2), "more than revisionHistoryLimit keeps, 1"),
        (
            function(activeRevisionLimit=5, revisionHistoryLimit=4),
            "raise revisionHistoryLimit to 5",
        ),
        (
            function(kind="Provider", activeRevisionLimit=2, revisionHistoryLimit=0),
            "a Provider has",
        ),
        (function(kind="Configuration", activeRevisionLimit=3), "only functions may have several"),
        (function(name="x" * 51), "more than 50"),
        (function(name="a.b"), "Services cannot be named after its revisions"),
    ],
)
def test_a_package_that_breaks_a_rule_is_refused(obj: Object, complaint: str) -> None:
    [refusal] = check_package(obj, several=True)
    assert complaint in str(refusal)
    assert refusal.at.startswith(("spec.activeRevisionLimit", "metadata.name"))


@pytest.mark.parametrize(
    "obj",
    [
        seed(),
        function(activeRevisionLimit=5, revisionHistoryLimit=0),
        function(activeRevisionLimit=2, revisionHistoryLimit=2),
        function(kind="Provider"),
        function(name="a" * 50),
    ],
)
def test_other_packages_are_taken(obj: Object) -> None:
    assert check_package(obj, several=True) == []


def test_without_the_feature_a_limit_other_than_1_is_refused() -> None:
    [refusal] = check_package(seed(), several=False)
    assert refusal.reason == "FeatureOff"
    assert check_package(function(), several=False) == []


@pytest.mark.parametrize(
    "text",
    [
        f"{SEED}:v0.8.2",
        f"{SEED}@sha256:{'0' * 64}",
        f"{SEED}:v1@sha256:{'0' * 64}",
        "localhost:5000/a/b_c/d-e",
        "resize",
        "file:functions/resize",
        "file:/dist/resize-1.0-py3-none-any.whl",
        "pypi:resize==1.0",
        "pypi:resize == 1.0.post1",
    ],
)
def test_references_of_packages(text: str) -> None:
    assert check_reference(text) == []


@pytest.mark.parametrize(
    "text",
    ["", "Resize", "a b", "a//b", "a:", "a@sha256:1", "file:", "pypi:", "pypi:a>=1", "x" * 5000],
)
def test_what_is_no_reference_of_a_package(text: str) -> None:
    [refusal] = check_reference(text)
    assert (refusal.reason, refusal.at) == ("InvalidPackage", "spec.package")


def revision(**spec: Any) -> Object:
    known = KnownFunctionRevision(
        name_of("v1"), 1, digest_of(package("v1")), True, {PACKAGE: "resize"}
    )
    owner = function()
    owner["metadata"]["uid"] = "u"
    made = revision_object(known, owner)
    return {**made, "spec": {**made["spec"], **spec}}


def test_a_revision_changes_its_state_and_its_number_alone() -> None:
    others = [KnownFunctionRevision(name_of("v2"), 4, digest_of(package("v2")), True)]
    old = revision()
    assert check_revision(revision(desiredState="Inactive", revision=5), old, others) == []
    for change, place in (
        ({"image": package("v3")}, "spec.image"),
        ({"digest": "sha256:0"}, "spec.digest"),
        ({"commonLabels": {"a": "b"}}, "spec.commonLabels"),
        ({"revision": 4}, "spec.revision"),
        ({"revision": 6}, "spec.revision"),
    ):
        [refusal] = check_revision(revision(**change), old, others)
        assert refusal.at == place
    moved = {**old, "metadata": {**old["metadata"], "labels": {PACKAGE: "other"}}}
    [refusal] = check_revision(moved, old, others)
    assert refusal.at == f"metadata.labels[{PACKAGE}]"


def test_a_revision_has_a_name_of_its_function_and_a_number_of_its_own() -> None:
    made = revision()
    assert check_revision(made, None, []) == []
    for name in ("resize", "resize-1234", "other-0123456789ab", "resize-0123456789ab0"):
        wrong = {**made, "metadata": {**made["metadata"], "name": name}}
        [refusal] = check_revision(wrong, None, [])
        assert refusal.at == "metadata.name"
    [refusal] = check_revision(made, None, [KnownFunctionRevision("resize-0", 1, "", True)])
    assert refusal.at == "spec.revision"
    bare = {**made, "metadata": {"name": made["metadata"]["name"]}}
    [refusal] = check_revision(bare, None, [])
    assert refusal.reason == "NoPackage"


def test_fields_of_functions_that_have_no_effect_are_warned_about() -> None:
    names = ("runtimeConfigRef", "controllerConfigRef", "packagePullSecrets", "commonLabels")
    obj = function("1.0.0") | {"spec": {key: {"name": "x"} for key in names}}
    assert [each.partition(" has no effect: ")[0] for each in ignored_fields(obj)] == [
        f"spec.{name}" for name in names
    ]
    assert ignored_fields(function("1.0.0")) == []
