"""Evaluates the checks of a rollout in its current step."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

from polyver.core.rollout import CheckResult, CohortCounts, ReadyCheck, RolloutProgress, check_ready
from polyver.core.rollout_checks import (
    ErrorsCheck,
    HttpCheck,
    LatencyCheck,
    ObservedCalls,
    PrometheusCheck,
    check_errors,
    check_latency,
    lasting_result,
)
from polyver.rollouts.rules import RolloutCheck

__all__ = ["CheckedStep"]


@dataclass(frozen=True, slots=True)
class CheckedStep:
    """The input for evaluating the checks of one step, such as the numbers of followers."""

    progress: RolloutProgress
    counts: CohortCounts
    is_for_all: bool
    """True if all followers may use the release."""
    now: float
    calls: Callable[[float], tuple[ObservedCalls, ObservedCalls]]
    """Returns statistics about the calls since a Unix time: first about calls with the release,
    then about calls with other releases.
    """
    shown: Sequence[CheckResult]
    """The results of the last evaluation, in the order of the checks."""
    answers: Mapping[int, CheckResult] = field(default_factory=dict)
    """The results of the checks `prometheus` and `http` in this step, by the index of the check."""

    def results(self, checks: Sequence[RolloutCheck]) -> tuple[CheckResult, ...]:
        """Return the result of each check; an empty tuple before the first step."""
        if not self.progress.step:
            return ()
        return tuple(self._result(number, each) for number, each in enumerate(checks))

    def _result(self, number: int, check: RolloutCheck) -> CheckResult:
        if isinstance(check, ReadyCheck):
            seconds = max(0.0, self.now - self.progress.started_at)
            before = self.progress.observed
            result = check_ready(check, self.counts, seconds=seconds, before=before)
            # A step that has passed does not wait for runs that start later.
            started_later = self.counts.running or self.counts.idle
            return self._lasting(number, result) if started_later else result
        if isinstance(check, ErrorsCheck):
            return self._lasting(number, self._errors(check))
        if isinstance(check, LatencyCheck):
            return self._lasting(number, self._latency(check))
        assert isinstance(check, PrometheusCheck | HttpCheck)
        name = "http" if isinstance(check, HttpCheck) else "prometheus"
        return self.answers.get(number, CheckResult(name, "Waiting", "there is no answer yet"))

    def _lasting(self, number: int, result: CheckResult) -> CheckResult:
        shown = self.shown[number] if number < len(self.shown) else None
        return lasting_result(result, shown, has_passed=self.progress.passed_at is not None)

    def _errors(self, check: ErrorsCheck) -> CheckResult:
        calls, _ = self.calls(self.progress.started_at)
        return check_errors(check, calls, cohort=self.counts.cohort)

    def _latency(self, check: LatencyCheck) -> CheckResult:
        """Compare the latency of calls with the release and of calls with other releases.

        Both are measured in this step. If other releases had fewer calls in this step than
        `minimum`, their calls since the start of the rollout count, because few followers use them
        in the last steps.
        """
        calls, before = self.calls(self.progress.started_at)
        if before.count < check.minimum:
            _, before = self.calls(self.progress.began_at)
        cohort, is_for_all = self.counts.cohort, self.is_for_all
        return check_latency(check, calls, before, cohort=cohort, is_for_all=is_for_all)
