"""Which Composition, which revision of it and which function revisions an object gets."""

from __future__ import annotations

import copy
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.compositions.composing import (
    ALPHA,
    FUNCTION,
    GROUP,
    SEED_BUCKET,
    SEED_COMPOSITION,
    bucket,
    composite,
    composition,
    definition,
    function_revision,
    manifest,
    name_of,
    step,
)

from polyver.capability import Refusal
from polyver.capability.gates import gate_annotations
from polyver.compositions.decisions import (
    ChosenComposition,
    FunctionLineages,
    ResolvedStep,
    candidate_of,
    choose_composition,
    choose_revision,
    composite_entry,
    composition_changes,
    composition_lineage,
    composition_revision_object,
    known_composition_revision,
    read_definition,
    references_patch,
    resolve_steps,
)
from polyver.compositions.names import PREVIOUS
from polyver.compositions.packages import (
    known_revision,
    lineage_of,
    pipeline_of,
    revision_used,
    selected_in,
    uses_in,
)
from polyver.core import Gate, Index, Resolution, affected
from polyver.kube.objects import apply_merge_patch

Object = dict[str, Any]


# Compositions.


def chosen(obj: Object, *there: Object, **defined: Any) -> ChosenComposition:
    about = read_definition(definition(**defined))
    return choose_composition(composite(obj, **defined), about, map(candidate_of, there))


def refusal_of(obj: Object, *there: Object, **defined: Any) -> Refusal:
    with pytest.raises(Refusal) as caught:
        chosen(obj, *there, **defined)
    return caught.value


OTHER_KIND = composition("other", api_version=f"{GROUP}/v9")


def test_the_only_composition_of_a_kind_is_taken() -> None:
    found = chosen(bucket(), composition("a"), OTHER_KIND)
    assert (found.composition, found.reason) == ("a", "the only composition of AcmeBucket")


def test_among_several_the_definitions_default_is_taken() -> None:
    there = composition("a"), composition("b")
    assert chosen(bucket(), *there, defaultCompositionRef={"name": "b"}).composition == "b"
    missing = refusal_of(bucket(), *there, defaultCompositionRef={"name": "c"})
    assert "spec.defaultCompositionRef" in missing.at
    assert missing.hint == "there are a, b"


def test_without_a_default_the_candidates_are_named() -> None:
    found = refusal_of(bucket(), composition("b"), composition("a"), OTHER_KIND)
    assert found.reason == "CompositionNotChosen"
    assert str(found) == (
        "AcmeBucket has 2 compositions: a, b (spec.compositionRef); name one of them"
    )
    assert refusal_of(bucket(), OTHER_KIND).reason == "CompositionNotFound"


def test_a_composition_is_named() -> None:
    asking = bucket(compositionRef={"name": "b"})
    there = composition("a"), composition("b")
    assert chosen(asking, *there, defaultCompositionRef={"name": "a"}).composition == "b"
    assert refusal_of(asking, composition("a")).reason == "CompositionNotFound"
    wrong = refusal_of(bucket(compositionRef={"name": "other"}), OTHER_KIND)
    assert wrong.reason == "CompositionNotCompatible"
    assert f"{GROUP}/v9" in wrong.fact


def test_a_composition_is_chosen_by_labels_the_first_by_name() -> None:
    asking = bucket(compositionSelector={"matchLabels": {"tier": "gold"}})
    gold = {"tier": "gold", "more": "x"}
    there = composition("c", labels=gold), composition("a"), composition("b", labels=gold)
    found = chosen(asking, *there, defaultCompositionRef={"name": "a"})
    assert found.composition == "b"
    assert found.warnings == ("tier=gold is on b, c: b, the first by name, is used",)
    assert chosen(asking, there[0]).warnings == ()
    assert refusal_of(asking, composition("a")).at == "spec.compositionSelector"


