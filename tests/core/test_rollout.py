"""Rollouts: what each step exposes, when it goes on, and when the release comes back."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from polyver.core import (
    Dependent,
    Gate,
    Lineage,
    NoMatch,
    Pin,
    Policy,
    Release,
    SemVer,
    Series,
    Stage,
    resolve,
)
from polyver.core.preflight import OutcomeCounts
from polyver.core.rollout import (
    CheckResult,
    CohortCounts,
    Exposure,
    Observations,
    PreflightLimits,
    ReadyCheck,
    Rollout,
    RolloutPlan,
    RolloutProgress,
    RolloutState,
    RolloutStep,
    StepPause,
    check_ready,
    check_steps,
    step,
)

STEPS = (
    RolloutStep(labels={"tier": "dev"}),
    RolloutStep(share=0.05, pause=StepPause(seconds=600)),
    RolloutStep(share=0.5, pause=StepPause(until_approved=True)),
    RolloutStep(share=1.0),
)
ROLLOUT = Rollout(STEPS)
FINE = Observations(
    OutcomeCounts(changed=9), CohortCounts(9, 9, 9, 9), (CheckResult("ready", "Passed"),)
)
MOVING = replace(FINE, counts=CohortCounts(9, 9, 3, waiting=6))
WAITING = replace(FINE, checks=(CheckResult("ready", "Waiting", "3 of 9 healthy"),))
FAILING = replace(FINE, checks=(CheckResult("ready", "Failed", "2 failing"),))
PROGRESSING, PAUSED = RolloutState.PROGRESSING, RolloutState.PAUSED


def at(number: int, **more: object) -> RolloutProgress:
    """A rollout whose step has just started."""
    thresholds = (0.0, 0.05, 0.5, 1.0)[:number]
    found = RolloutProgress(PROGRESSING, number, thresholds=thresholds)
    return replace(found, **more)  # type: ignore[arg-type]


def decide(
    progress: RolloutProgress, seen: Observations = FINE, now: float = 0.0, **more: object
) -> RolloutPlan:
    return step(replace(ROLLOUT, **more), progress, seen, now)  # type: ignore[arg-type]


def where(plan: RolloutPlan) -> tuple[RolloutState, int]:
    return plan.progress.state, plan.progress.step


# Preflight.


def test_nothing_is_exposed_before_the_preflight_has_a_result() -> None:
    plan = decide(RolloutProgress(), Observations())
    assert where(plan) == (RolloutState.PREFLIGHT, 0)
    assert plan.exposure == Exposure()


@pytest.mark.parametrize(
    ("counts", "why"),
    [
        (OutcomeCounts(fails=3), "3 would fail, and 2 are allowed"),
        (OutcomeCounts(loses=1), "1 would lose objects, and 0 are allowed"),
    ],
)
def test_a_bad_preflight_holds_the_rollout(counts: OutcomeCounts, why: str) -> None:
    limits = PreflightLimits(failures=2)
    plan = decide(RolloutProgress(), Observations(counts), limits=limits)
    assert where(plan) == (RolloutState.HELD, 0)
    assert plan.progress.reason == why
    assert plan.exposure == Exposure()


def test_a_held_rollout_starts_after_a_better_preflight_or_an_approval() -> None:
    held = RolloutProgress(RolloutState.HELD)
    assert where(decide(held)) == (PROGRESSING, 1)
    bad = Observations(OutcomeCounts(fails=1))
    assert where(decide(held, bad)) == (RolloutState.HELD, 0)
    approved = decide(held, bad, approved_step=0)
    assert where(approved) == (PROGRESSING, 1)
    waiting = replace(ROLLOUT, steps=STEPS[1:], approved_step=0)
    paused = step(waiting, at(1), FINE, 0)
    assert where(paused) == (PAUSED, 1), "the pause of the first step is not approved"


# Steps.


def test_a_rollout_takes_its_steps_in_order() -> None:
    progress, now = RolloutProgress(), 0.0
    seen: list[tuple[RolloutState, int, Exposure]] = []
    for _ in range(40):
        plan = decide(progress, now=now, approved_step=3 if now > 2000 else 0)
        progress, now = plan.progress, now + 100
        if not seen or seen[-1] != (*where(plan), plan.exposure):
            seen.append((*where(plan), plan.exposure))
    dev = ({"tier": "dev"},)
    assert seen == [
        (PROGRESSING, 1, Exposure(0.0, dev)),
        (PROGRESSING, 2, Exposure(0.05, dev)),
        (PAUSED, 2, Exposure(0.05, dev)),
        (PROGRESSING, 3, Exposure(0.5, dev)),
        (PAUSED, 3, Exposure(0.5, dev)),
        (PROGRESSING, 4, Exposure(1.0, dev)),
        (RolloutState.COMPLETED, 4, Exposure(1.0)),
    ]


@pytest.mark.parametrize("seen", [MOVING, WAITING])
def test_a_step_goes_on_only_after_the_cohort_has_moved_and_the_checks_pass(
    seen: Observations,
) -> None:
    assert where(decide(at(1), seen)) == (PROGRESSING, 1)
    assert where(decide(at(1))) == (PROGRESSING, 2)


def test_a_check_without_a_result_does_not_end_a_pause() -> None:
    paused = decide(at(2), FINE, now=1000)
    assert where(paused) == (PAUSED, 2)
    waiting = decide(paused.progress, WAITING, now=1100)
    assert where(waiting) == (PAUSED, 2)
    assert waiting.progress.reason == "the check ready waits: 3 of 9 healthy"
    late = decide(waiting.progress, WAITING, now=9000)
    assert where(late) == (PAUSED, 2), "no step starts while a check waits"
    assert where(decide(late.progress, FINE, now=9001)) == (PROGRESSING, 3)
    assert where(decide(paused.progress, MOVING, now=1100)) == (PROGRESSING, 2)


def test_a_pause_starts_when_the_checks_pass_and_says_when_it_ends() -> None:
    waiting = decide(at(2), WAITING, now=100)
    passed = decide(waiting.progress, FINE, now=1000)
    assert (passed.progress.state, passed.progress.passed_at, passed.wake_at) == (
        PAUSED,
        1000,
        1600,
    )
    assert where(decide(passed.progress, FINE, now=1599)) == (PAUSED, 2)
    assert where(decide(passed.progress, FINE, now=1600)) == (PROGRESSING, 3)


def test_an_empty_cohort_passes() -> None:
    empty = replace(FINE, counts=CohortCounts(total=9), checks=())
    plan = decide(at(1), empty)
    assert where(plan) == (PROGRESSING, 2)
    assert plan.progress.reason == "no dependent was in the cohort of step 1"


def test_a_count_reaches_the_position_that_was_observed_when_the_step_started() -> None:
    rollout = Rollout((RolloutStep(count=3), RolloutStep(count=9), RolloutStep(share=1.0)))
    first = step(rollout, RolloutProgress(), replace(FINE, threshold=0.2), 0)
    assert first.exposure.share == 0.2
    later = step(rollout, first.progress, replace(MOVING, threshold=0.7), 1)
    assert later.exposure.share == 0.2, "new dependents do not change a step that has started"
    second = step(rollout, later.progress, replace(FINE, threshold=0.1), 2)
    assert second.exposure.share == 0.2, "a cohort never shrinks"


# Requests of users and operators.


def test_pause_stops_the_next_step_and_checks_go_on() -> None:
    assert where(decide(at(1), paused=True)) == (PAUSED, 1)
    assert where(decide(at(1), MOVING, paused=True)) == (PAUSED, 1)
    assert decide(at(1), FAILING, paused=True).progress.state is RolloutState.ROLLED_BACK
    resumed = decide(decide(at(1), paused=True).progress)
    assert where(resumed) == (PROGRESSING, 2)


def test_no_step_starts_outside_of_a_window_and_rollback_goes_on() -> None:
    closed = {"may_start": False, "waits_for": "the next window opens on Monday"}
    held = decide(at(1), replace(FINE, **closed))  # type: ignore[arg-type]
    assert (*where(held), held.progress.reason) == (PAUSED, 1, "the next window opens on Monday")
    failed = decide(at(1), replace(FAILING, **closed))  # type: ignore[arg-type]
    assert failed.progress.state is RolloutState.ROLLED_BACK


def test_abort_closes_the_release_for_all() -> None:
    plan = decide(at(3), aborted=True)
    assert where(plan) == (RolloutState.ABORTED, 3)
    assert plan.exposure == Exposure(returns=True)


def test_approval_of_the_last_step_skips_pauses_and_no_checks() -> None:
    progress = at(2)
    for expected in (3, 4):
        assert where(decide(progress, WAITING, approved_step=4)) == (PROGRESSING, expected - 1)
        progress = decide(progress, FINE, approved_step=4).progress
        assert progress.step == expected


def test_a_newer_release_supersedes_and_nobody_moves_for_it() -> None:
    plan = decide(at(2), replace(MOVING, superseded_by="1.2.6"))
    assert plan.progress.state is RolloutState.SUPERSEDED
    assert plan.exposure == decide(at(2), MOVING).exposure


# Failure.


def test_a_failed_check_rolls_back() -> None:
    plan = decide(at(2), FAILING)
    assert where(plan) == (RolloutState.ROLLED_BACK, 2)
    assert plan.progress.reason == "the check ready failed: 2 failing"
    assert plan.exposure == Exposure(returns=True)


def test_a_failed_check_pauses_until_a_user_approves_the_step() -> None:
    paused = decide(at(2), FAILING, on_failure="Pause")
    assert where(paused) == (PAUSED, 2)
    assert paused.exposure.share == 0.05
    assert where(decide(paused.progress, FINE, on_failure="Pause")) == (PAUSED, 2)
    approved = decide(paused.progress, FAILING, on_failure="Pause", approved_step=2)
    assert where(approved) == (PROGRESSING, 3)
    assert decide(approved.progress, FAILING, on_failure="Pause", approved_step=2).progress.failure


def test_an_approval_from_before_a_failure_does_not_approve_it() -> None:
    full: dict[str, Any] = {"on_failure": "Pause", "approved_step": 4}
    paused = decide(at(2), FAILING, **full)
    for _ in range(3):
        assert where(paused) == (PAUSED, 2)
        paused = decide(paused.progress, FAILING, **full)
    assert where(decide(paused.progress, FAILING, **{**full, "approved_step": 5})) == (
        PROGRESSING,
        3,
    )


def test_a_check_that_fails_in_a_pause_rolls_back() -> None:
    pausing = decide(at(3), FINE)
    assert where(pausing) == (PAUSED, 3)
    assert decide(pausing.progress, FAILING).progress.state is RolloutState.ROLLED_BACK


@pytest.mark.parametrize(
    ("counts", "seconds", "verdict"),
    [
        (CohortCounts(cohort=4, moved=4, healthy=4), 0, "Passed"),
        (CohortCounts(cohort=4, moved=3, healthy=2), 299, "Waiting"),
        (CohortCounts(cohort=4, moved=4, healthy=2), 300, "Failed"),
        (CohortCounts(cohort=4, moved=4, healthy=3), 300, "Passed"),
        (CohortCounts(cohort=4, moved=2, healthy=2, failing=1, held=1), 0, "Failed"),
        (CohortCounts(cohort=4, moved=3, healthy=3, failing=1), 0, "Passed"),
        (CohortCounts(), 0, "Passed"),
    ],
)
def test_ready_within_a_time_with_one_failure_allowed(
    counts: CohortCounts, seconds: float, verdict: str
) -> None:
    assert check_ready(ReadyCheck(300, 1), counts, seconds=seconds).verdict == verdict


# Steps that cannot be executed.


@pytest.mark.parametrize(
    ("steps", "problem"),
    [
        ((), "spec.steps"),
        ((RolloutStep(),), "spec.steps[0]"),
        ((RolloutStep(share=0.1, count=3), RolloutStep(share=1)), "spec.steps[0]"),
        ((RolloutStep(share=0.0), RolloutStep(share=1)), "spec.steps[0].share"),
        ((RolloutStep(share=1.5),), "spec.steps[0].share"),
        ((RolloutStep(share=0.5), RolloutStep(share=0.4), RolloutStep(share=1)), "spec.steps[1]"),
        ((RolloutStep(count=0), RolloutStep(share=1)), "spec.steps[0].count"),
        ((RolloutStep(count=5), RolloutStep(count=5), RolloutStep(share=1)), "spec.steps[1]"),
        ((RolloutStep(share=0.5),), "spec.steps[0]"),
    ],
)
def test_bad_steps_are_named(steps: tuple[RolloutStep, ...], problem: str) -> None:
    [first, *_] = check_steps(steps)
    assert first.at.startswith(problem)


def test_good_steps_have_no_problem() -> None:
    assert check_steps(STEPS) == []


# Properties.


shares = st.floats(0.001, 0.999)
labels = st.fixed_dictionaries({}, optional={"tier": st.sampled_from("ab"), "team": st.just("x")})
pauses = st.none() | st.builds(StepPause, st.integers(0, 50), st.booleans())


@st.composite
def rollouts(draw: st.DrawFn) -> Rollout:
    rising = sorted(draw(st.lists(shares, max_size=3, unique=True)))
    steps = [RolloutStep(share=each, pause=draw(pauses)) for each in rising]
    for wanted in draw(st.lists(labels.filter(bool), max_size=2)):
        place = draw(st.integers(0, len(steps)))
        steps.insert(place, RolloutStep(labels=wanted, pause=draw(pauses)))
    numbers = sorted(draw(st.sets(st.integers(1, 50), max_size=2)))
    for place, number in enumerate(numbers):
        steps.insert(place, RolloutStep(count=number, pause=draw(pauses)))
    steps.append(RolloutStep(share=1.0, pause=draw(pauses)))
    return Rollout(
        tuple(steps),
        on_failure=draw(st.sampled_from(["Rollback", "Pause"])),
        paused=draw(st.booleans()),
        aborted=draw(st.integers(0, 20)) == 20,
        approved_step=draw(st.integers(0, len(steps))),
    )


verdicts = st.sampled_from(["Passed", "Passed", "Passed", "Waiting", "Failed"])
observations = st.builds(
    Observations,
    st.none() | st.builds(OutcomeCounts, fails=st.sampled_from([0, 0, 0, 1])),
    st.builds(CohortCounts, st.just(50), st.just(9), waiting=st.sampled_from([0, 0, 3])),
    st.lists(st.builds(CheckResult, st.just("a"), verdicts), max_size=2).map(tuple),
    st.floats(0, 1),
    st.sampled_from(["", "", "", "", "1.3.0"]),
    st.booleans(),
)
moments = st.lists(st.tuples(st.integers(0, 1000), observations), max_size=12)
dependents = [Dependent(uid=str(n), labels={"tier": "ab"[n % 2]}) for n in range(100)]


def journey(rollout: Rollout, seen: Sequence[tuple[float, Observations]]) -> list[RolloutPlan]:
    progress, plans = RolloutProgress(), []
    for now, each in seen:
        plans.append(step(rollout, progress, each, now))
        progress = plans[-1].progress
    return plans


FOLLOW = Policy("follow", usable=frozenset({Stage.PUBLISHED}), best="newest release")
OLD = Lineage("web", [Release(SemVer.parse(each)) for each in ("1.2.2", "1.2.3")])


def published(plan: RolloutPlan) -> Lineage:
    """The lineage with a release that only the exposure of the plan lets dependents see."""
    seen = plan.exposure
    gate = Gate("r", plan.progress.step, seen.share, seen.labels, seen.returns)
    return OLD.publish(Release(SemVer.parse("1.2.4"), gate=gate))


def used(dependent: Dependent, lineage: Lineage) -> Dependent:
    """The dependent after its controller has resolved it."""
    to = resolve(lineage, Series(1), FOLLOW, dependent).release.pin
    if to == dependent.pin:
        return dependent
    return replace(dependent, pin=to, previous=dependent.pin)


def cohort(exposure: Exposure) -> set[str]:
    return {one.uid for one in dependents if exposure.includes(one.position, one.labels)}


@given(rollouts(), moments)
def test_no_plan_exposes_more_than_the_steps_that_have_started(
    rollout: Rollout, seen: list[tuple[float, Observations]]
) -> None:
    for plan in journey(rollout, seen):
        started = rollout.steps[: plan.progress.step]
        wanted = [each.labels for each in started if each.labels]
        allowed = max(
            [each.share for each in started if each.share]
            + [t for s, t in zip(started, plan.progress.thresholds, strict=True) if s.count],
            default=0.0,
        )
        assert plan.exposure.is_within(Exposure(allowed, tuple(wanted)))


@given(rollouts(), moments)
def test_the_cohort_shrinks_only_when_the_release_is_taken_back(
    rollout: Rollout, seen: list[tuple[float, Observations]]
) -> None:
    before = Exposure()
    for plan in journey(rollout, seen):
        assert plan.progress.state.is_closed or cohort(before) <= cohort(plan.exposure)
        assert plan.exposure.returns is plan.progress.state.is_closed
        before = plan.exposure


@given(rollouts(), moments, observations, st.floats(0, 1000))
def test_the_same_observations_give_the_same_plan(
    rollout: Rollout, before: list[tuple[float, Observations]], seen: Observations, now: float
) -> None:
    plans = journey(rollout, before)
    progress = plans[-1].progress if plans else RolloutProgress()
    once = step(rollout, progress, seen, now)
    assert step(rollout, progress, seen, now) == once


@given(rollouts(), moments, observations, st.integers(0, 1000))
def test_a_clock_that_is_set_back_changes_nothing(
    rollout: Rollout, before: list[tuple[int, Observations]], seen: Observations, back: int
) -> None:
    plans = journey(rollout, before)
    progress = plans[-1].progress if plans else RolloutProgress()
    expected = step(rollout, progress, seen, progress.seen_at)
    found = step(rollout, progress, seen, progress.seen_at - back)
    assert found.exposure == expected.exposure
    assert found.progress.state is expected.progress.state
    assert found.progress.step == expected.progress.step
    if found.wake_at is not None and expected.wake_at is not None:
        assert expected.wake_at - found.wake_at == back, "a pause neither ends early nor late"


@given(rollouts(), moments, observations, st.integers(0, 1000))
def test_time_without_observation_does_not_count(
    rollout: Rollout, before: list[tuple[int, Observations]], seen: Observations, gap: int
) -> None:
    plans = journey(rollout, before)
    progress = plans[-1].progress if plans else RolloutProgress()
    now = progress.seen_at + gap
    expected = step(rollout, progress, seen, progress.seen_at)
    found = step(rollout, progress.at(now, longest=0), seen, now)
    assert found.exposure == expected.exposure
    assert found.progress.state is expected.progress.state
    assert found.progress.step == expected.progress.step


def test_a_rollout_that_waits_is_noted_once_a_minute() -> None:
    waiting = decide(at(3), FINE).progress
    assert step(ROLLOUT, waiting, FINE, waiting.seen_at + 59).progress == waiting
    later = step(ROLLOUT, waiting, FINE, waiting.seen_at + 60).progress
    assert later == replace(waiting, seen_at=waiting.seen_at + 60)


@given(rollouts(), moments)
def test_a_rollout_that_has_ended_never_changes(
    rollout: Rollout, seen: list[tuple[float, Observations]]
) -> None:
    plans = journey(rollout, seen)
    for plan, following in itertools.pairwise(plans):
        if plan.progress.state.is_final:
            assert following.progress == plan.progress


@given(rollouts())
def test_a_rollout_without_obstacles_completes(rollout: Rollout) -> None:
    free = replace(rollout, paused=False, aborted=False, approved_step=len(rollout.steps))
    plans = journey(free, [(float(n), FINE) for n in range(len(free.steps) + 1)])
    assert where(plans[-1]) == (RolloutState.COMPLETED, len(free.steps))
    assert plans[-1].exposure == Exposure(1.0)


@given(rollouts(), moments, st.lists(st.sampled_from(["1.2.2", "1.2.3"]), min_size=100))
def test_after_a_rollback_every_dependent_resolves_to_what_it_had_before(
    rollout: Rollout, seen: list[tuple[float, Observations]], pins: list[str]
) -> None:
    before = [replace(one, pin=Pin(pin)) for one, pin in zip(dependents, pins, strict=False)]
    held = [replace(one, pin=resolve(OLD, Series(1), FOLLOW, one).release.pin) for one in before]
    now = held
    for plan in journey(rollout, seen):
        lineage = published(plan)
        now = [used(one, lineage) for one in now]
        moved = {one.uid for one in now if one.pin == Pin("1.2.4")}
        assert moved == (set() if plan.exposure.returns else cohort(plan.exposure))
        if plan.progress.state.is_closed:
            assert [one.pin for one in now] == [one.pin for one in held]


def test_an_exposed_release_is_explained_to_those_outside() -> None:
    lineage = published(decide(at(2), MOVING))
    outside = next(one for one in dependents if not one.position < 0.05)
    found = resolve(lineage, Series(1), FOLLOW, outside)
    assert next((each.release.name, each.why) for each in found.rejected) == (
        "1.2.4",
        "held by rollout r, step 2",
    )
    with pytest.raises(NoMatch):
        resolve(lineage, Series(2), FOLLOW, outside)
