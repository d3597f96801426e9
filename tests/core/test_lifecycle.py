"""Stages: legal transitions, and a clock that counts releases."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from polyver.core import (
    API_STAGES,
    DEFINITION_STAGES,
    FUNCTION_STAGES,
    REVISION_STAGES,
    Contradiction,
    EarlyRemoval,
    IllegalTransition,
    KubeVersion,
    Lifecycle,
    Notes,
    Release,
    SemVer,
    Stage,
    advance,
    check_dates,
    check_releases,
    check_removal,
    next_stage,
)

S = Stage


@pytest.mark.parametrize(
    ("lifecycle", "legal"),
    [
        (
            API_STAGES,
            [(S.SERVED, S.DEPRECATED), (S.DEPRECATED, S.UNSERVED), (S.UNSERVED, S.DROPPED)],
        ),
        (
            FUNCTION_STAGES,
            [
                (S.CANDIDATE, S.STABLE),
                (S.CANDIDATE, S.DEPRECATED),
                (S.STABLE, S.DEPRECATED),
                (S.DEPRECATED, S.REMOVED),
            ],
        ),
        (DEFINITION_STAGES, [(S.PUBLISHED, S.DEPRECATED), (S.DEPRECATED, S.REMOVED)]),
        (REVISION_STAGES, [(S.INACTIVE, S.ACTIVE), (S.ACTIVE, S.INACTIVE)]),
    ],
)
def test_only_the_legal_transitions_are_taken(
    lifecycle: Lifecycle, legal: list[tuple[Stage, Stage]]
) -> None:
    for before in Stage:
        for after in Stage:
            release = Release(SemVer.parse("1.0.0"), stage=before)
            if (before, after) in legal:
                assert advance(release, after, lifecycle).stage is after
            else:
                with pytest.raises(IllegalTransition):
                    advance(release, after, lifecycle)


def test_an_illegal_transition_says_what_is_legal() -> None:
    release = Release(SemVer.parse("0.1.0"), stage=S.STABLE, name="v0.1.0")
    with pytest.raises(IllegalTransition, match=r"v0\.1\.0 is stable .* removed; .* deprecated"):
        advance(release, S.REMOVED, FUNCTION_STAGES)
    gone = Release(SemVer.parse("0.1.0"), stage=S.REMOVED)
    with pytest.raises(IllegalTransition, match="last stage"):
        advance(gone, S.STABLE, FUNCTION_STAGES)


def test_advancing_may_add_notes_and_keeps_them_otherwise() -> None:
    release = Release(SemVer.parse("1.0.0"), notes=Notes(use="2.0.0"))
    assert advance(release, S.DEPRECATED, DEFINITION_STAGES).notes.use == "2.0.0"
    noted = advance(release, S.DEPRECATED, DEFINITION_STAGES, notes=Notes(use="3.0.0"))
    assert noted.notes.use == "3.0.0"


def releases(*texts: str) -> list[SemVer]:
    return [SemVer.parse(text) for text in texts]


@pytest.mark.parametrize(
    ("so_far", "stage"),
    [
        ([], S.DEPRECATED),
        (["0.2.0"], S.DEPRECATED),
        (["0.2.0", "0.3.9"], S.DEPRECATED),
        (["0.2.0", "0.3.0", "0.4.0"], S.REMOVED),
        (["0.2.0", "0.3.0", "0.5.0"], S.REMOVED),
    ],
)
def test_the_clock_counts_releases(so_far: list[str], stage: Stage) -> None:
    notes = Notes(since=SemVer.parse("0.2.0"), removed_in=SemVer.parse("0.4.0"))
    release = Release(SemVer.parse("0.0.0"), stage=S.DEPRECATED, notes=notes)
    assert next_stage(release, releases(*so_far)) is stage


def test_the_clock_takes_a_deprecated_api_version_out_of_service() -> None:
    notes = Notes(removed_in=SemVer.parse("0.4.0"))
    version = Release(KubeVersion.parse("v1beta1"), stage=S.DEPRECATED, notes=notes)
    assert next_stage(version, releases("0.4.0")) is S.UNSERVED


@pytest.mark.parametrize(
    ("stage", "since", "removed_in", "message"),
    [
        (S.DEPRECATED, None, "0.4.0", "without the field since"),
        (S.REMOVED, None, None, "without the field removedIn"),
        (S.REMOVED, None, "0.9.0", r"removed in 0\.9\.0, but now is 0\.3\.0"),
        (S.STABLE, "0.1.0", None, "stable, and cannot have since or removedIn"),
        (S.CANDIDATE, None, "0.9.0", "candidate, and cannot have"),
        (S.DEPRECATED, "0.1.5", None, r"0\.1\.5 is not one of the releases"),
    ],
)
def test_dates_that_do_not_fit_the_stage_are_refused(
    stage: Stage, since: str | None, removed_in: str | None, message: str
) -> None:
    notes = Notes(
        since=SemVer.parse(since) if since else None,
        removed_in=SemVer.parse(removed_in) if removed_in else None,
    )
    release = Release(SemVer.parse("0.0.0"), stage=stage, notes=notes)
    with pytest.raises(Contradiction, match=message):
        check_dates("Report v0.0.0", release, releases("0.1.0", "0.2.0", "0.3.0"))


def test_dates_that_fit_are_fine() -> None:
    for stage, notes in (
        (S.STABLE, Notes()),
        (S.DEPRECATED, Notes(since=SemVer.parse("0.1.0"), removed_in=SemVer.parse("9.0.0"))),
        (S.REMOVED, Notes(removed_in=SemVer.parse("0.2.0"))),
    ):
        release = Release(SemVer.parse("0.0.0"), stage=stage, notes=notes)
        check_dates("Report", release, releases("0.1.0", "0.2.0"))


@pytest.mark.parametrize("texts", [[], ["0.2.0", "0.1.0"], ["0.1.0", "0.1.0"]])
def test_releases_must_be_in_order(texts: list[str]) -> None:
    with pytest.raises(Contradiction):
        check_releases(releases(*texts))


@given(st.sampled_from([stage for stage in Stage if stage is not S.DEPRECATED]))
def test_the_clock_moves_only_what_is_deprecated(stage: Stage) -> None:
    release = Release(
        SemVer.parse("0.0.0"), stage=stage, notes=Notes(removed_in=SemVer.parse("0.1.0"))
    )
    assert next_stage(release, releases("9.0.0")) is stage


def test_what_has_no_end_stays_deprecated() -> None:
    release = Release(SemVer.parse("0.0.0"), stage=S.DEPRECATED)
    assert next_stage(release, releases("9.0.0")) is S.DEPRECATED


@pytest.mark.parametrize(
    ("since", "removed_in", "so_far", "notice"),
    [
        ("0.2.0", "0.2.0", ["0.1.0", "0.2.0"], 0),
        ("0.2.0", "0.1.0", ["0.1.0", "0.2.0"], 0),
        ("0.2.0", "0.3.0", ["0.1.0", "0.2.0", "0.3.0"], 1),
        ("0.2.0", "0.5.0", ["0.1.0", "0.2.0", "0.5.0"], 1),
        # Patch releases and prereleases do not count.
        ("0.2.0", "0.2.2", ["0.2.0", "0.2.1", "0.2.2"], 0),
        ("0.2.0", "0.3.1", ["0.2.0", "0.3.0", "0.3.1"], 1),
        ("0.2.0", "0.4.0-rc.1", ["0.2.0", "0.3.0", "0.4.0-rc.1"], 1),
        ("0.2.0-rc.1", "0.3.0", ["0.2.0-rc.1", "0.2.0", "0.3.0"], 1),
        # No release that is yet to come could make these right.
        ("0.2.0", "0.3.5", ["0.2.0"], 1),
        ("0.2.0", "0.2.9", ["0.2.0", "0.2.1"], 0),
        ("0.2.0", "1.0.7", ["0.2.0", "1.0.0"], 1),
    ],
)
def test_removal_with_less_than_two_releases_notice_is_refused(
    since: str, removed_in: str, so_far: list[str], notice: int
) -> None:
    with pytest.raises(EarlyRemoval, match="at least 2") as caught:
        check_removal(
            "Report v0.0.0",
            since=SemVer.parse(since),
            removed_in=SemVer.parse(removed_in),
            releases_so_far=releases(*so_far),
        )
    assert caught.value.notice == notice


@pytest.mark.parametrize(
    ("removed_in", "so_far"),
    [
        ("0.4.0", ["0.1.0", "0.2.0", "0.3.0", "0.4.0"]),
        ("0.4.1", ["0.2.0", "0.3.0", "0.4.0", "0.4.1"]),
        ("1.0.0", ["0.2.0", "0.3.4", "1.0.0"]),
        ("1.0.0", ["0.2.0"]),
        ("0.4.0", ["0.2.0", "0.3.0"]),
        ("0.4.0", ["0.2.0"]),
    ],
)
def test_removal_in_the_second_release_or_later_is_fine(removed_in: str, so_far: list[str]) -> None:
    check_removal(
        "Report v0.0.0",
        since=SemVer.parse("0.2.0"),
        removed_in=SemVer.parse(removed_in),
        releases_so_far=releases(*so_far),
    )
