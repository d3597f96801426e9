"""Decide which dependents may use a new release, step by step, and when it is taken back.

`step` is the only code that decides about a rollout. It is a pure function: it gets the rollout,
its progress so far, the observations and the time, and returns the new progress. A rollout changes
only the exposure of its release: which dependents may use the release. Each dependent then resolves
among the releases that it may use.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Hashable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import Enum
from typing import Literal, TypeVar

from polyver.core.errors import PolyverError
from polyver.core.preflight import OutcomeCounts

__all__ = [
    "DEFAULT_CHECK",
    "SEEN_EVERY",
    "CheckResult",
    "CohortCounts",
    "Exposure",
    "InvalidSteps",
    "Observations",
    "OnFailure",
    "PreflightLimits",
    "ReadyCheck",
    "Rollout",
    "RolloutPlan",
    "RolloutProgress",
    "RolloutState",
    "RolloutStep",
    "StepPause",
    "Verdict",
    "check_ready",
    "check_steps",
    "exposure_of",
    "step",
    "waiting_moves",
]

OnFailure = Literal["Rollback", "Pause"]
Verdict = Literal["Passed", "Waiting", "Failed"]
SEEN_EVERY = 60.0
"""Seconds after which a decision renews `seen_at`, even if it changes nothing else.

`seen_at` is the time of the last decision, in `RolloutProgress`.
"""
_NO_LABELS: Mapping[str, str] = {}


class RolloutState(Enum):
    """The states of a rollout."""

    PREFLIGHT = "Preflight"
    PROGRESSING = "Progressing"
    PAUSED = "Paused"
    COMPLETED = "Completed"
    HELD = "Held"
    ROLLED_BACK = "RolledBack"
    ABORTED = "Aborted"
    SUPERSEDED = "Superseded"

    @property
    def is_final(self) -> bool:
        """True if the rollout has ended."""
        return self in _FINAL

    @property
    def is_closed(self) -> bool:
        """True if the release was taken back: its users return to an earlier release."""
        return self in (RolloutState.ROLLED_BACK, RolloutState.ABORTED)


_FINAL = (
    RolloutState.COMPLETED,
    RolloutState.ROLLED_BACK,
    RolloutState.ABORTED,
    RolloutState.SUPERSEDED,
)


# The steps.


@dataclass(frozen=True, slots=True)
class StepPause:
    """The pause after a step: for some time, or until a user approves the step."""

    seconds: float = 0.0
    until_approved: bool = False


@dataclass(frozen=True, slots=True)
class RolloutStep:
    """One step, which extends the cohort: the dependents that may use the release.

    Exactly one field of `share`, `count` and `labels` is set. After the step, the cohort has at
    least this share (0 to 1) of all dependents, at least this number of dependents, or also all
    dependents with these labels.
    """

    share: float | None = None
    count: int | None = None
    labels: Mapping[str, str] = field(default_factory=dict)
    pause: StepPause | None = None


class InvalidSteps(PolyverError):
    """Steps that cannot be executed; `at` is the path of the invalid field."""


def check_steps(steps: Sequence[RolloutStep], *, at: str = "spec.steps") -> list[InvalidSteps]:
    """Return the errors in the steps of a rollout, such as a share that is below an earlier one."""
    if not steps:
        return [InvalidSteps("there are no steps", at=at, hint="write at least one step")]
    found = []
    shares, counts = [0.0], [0.0]
    for number, each in enumerate(steps):
        place = f"{at}[{number}]"
        if sum((each.share is not None, each.count is not None, bool(each.labels))) != 1:
            hint = "write exactly one of share, count and labels"
            found.append(InvalidSteps("a step adds one thing to the cohort", at=place, hint=hint))
        found += _size_problems("share", each.share, shares, most=1.0, at=place)
        found += _size_problems("count", each.count, counts, most=math.inf, at=place)
    if steps[-1].share != 1:
        hint = "end with {share: 100%}"
        last = f"{at}[{len(steps) - 1}]"
        found.append(InvalidSteps("the last step does not reach everyone", at=last, hint=hint))
    return found


def _size_problems(
    name: str, value: float | None, earlier: list[float], *, most: float, at: str
) -> list[InvalidSteps]:
    """Check a share or a count; return a list with the error, or an empty list.

    Append the value to `earlier`, which has the values of earlier steps. `most` is the largest
    valid value.
    """
    if value is None:
        return []
    largest = max(earlier)
    earlier.append(value)
    shown = f"{value:.4%}" if name == "share" else value
    if not 0 < value <= most:
        expected = "more than 0 % and at most 100 %" if name == "share" else "1 or more"
        return [InvalidSteps(f"the {name} is {shown}, expected {expected}", at=f"{at}.{name}")]
    if value <= largest:
        fact = f"the {name} {shown} is not larger than that of an earlier step"
        return [InvalidSteps(fact, at=f"{at}.{name}", hint="steps never shrink")]
    return []


# Exposure: what a rollout lets dependents see.


@dataclass(frozen=True, slots=True)
class Exposure:
    """The dependents that may use a release: all with a position below `share`, and some by labels.

    A position is `Dependent.position`, a number in [0, 1) that depends only on the uid. A dependent
    may also use the release if it has all labels of one of the mappings in `labels`.
    """

    share: float = 0.0
    labels: tuple[Mapping[str, str], ...] = ()
    returns: bool = False
    """True if dependents that use the release return to the release that they had before."""

    def includes(self, position: float, labels: Mapping[str, str] = _NO_LABELS) -> bool:
        """Report whether a dependent with this position and these labels may use the release."""
        if position < self.share:
            return True
        return any(wanted.items() <= labels.items() for wanted in self.labels)

    def is_within(self, other: Exposure) -> bool:
        """Report whether `other` includes every dependent that this exposure includes."""
        return self.share <= other.share and all(
            any(wider.items() <= each.items() for wider in other.labels) for each in self.labels
        )


# Preflight.


@dataclass(frozen=True, slots=True)
class PreflightLimits:
    """The maximum numbers of dependents that may fail or lose objects in the preflight.

    If there are more, the rollout does not start.
    """

    failures: int = 0
    deletions: int = 0

    def problem(self, counts: OutcomeCounts) -> str:
        """Return the reason why the rollout must not start, or an empty string."""
        if counts.fails > self.failures:
            return f"{counts.fails} would fail, and {self.failures} are allowed"
        if counts.loses > self.deletions:
            return f"{counts.loses} would lose objects, and {self.deletions} are allowed"
        return ""


# Checks.


@dataclass(frozen=True, slots=True)
class CohortCounts:
    """The number of dependents of a rollout in each state.

    The field `total` counts all followers; every other field counts only the cohort: the followers
    that may use the release.
    """

    total: int = 0
    """All followers that would use the release if every one of them might use it."""
    cohort: int = 0
    moved: int = 0
    """The followers that use the release."""
    healthy: int = 0
    """The followers that use the release and are healthy with it."""
    failing: int = 0
    """The followers that could not move to the release, or are unhealthy with it."""
    held: int = 0
    """The followers that did not move, because they would lose objects."""
    waiting: int = 0
    """The followers that have not tried the release yet."""
    idle: int = 0
    """The followers that use a release only when they are run, and have not run with it yet."""
    running: int = 0
    """The followers whose first run with the release has not ended yet."""

    @property
    def observed(self) -> int:
        """The number of dependents of which it is known whether the release works for them."""
        return self.healthy + self.failing + self.held


@dataclass(frozen=True, slots=True)
class ReadyCheck:
    """The check that the cohort becomes healthy within some seconds after a step has started."""

    within: float = 600.0
    failing: int = 0
    """The maximum number of dependents that fail, or are not healthy after `within` seconds."""
    minimum: int = 1
    """The number of dependents that must be observed in each step.

    A dependent is observed when it is known whether the release works for it. If a step adds fewer
    dependents, all of them must be observed.
    """


DEFAULT_CHECK = ReadyCheck()


@dataclass(frozen=True, slots=True)
class CheckResult:
    """The result of one check at one moment."""

    name: str
    verdict: Verdict
    message: str = ""


def check_ready(
    check: ReadyCheck, counts: CohortCounts, *, seconds: float, before: int = 0
) -> CheckResult:
    """Return the result of the check, `seconds` after the step has started.

    `before` is the number of dependents that were observed before the step: those of which it was
    known whether the release works for them.

    >>> check_ready(ReadyCheck(), CohortCounts(cohort=4, moved=4, healthy=3), seconds=10).verdict
    'Waiting'

    Dependents that use the release only when they are run have no time limit. The check waits until
    enough of them have been run, and until these runs have ended.

    >>> check_ready(ReadyCheck(), CohortCounts(cohort=4, idle=4), seconds=1e6).message
    '0 of 4 healthy, 0 failing; 0 of 1 observed'
    >>> check_ready(ReadyCheck(), CohortCounts(cohort=4, healthy=1, idle=3), seconds=1).verdict
    'Passed'
    """
    failed = counts.failing + counts.held
    waiting = counts.cohort - counts.observed - counts.idle - counts.running
    found = f"{counts.healthy} of {counts.cohort} healthy, {failed} failing"
    if failed > check.failing:
        return CheckResult("ready", "Failed", f"{found}, {check.failing} may fail")
    if not waiting:
        return _ready_when_run(check, counts, before, found)
    if seconds < check.within:
        return CheckResult("ready", "Waiting", found)
    late = f"{found}, {waiting} not healthy after {check.within:g} s"
    verdict: Verdict = "Failed" if failed + waiting > check.failing else "Passed"
    return CheckResult("ready", verdict, late)


def _ready_when_run(
    check: ReadyCheck, counts: CohortCounts, before: int, found: str
) -> CheckResult:
    """Return the result of the check if each dependent is observed, idle or running.

    The check waits until all runs have ended and enough dependents are observed. `found` is the
    beginning of its message.
    """
    needed = min(check.minimum, max(0, counts.cohort - before))
    observed = max(0, counts.observed - before)
    if counts.running:
        return CheckResult("ready", "Waiting", f"{found}; {counts.running} running")
    if observed < needed:
        return CheckResult("ready", "Waiting", f"{found}; {observed} of {needed} observed")
    return CheckResult("ready", "Passed", found)


# The decision.


@dataclass(frozen=True, slots=True)
class Rollout:
    """The rules of one rollout, and the requests of users: pause, abort and approve."""

    steps: tuple[RolloutStep, ...]
    limits: PreflightLimits = PreflightLimits()
    on_failure: OnFailure = "Rollback"
    paused: bool = False
    aborted: bool = False
    approved_step: int = -1
    """The number of the last step whose pause users have approved; steps count from 1.

    0 approves only a start of the rollout although the preflight exceeds its limits; -1 approves
    nothing.
    """


@dataclass(frozen=True, slots=True)
class RolloutProgress:
    """The state of a rollout that is stored between two decisions."""

    state: RolloutState = RolloutState.PREFLIGHT
    step: int = 0
    """The step in progress, from 1; 0 before the first step."""
    reason: str = ""
    started_at: float = 0.0
    """The time at which the current step started, in seconds since 1970."""
    passed_at: float | None = None
    """The first time when the cohort had moved and all checks passed; None before that."""
    failure: str = ""
    """The failure of a check that has paused the rollout in this step; empty if there was none."""
    thresholds: tuple[float, ...] = ()
    """For each started step: the position (0 to 1) below which dependents are in the cohort."""
    seen_at: float = 0.0
    """The time of the last decision, or of one that is at most `SEEN_EVERY` seconds older."""
    approved_before: int = -1
    """The value of `Rollout.approved_step` when the check failed.

    Users approve the failure by setting a higher value.
    """
    began_at: float = 0.0
    """The time at which the first step started."""
    observed: int = 0
    """The value of `CohortCounts.observed` when the current step started; 0 in the first step."""

    def at(self, now: float, *, longest: float = math.inf) -> RolloutProgress:
        """Return the progress with all of its times moved, so that unobserved time does not count.

        Of the time since the last decision, at most `longest` seconds count; if the clock was set
        back, no time counts. So a pause or a check continues from the point that it had reached.

        >>> RolloutProgress(passed_at=90.0, seen_at=100.0).at(40.0).passed_at
        30.0
        >>> RolloutProgress(passed_at=90.0, seen_at=100.0).at(400.0, longest=5.0).passed_at
        385.0
        """
        elapsed = min(max(0.0, now - self.seen_at), longest)
        moved = now - self.seen_at - elapsed
        if not moved:
            return self
        passed_at = None if self.passed_at is None else self.passed_at + moved
        return replace(
            self,
            started_at=self.started_at + moved,
            passed_at=passed_at,
            seen_at=self.seen_at + moved,
            began_at=self.began_at + moved,
        )


@dataclass(frozen=True, slots=True)
class Observations:
    """The observations of a rollout at one moment."""

    preflight: OutcomeCounts | None = None
    """None while the preflight has no result."""
    counts: CohortCounts = CohortCounts()
    checks: tuple[CheckResult, ...] = ()
    threshold: float = 0.0
    """The position below which as many dependents are as the `count` of the next step requires.

    0 if the next step has no `count`.
    """
    superseded_by: str = ""
    """The newer release to which the followers move instead; empty if there is none."""
    may_start: bool = True
    """False if no step may start.

    The reason is that no window is open, that rollouts are frozen, or that another rollout of the
    same lineage is active.
    """
    waits_for: str = ""
    """The reason why no step may start; empty if `may_start` is True."""


@dataclass(frozen=True, slots=True)
class RolloutPlan:
    """The result of a decision about a rollout: new progress, and the exposure of the release."""

    progress: RolloutProgress
    exposure: Exposure
    wake_at: float | None = None
    """The time at which to decide again even if nothing else changes; None if there is none."""


def step(
    rollout: Rollout, progress: RolloutProgress, seen: Observations, now: float
) -> RolloutPlan:
    """Decide the next progress of a rollout, and the exposure of its release.

    `seen` are the observations, and `now` is the time in seconds since 1970.

    >>> from polyver.core.preflight import OutcomeCounts
    >>> rollout = Rollout((RolloutStep(share=0.1), RolloutStep(share=1.0)))
    >>> plan = step(rollout, RolloutProgress(), Observations(OutcomeCounts()), 0.0)
    >>> plan.progress.state.value, plan.progress.step, plan.exposure.share
    ('Progressing', 1, 0.1)
    """
    if progress.state.is_final:
        return RolloutPlan(progress, exposure_of(rollout, progress))
    progress = progress.at(now)
    decided = _next(rollout, progress, seen, now)
    wake_at = None
    if decided.state is RolloutState.PAUSED and decided.passed_at is not None and decided.step:
        pause = rollout.steps[decided.step - 1].pause
        if pause is not None and pause.seconds and decided.passed_at + pause.seconds > now:
            wake_at = decided.passed_at + pause.seconds
    if decided != progress or now - progress.seen_at >= SEEN_EVERY:
        decided = replace(decided, seen_at=now)
    return RolloutPlan(decided, exposure_of(rollout, decided), wake_at)


def _next(
    rollout: Rollout, progress: RolloutProgress, seen: Observations, now: float
) -> RolloutProgress:
    if rollout.aborted:
        return replace(progress, state=RolloutState.ABORTED, reason="aborted by a user")
    if seen.superseded_by:
        reason = f"followers move to the newer release {seen.superseded_by}"
        return replace(progress, state=RolloutState.SUPERSEDED, reason=reason)
    if not progress.step:
        return _before_first_step(rollout, progress, seen, now)
    return _failed(rollout, progress, seen) or _in_step(rollout, progress, seen, now)


def _failed(
    rollout: Rollout, progress: RolloutProgress, seen: Observations
) -> RolloutProgress | None:
    """Return the progress after a failed check; None if no check failed or a user approved it."""
    approved = rollout.approved_step
    if progress.failure and approved >= progress.step and approved > progress.approved_before:
        return None
    failed = next((each for each in seen.checks if each.verdict == "Failed"), None)
    if failed is None:
        reason = progress.failure
        return replace(progress, state=RolloutState.PAUSED, reason=reason) if reason else None
    reason = f"the check {failed.name} failed: {failed.message}"
    if rollout.on_failure == "Rollback":
        return replace(progress, state=RolloutState.ROLLED_BACK, reason=reason)
    before = progress.approved_before if progress.failure else rollout.approved_step
    return replace(
        progress,
        state=RolloutState.PAUSED,
        reason=reason,
        failure=reason,
        approved_before=before,
    )


def _in_step(
    rollout: Rollout, progress: RolloutProgress, seen: Observations, now: float
) -> RolloutProgress:
    """Return the progress in a step, which ends when the cohort has moved and the checks pass.

    In the pause after a step, a check that has no result for a moment does not end the pause.
    """
    if not seen.counts.waiting and all(each.verdict != "Waiting" for each in seen.checks):
        return _after_step(rollout, progress, seen, now)
    is_pause = progress.state is RolloutState.PAUSED and progress.passed_at is not None
    stays = rollout.paused or (is_pause and not seen.counts.waiting)
    state = RolloutState.PAUSED if stays else RolloutState.PROGRESSING
    return replace(progress, state=state, reason=_waiting(rollout, seen))


def _before_first_step(
    rollout: Rollout, progress: RolloutProgress, seen: Observations, now: float
) -> RolloutProgress:
    if seen.preflight is None:
        return progress
    problem = rollout.limits.problem(seen.preflight)
    if problem and rollout.approved_step < 0:
        return replace(progress, state=RolloutState.HELD, reason=problem)
    return _started(rollout, progress, seen, now)


def _after_step(
    rollout: Rollout, progress: RolloutProgress, seen: Observations, now: float
) -> RolloutProgress:
    """Return the progress after a step whose cohort has moved and whose checks pass."""
    passed_at = now if progress.passed_at is None else progress.passed_at
    progress = replace(progress, passed_at=passed_at)
    pause = rollout.steps[progress.step - 1].pause
    if pause is not None and rollout.approved_step < progress.step:
        if pause.until_approved:
            reason = f"step {progress.step} waits for approval"
            return replace(progress, state=RolloutState.PAUSED, reason=reason)
        if now < passed_at + pause.seconds:
            reason = f"step {progress.step} pauses for {pause.seconds:g} s"
            return replace(progress, state=RolloutState.PAUSED, reason=reason)
    if progress.step == len(rollout.steps):
        return replace(progress, state=RolloutState.COMPLETED, reason="all steps have passed")
    return _started(rollout, progress, seen, now)


def _started(
    rollout: Rollout, progress: RolloutProgress, seen: Observations, now: float
) -> RolloutProgress:
    """Start the next step and return its progress; a paused progress if no step may start now."""
    if rollout.paused:
        return replace(progress, state=RolloutState.PAUSED, reason="paused by a user")
    if not seen.may_start:
        return replace(progress, state=RolloutState.PAUSED, reason=seen.waits_for)
    following = rollout.steps[progress.step]
    reached = progress.thresholds[-1] if progress.thresholds else 0.0
    wanted = seen.threshold if following.count is not None else following.share or 0.0
    empty = progress.step > 0 and not seen.counts.cohort
    return RolloutProgress(
        RolloutState.PROGRESSING,
        progress.step + 1,
        f"no dependent was in the cohort of step {progress.step}" if empty else "",
        started_at=now,
        thresholds=(*progress.thresholds, max(reached, min(1.0, wanted))),
        began_at=progress.began_at if progress.step else now,
        observed=seen.counts.observed if progress.step else 0,
    )


def _waiting(rollout: Rollout, seen: Observations) -> str:
    counts = seen.counts
    if rollout.paused:
        return "paused by a user"
    if counts.waiting:
        return f"{counts.waiting} of {counts.cohort} have not tried the release yet"
    waiting = next(each for each in seen.checks if each.verdict == "Waiting")
    return f"the check {waiting.name} waits: {waiting.message}"


def exposure_of(rollout: Rollout, progress: RolloutProgress) -> Exposure:
    """Return the exposure of a release: the union of all steps that have started.

    After the last step, all dependents may use the release; after a rollback or an abort, none.
    """
    if progress.state is RolloutState.COMPLETED:
        return Exposure(share=1.0)
    if progress.state.is_closed:
        return Exposure(returns=True)
    started = rollout.steps[: progress.step]
    labels = tuple(each.labels for each in started if each.labels)
    return Exposure(progress.thresholds[-1] if progress.thresholds else 0.0, labels)


# Several rollouts with the same dependents.

_M = TypeVar("_M", bound=Hashable)


def waiting_moves(moving: Sequence[tuple[_M, str]], unsettled: Collection[str]) -> set[_M]:
    """Return the moves that wait, so that a dependent takes part in one rollout at a time.

    So if a check fails, it is known which rollout has caused the failure. `moving` are the moves of
    one dependent that are possible now, each with the name of its rollout. `unsettled` are the
    rollouts whose releases the dependent uses, if it is not healthy with these releases.

    >>> waiting_moves([("web", "web-1.1.0"), ("tls", "tls-2.0.0")], [])
    {'tls'}
    """
    going = {*unsettled} or {rollout for _, rollout in moving[:1]}
    return {move for move, rollout in moving if rollout not in going}
