"""Lineages: releases that never change under a number that is never used again."""

from __future__ import annotations

import copy
import pickle
from dataclasses import FrozenInstanceError, replace

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests import strategies as our

from polyver.core import (
    Dependent,
    Gate,
    KubeVersion,
    Lineage,
    MixedOrders,
    Notes,
    PolyverError,
    Release,
    SemVer,
    Serial,
    Stage,
    VersionTaken,
)


def release(text: str, content: str = "", **more: object) -> Release:
    return replace(Release(SemVer.parse(text), digest=content), **more)  # type: ignore[arg-type]


@given(st.permutations([release(text) for text in ("1.0.0", "1.2.0-rc.1", "1.2.0", "1.10.0")]))
def test_publishing_in_any_order_gives_the_same_lineage(releases: list[Release]) -> None:
    lineage = Lineage("web")
    for one in releases:
        lineage = lineage.publish(one)
    assert [known.name for known in lineage] == ["1.0.0", "1.2.0-rc.1", "1.2.0", "1.10.0"]


def test_the_same_version_with_other_content_is_refused_naming_both_digests() -> None:
    lineage = Lineage("web", [release("1.2.0", "sha256:a")])
    with pytest.raises(VersionTaken, match=r"1\.2\.0.*sha256:a.*not sha256:b.*new version"):
        lineage.publish(release("1.2.0", "sha256:b"))


def test_publishing_the_same_content_again_changes_nothing() -> None:
    lineage = Lineage("web", [release("1.2.0", "sha256:a")])
    assert lineage.publish(release("1.2.0", "sha256:a")) is lineage


def test_versions_that_differ_only_in_build_metadata_collide() -> None:
    lineage = Lineage("web", [release("1.2.0+one")])
    with pytest.raises(VersionTaken, match=r"1\.2\.0\+two .* same version as 1\.2\.0\+one"):
        lineage.publish(release("1.2.0+two"))


def test_a_removed_number_is_never_free_again() -> None:
    gone = release(
        "0.9.0", "sha256:a", stage=Stage.REMOVED, notes=Notes(removed_in=SemVer.parse("3.0.0"))
    )
    with pytest.raises(VersionTaken, match=r"was removed in 3\.0\.0 .* never used again"):
        Lineage("Report", [gone]).publish(release("0.9.0", "sha256:a"))


def test_a_lineage_has_one_order() -> None:
    with pytest.raises(MixedOrders, match=r"web mixes semantic versions .* revision numbers"):
        Lineage("web", [release("1.0.0"), Release(Serial(2), name="web-v2")])
    with pytest.raises(MixedOrders, match="API versions"):
        Lineage("web", [Release(KubeVersion.parse("v1")), release("1.0.0")])


def test_two_releases_cannot_have_one_name() -> None:
    with pytest.raises(PolyverError, match="two releases with the name fn-a"):
        Lineage("fn", [Release(Serial(1), name="fn-a"), Release(Serial(2), name="fn-a")])


def test_restating_changes_the_stage_and_never_the_content() -> None:
    lineage = Lineage("web", [release("1.0.0", "sha256:a"), release("2.0.0", "sha256:b")])
    restated = lineage.restate(release("1.0.0", "sha256:a", stage=Stage.DEPRECATED))
    assert [known.stage for known in restated] == [Stage.DEPRECATED, Stage.PUBLISHED]
    assert [known.stage for known in lineage] == [Stage.PUBLISHED, Stage.PUBLISHED]
    with pytest.raises(VersionTaken):
        lineage.restate(release("1.0.0", "sha256:c"))
    with pytest.raises(PolyverError, match=r"web has no 3\.0\.0"):
        lineage.restate(release("3.0.0"))


def test_what_is_gone_cannot_come_back_and_nothing_can_change_its_name() -> None:
    gone = Lineage("web", [release("1.0.0", stage=Stage.REMOVED)])
    with pytest.raises(VersionTaken, match="never used again"):
        gone.restate(release("1.0.0"))
    known = Lineage("web", [release("1.0.0+a")])
    for other in (release("1.0.0+b"), release("1.0.0+a", name="other")):
        with pytest.raises(VersionTaken):
            known.restate(other)


def test_publishing_the_same_version_in_another_way_is_refused_whichever_comes_first() -> None:
    plain, deprecated = release("1.0.0"), release("1.0.0", stage=Stage.DEPRECATED)
    for one, other in ((plain, deprecated), (deprecated, plain)):
        with pytest.raises(VersionTaken, match="another stage, other labels or other notes"):
            Lineage("web", [one]).publish(other)
    revisions = [Release(Serial(1), name="fn-a"), Release(Serial(1), name="fn-b")]
    with pytest.raises(VersionTaken, match="its number, 1, is that of fn-a"):
        Lineage("fn", revisions[:1]).publish(revisions[1])


def test_releases_gates_and_dependents_can_be_copied() -> None:
    gate = Gate("spring", 1, cohorts=({"tier": "test"},))
    one = release("1.0.0", labels={"a": "x"}, gate=gate)
    for original in (one, gate, Dependent("a", labels={"a": "x"})):
        assert copy.deepcopy(original) == original
        assert pickle.loads(pickle.dumps(original)) == original
        assert hash(copy.deepcopy(original)) == hash(original)


def test_a_release_cannot_be_changed() -> None:
    one = release("1.0.0", labels={"a": "x"})
    with pytest.raises(FrozenInstanceError):
        one.digest = "other"  # type: ignore[misc]
    with pytest.raises(TypeError):
        one.labels["a"] = "y"  # type: ignore[index]
    with pytest.raises(TypeError):
        one.labels.update(a="y")  # type: ignore[attr-defined]


def test_a_release_does_not_follow_the_mapping_it_was_made_from() -> None:
    labels = {"a": "x"}
    one = release("1.0.0", labels=labels)
    labels["a"] = "y"
    assert one.labels["a"] == "x"


@given(our.lineages)
def test_every_release_is_found_by_version_and_by_name(lineage: Lineage) -> None:
    for known in lineage:
        assert lineage.get(known.version) is known
        assert lineage.get(known.name) is known
    assert lineage.get("nothing") is None


def test_a_share_grows_without_losing_anyone() -> None:
    everyone = [Dependent(uid=f"uid-{number}") for number in range(1000)]
    inside = [
        {one.uid for one in everyone if Gate("spring", 1, share=share).admits(one)}
        for share in (0.0, 0.1, 0.5, 1.0)
    ]
    assert inside[0] < inside[1] < inside[2] < inside[3]
    assert inside[3] == {one.uid for one in everyone}
    assert 60 < len(inside[1]) < 140
    assert 430 < len(inside[2]) < 570


def test_who_has_no_uid_comes_last() -> None:
    assert not Gate("spring", 1, share=0.99).admits(Dependent())
    assert Gate("spring", 1, share=1.0).admits(Dependent())


def test_a_gate_by_labels_wants_all_of_them() -> None:
    gate = Gate("spring", 1, cohorts=({"team": "a", "tier": "test"},))
    assert gate.admits(Dependent(labels={"team": "a", "tier": "test", "more": "x"}))
    assert not gate.admits(Dependent(labels={"team": "a"}))


@pytest.mark.parametrize("share", [-0.1, 1.1, float("nan")])
def test_a_share_is_between_nothing_and_all(share: float) -> None:
    with pytest.raises(PolyverError, match="expected 0 to 1"):
        Gate("spring", 1, share=share)