def test_an_enforced_composition_wins_and_whoever_asks_for_another_is_told() -> None:
    there = composition("a"), composition("b")
    found = chosen(
        bucket(compositionRef={"name": "a"}), *there, enforcedCompositionRef={"name": "b"}
    )
    assert found.composition == "b"
    assert "requests a" in found.warnings[0]
    assert chosen(bucket(), *there, enforcedCompositionRef={"name": "b"}).warnings == ()
    assert "enforced" in refusal_of(bucket(), enforcedCompositionRef={"name": "b"}).at


# Revisions of compositions.


def revisions_of(*contents: tuple[str, dict[str, str]], name: str = "example") -> list[Object]:
    """The revisions after a Composition was written so, in this order."""
    found: dict[str, Object] = {}
    for text, labels in contents:
        obj = composition(name, step(input={"text": text}), labels=labels)
        known = [known_composition_revision(each) for each in found.values()]
        plan = composition_changes(obj, known)
        assert plan.create is not None
        made = composition_revision_object(plan.create, obj)
        found[made["metadata"]["name"]] = made
    return [*found.values()]


def names(revisions: list[Object]) -> list[str]:
    return [each["metadata"]["name"] for each in revisions]


def revision_for(obj: Object, revisions: list[Object], **defined: Any) -> Resolution:
    return choose_revision(composite(obj, **defined), "example", revisions)


BETA = {"release-channel": "beta"}


def test_the_newest_revision_is_taken_and_followed() -> None:
    there = revisions_of(("1", {}), ("2", {}))
    old = {"name": names(there)[0]}
    assert revision_for(bucket(), there).release.name == names(there)[1]
    found = revision_for(bucket(compositionRevisionRef=old), there)
    assert (found.release.name, found.reason) == (names(there)[1], "newest revision")


def test_automatic_follows_the_newest_that_the_selector_matches() -> None:
    there = revisions_of(("1", ALPHA), ("2", BETA), ("3", ALPHA), ("4", BETA))
    asking = bucket(compositionRevisionSelector={"matchLabels": ALPHA})
    found = revision_for(asking, there)
    assert (found.release.name, found.reason) == (
        names(there)[2],
        "newest revision with release-channel=alpha",
    )


def test_manual_keeps_what_it_has_until_the_selector_does_not_match() -> None:
    there = revisions_of(("1", ALPHA), ("2", BETA), ("3", ALPHA))
    first, second, third = names(there)
    mine: Object = {"compositionUpdatePolicy": "Manual", "compositionRevisionRef": {"name": first}}
    assert revision_for(bucket(**mine), there).release.name == first
    alpha: Object = {"compositionRevisionSelector": {"matchLabels": ALPHA}}
    assert revision_for(bucket(**mine, **alpha), there).release.name == first
    beta: Object = {"compositionRevisionSelector": {"matchLabels": BETA}}
    assert revision_for(bucket(**mine, **beta), there).release.name == second
    moved = {**mine, "compositionRevisionRef": {"name": third}}
    assert revision_for(bucket(**moved), there).release.name == third


def test_the_seeds_bucket_moves_to_alpha_once() -> None:
    there = revisions_of(("1", {}))
    first = names(there)[0]
    before = composite(bucket(compositionUpdatePolicy="Manual"))
    obj = apply_merge_patch(copy.deepcopy(before.obj), references_patch(before, "example", first))
    assert revision_for(obj, revisions_of(("1", {}), ("2", ALPHA))).release.name == first
    asked = apply_merge_patch(obj, {"spec": manifest(SEED_BUCKET)["spec"]})
    there = revisions_of(("1", {}), ("2", ALPHA))
    second = revision_for(asked, there)
    assert second.release.name == names(there)[1]
    noted = references_patch(composite(asked), "example", second.release.name)
    assert noted == {
        "metadata": {"annotations": {PREVIOUS: first}},
        "spec": {"compositionRevisionRef": {"name": names(there)[1]}},
    }
    moved = apply_merge_patch(asked, noted)
    newer = revisions_of(("1", {}), ("2", ALPHA), ("3", ALPHA))
    assert revision_for(moved, newer).release.name == names(there)[1]
    assert references_patch(composite(moved), "example", names(there)[1]) == {}


