"""Checks of calls in the steps of a rollout."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import pytest

from polyver.core.rollout import (
    CheckResult,
    CohortCounts,
    ReadyCheck,
    RolloutProgress,
    RolloutState,
)
from polyver.core.rollout_checks import ErrorsCheck, LatencyCheck, ObservedCalls
from polyver.rollouts.checks import CheckedStep
from polyver.rollouts.rules import RolloutCheck, call_problems, read_rules

Calls = tuple[ObservedCalls, ObservedCalls]
SECOND_STEP = RolloutProgress(RolloutState.PROGRESSING, 2, started_at=200.0, began_at=100.0)
FOUR = CohortCounts(total=4, cohort=4, moved=4, healthy=4)


def in_step(since: Mapping[float, Calls], *, is_for_all: bool = False) -> CheckedStep:
    """The second step of a rollout, with the calls since some times."""

    def calls(moment: float) -> Calls:
        return since[moment]

    return CheckedStep(SECOND_STEP, FOUR, is_for_all, 210.0, calls, [])


def test_errors_are_counted_since_the_step_has_started() -> None:
    since = {
        100.0: (ObservedCalls(50, 40), ObservedCalls()),
        200.0: (ObservedCalls(10, 0), ObservedCalls()),
    }
    [result] = in_step(since).results([ErrorsCheck(0.01, 10)])
    assert result == CheckResult("errors", "Passed", "0 of 10 calls failed (0%)")


@pytest.mark.parametrize(
    ("others", "is_for_all", "verdict"), [(30, False, "Failed"), (3, False, "Waiting")]
)
def test_latency_is_compared_with_earlier_steps_if_few_use_another_release(
    others: int, is_for_all: bool, verdict: str
) -> None:
    since = {
        200.0: (ObservedCalls(20, p99=0.3), ObservedCalls(2, p99=9.0)),
        100.0: (ObservedCalls(60, p99=0.1), ObservedCalls(others, p99=0.1)),
    }
    [result] = in_step(since, is_for_all=is_for_all).results([LatencyCheck(2.0, 20)])
    assert result.verdict == verdict


def test_calls_that_were_counted_before_a_restart_count_after_the_step() -> None:
    nothing = {200.0: (ObservedCalls(), ObservedCalls())}
    checks: list[RolloutCheck] = [ReadyCheck(), ErrorsCheck(0.01)]
    shown = [CheckResult("ready", "Passed"), CheckResult("errors", "Passed", "0 of 9")]
    step = replace(in_step(nothing), shown=shown)
    assert [each.verdict for each in step.results(checks)] == ["Passed", "Waiting"]
    passed = replace(step, progress=replace(SECOND_STEP, passed_at=205.0))
    assert passed.results(checks)[1] == shown[1]


def test_nothing_is_checked_before_the_first_step() -> None:
    before = replace(in_step({}), progress=RolloutProgress())
    assert before.results([ErrorsCheck(0.01)]) == ()


def test_checks_of_calls_are_refused_for_releases_that_are_not_called() -> None:
    checks = [{"ready": {}}, {"errors": {"max": "1%"}}, {"latency": {"p99": "2x"}}]
    rules, _ = read_rules({"steps": [{"share": "100%"}], "checks": checks})
    assert rules is not None
    found = call_problems(rules, "TraitDefinition")
    assert [each.at for each in found] == ["spec.checks[1].errors", "spec.checks[2].latency"]
    assert "a release of a TraitDefinition is not called" in str(found[0])