def test_the_definition_says_whether_those_are_manual_that_do_not_say() -> None:
    there = revisions_of(("1", {}), ("2", {}))
    mine = bucket(compositionRevisionRef={"name": names(there)[0]})
    assert revision_for(mine, there).release.name == names(there)[1]
    manual = {"defaultCompositionUpdatePolicy": "Manual"}
    assert revision_for(mine, there, **manual).release.name == names(there)[0]


@pytest.mark.parametrize(
    ("spec", "reason", "fact"),
    [
        (
            {"compositionRevisionSelector": {"matchLabels": BETA}},
            "RevisionNotFound",
            "example has no revision with release-channel=beta",
        ),
        (
            {"compositionUpdatePolicy": "Manual", "compositionRevisionRef": {"name": "gone-1"}},
            "RevisionNotFound",
            "composition example has no revision gone-1",
        ),
    ],
)
def test_a_revision_that_is_not_there_is_an_error(spec: Object, reason: str, fact: str) -> None:
    with pytest.raises(Refusal) as caught:
        revision_for(bucket(**spec), revisions_of(("1", ALPHA)))
    assert (caught.value.reason, caught.value.fact) == (reason, fact)
    assert "known: example-" in caught.value.hint


def test_another_compositions_revision_is_an_error_that_says_so() -> None:
    others = revisions_of(("1", {}), name="other")
    mine = {"name": names(others)[0]}
    asking = bucket(compositionUpdatePolicy="Manual", compositionRevisionRef=mine)
    with pytest.raises(Refusal, match="is a revision of other, not of example"):
        revision_for(asking, [*revisions_of(("1", {})), *others])


def test_a_revision_for_another_version_of_the_kind_is_an_error() -> None:
    [only] = revisions_of(("1", {}))
    only["spec"]["compositeTypeRef"]["apiVersion"] = f"{GROUP}/v9"
    with pytest.raises(Refusal, match=rf"is for {GROUP}/v9 AcmeBucket"):
        revision_for(bucket(), [only])


def test_the_newer_scopes_are_read_and_written_in_one_place() -> None:
    there = revisions_of(("1", ALPHA), ("2", {}))
    selector = {"compositionRevisionSelector": {"matchLabels": ALPHA}}
    asking = bucket(namespace="shop", crossplane=selector)
    assert revision_for(asking, there, scope="Namespaced").release.name == names(there)[0]
    patch = references_patch(composite(asking, scope="Namespaced"), "example", names(there)[0])
    assert patch["spec"]["crossplane"]["compositionRef"] == {"name": "example"}
    assert composite(asking, scope="Namespaced").shown == "AcmeBucket shop/my-bucket"


policies = st.sampled_from([{}, {"compositionUpdatePolicy": "Manual"}])
selectors = st.sampled_from([{}, ALPHA, BETA])


@given(
    st.lists(st.sampled_from([{}, ALPHA, BETA]), min_size=2, max_size=5),
    st.lists(st.tuples(policies, selectors, st.integers(-1, 3)), min_size=1, max_size=6),
)
@settings(max_examples=60, deadline=None)
def test_those_that_move_with_a_new_revision_are_those_that_get_another(
    history: list[dict[str, str]], asking: list[tuple[Object, dict[str, str], int]]
) -> None:
    there = revisions_of(*((str(number), labels) for number, labels in enumerate(history)))
    before = composition_lineage("example", map(known_composition_revision, there[:-1]))
    after = composition_lineage("example", map(known_composition_revision, there))
    index, differing = Index(), set()
    for number, (policy, labels, used) in enumerate(asking):
        spec = {**policy, "compositionRevisionSelector": {"matchLabels": labels}}
        if 0 <= used < len(there) - 1:
            spec["compositionRevisionRef"] = {"name": names(there)[used]}
        obj = bucket(**spec)
        obj["metadata"]["name"] = f"b{number}"
        index.put(*composite_entry(composite(obj), after))
        try:
            found = revision_for(obj, there).release.name
        except Refusal:
            continue
        if found != composite(obj).revision:
            differing.add(f"AcmeBucket b{number}")
    moves = affected(index, before, after).moves
    assert {move.dependent.name for move in moves} == differing


# Steps.


def steps_of(
    *steps: Object, there: list[Object], obj: Object | None = None, several: bool = True
) -> tuple[ResolvedStep, ...]:
    revision = {
        "metadata": {"name": "example-0123456"},
        "spec": composition("example", *steps)["spec"],
    }
    return resolve_steps(revision, composite(obj), FunctionLineages(there), several=several)


def step_refusal(asking: Object, *there: Object, several: bool = True) -> Refusal:
    with pytest.raises(Refusal) as caught:
        steps_of(step("first", "other"), asking, there=[*there, OTHER], several=several)
    assert caught.value.at.startswith("CompositionRevision example-0123456, spec.pipeline[1]")
    return caught.value


def by_name(name: str) -> Object:
    return {"functionRevisionRef": {"name": name}}


def by_labels(**labels: str) -> Object:
    return {"functionRevisionSelector": {"matchLabels": labels}}


OTHER = function_revision("x", 1, function="other")


def test_a_step_gets_the_highest_active_revision() -> None:
    there = [
        function_revision("a", 1),
        function_revision("b", 10),
        function_revision("c", 9),
        function_revision("d", 11, active=False),
        OTHER,
    ]
    [found] = steps_of(step(), there=there)
    assert (found.revision, found.endpoint) == (name_of("b"), "127.0.0.1:9010")
    assert found.reason == "highest-numbered active revision"
    assert found.record == {
        "step": "run",
        "function": FUNCTION,
        "revision": name_of("b"),
        "digest": there[1]["spec"]["digest"],
    }


def test_the_seeds_step_gets_the_revision_with_its_labels() -> None:
    there = [
        function_revision("a", 1, labels=ALPHA),
        function_revision("b", 2, labels=ALPHA),
        function_revision("c", 3, labels=ALPHA, active=False),
        function_revision("d", 4),
        function_revision("e", 5, labels=ALPHA, function="other"),
    ]
    seed = manifest(SEED_COMPOSITION)
    [found] = steps_of(*seed["spec"]["pipeline"], there=there)
    assert found.revision == name_of("b")
    assert found.input == seed["spec"]["pipeline"][0]["input"]


def test_a_step_names_a_revision_and_that_wins_over_labels() -> None:
    there = [function_revision("a", 1), function_revision("b", 2, labels=ALPHA)]
    [found] = steps_of(step(**by_name(name_of("a"))), there=there)
    assert (found.revision, found.warnings) == (name_of("a"), ())
    both = {**by_name(name_of("a")), "functionRevisionSelector": {"matchLabels": ALPHA}}
    [found] = steps_of(step(**both), there=there)
    assert found.revision == name_of("a")
    assert found.warnings[0].endswith("has no effect: functionRevisionRef is used")


@pytest.mark.parametrize(
    ("asking", "reason", "fact"),
    [
        (by_name(name_of("b")), "RevisionInactive", f"{name_of('b')} is inactive"),
        (
            by_name(name_of("x", "other")),
            "OtherFunctionsRevision",
            f"{name_of('x', 'other')} is a revision of other, not of {FUNCTION}",
        ),
        (by_name("gone"), "RevisionNotFound", f"function {FUNCTION} has no revision gone"),
        (
            by_labels(channel="none"),
            "NoRevisionMatches",
            f"function {FUNCTION} has no revision with channel=none",
        ),
        (
            by_labels(channel="old"),
            "MatchingRevisionsInactive",
            f"function {FUNCTION} has no active revision with channel=old",
        ),
    ],
)
def test_each_cause_has_its_own_words(asking: Object, reason: str, fact: str) -> None:
    there = (
        function_revision("a", 1),
        function_revision("b", 2, labels={"channel": "old"}, active=False),
    )
    found = step_refusal(step(**asking), *there)
    assert (found.reason, found.fact) == (reason, fact)
    assert found.hint


def test_a_function_without_active_revisions_or_without_any_is_an_error() -> None:
    inactive = function_revision("a", 1, active=False)
    found = step_refusal(step(), inactive)
    assert found.reason == "NoActiveRevision"
    assert found.hint.startswith(f"{name_of('a')} is inactive: activate one")
    assert step_refusal(step()).reason == "FunctionNotInstalled"


def test_without_the_feature_a_step_that_asks_is_refused_and_others_are_not() -> None:
    there = [function_revision("a", 1)]
    for asking in (by_name(name_of("a")), by_labels(channel="alpha")):
        assert step_refusal(step(**asking), *there, several=False).reason == "FeatureOff"
    [found] = steps_of(step(), there=there, several=False)
    assert found.revision == name_of("a")


def test_what_a_rollout_holds_is_only_for_those_whom_it_admits() -> None:
    there = [
        function_revision("a", 1, labels={"channel": "beta"}),
        function_revision("b", 2, labels=ALPHA),
    ]
    gate = gate_annotations(Gate("canary", 2, cohorts=({"tier": "test"},)))
    there[1]["metadata"]["annotations"] = gate
    installed = FunctionLineages(there)

    def calls(obj: Object, **asking: Any) -> str:
        revision = {
            "metadata": {"name": "example-0123456"},
            "spec": composition("example", step(**asking))["spec"],
        }
        [found] = resolve_steps(revision, composite(obj), installed, several=True)
        return found.revision

    admitted = bucket(labels={"tier": "test"})
    assert (calls(bucket()), calls(admitted)) == (name_of("a"), name_of("b"))
    used = {"step": "run", "function": FUNCTION, "revision": name_of("b")}
    kept = {**bucket(), "status": {"pipeline": [{**used, "digest": there[1]["spec"]["digest"]}]}}
    assert calls(kept, functionRevisionSelector={"matchLabels": ALPHA}) == name_of("b")
    with pytest.raises(Refusal, match="held by rollout canary, step 2") as caught:
        calls(bucket(), functionRevisionSelector={"matchLabels": ALPHA})
    assert caught.value.reason == "RevisionHeld"
    assert calls(bucket(), **by_name(name_of("b"))) == name_of("b"), "it asks for this revision"
    revisions = revisions_of(("1", {}), ("2", {}))
    revisions[1]["metadata"]["annotations"] = gate
    for obj, number in ((bucket(), 0), (admitted, 1)):
        found = choose_revision(composite(obj), "example", revisions)
        assert found.release.name == names(revisions)[number]


# Who is asked to wait is who gets it.

CONTENTS = ("a", "b", "c", "d")
functions = st.lists(
    st.tuples(st.sampled_from(CONTENTS), st.booleans(), st.sampled_from(["", "alpha", "beta"])),
    unique_by=lambda each: each[0],
    max_size=4,
)
asks: st.SearchStrategy[Object] = st.one_of(
    st.just({}),
    st.sampled_from(CONTENTS).map(lambda each: by_name(name_of(each))),
    st.sampled_from(["alpha", "beta"]).map(lambda each: by_labels(channel=each)),
)


@given(functions, st.lists(asks, min_size=1, max_size=3))
@settings(max_examples=150, deadline=None)
def test_the_revisions_that_are_kept_for_a_composition_are_those_that_it_gets(
    known: list[tuple[str, bool, str]], asking: list[Object]
) -> None:
    there = [
        function_revision(
            content, number, active=active, labels={"channel": channel} if channel else {}
        )
        for number, (content, active, channel) in enumerate(known, 1)
    ]
    steps = [step(f"s{number}", **each) for number, each in enumerate(asking)]
    revision = {
        "metadata": {"name": "example-0123456"},
        "spec": {**composition("example", *steps)["spec"], "revision": 1},
    }
    obj = bucket(compositionRevisionRef={"name": "example-0123456"})
    uses = uses_in([pipeline_of(revision)], {revision_used(obj)})
    held = selected_in(uses, lineage_of(FUNCTION, map(known_revision, there)))
    try:
        found = resolve_steps(revision, composite(obj), FunctionLineages(there), several=True)
    except Refusal:
        return
    assert {each.revision for each in found} == held.keys()
