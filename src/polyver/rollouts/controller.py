"""The controller of RolloutPolicies and Rollouts.

For each Rollout, the controller reads the state of the followers and the results of the checks,
decides with the module `core.rollout`, and writes the gate of the release. It writes a decision to
the status of the Rollout before it writes the gate. So if the controller is killed in between, it
continues from the status.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from functools import partial
from typing import TYPE_CHECKING, Any, Final

from polyver.capability.gates import SYSTEM_NAMESPACE, ReleaseObject
from polyver.capability.rollouts import POLICIES, RolloutTargets
from polyver.client import Change, Client, Clock, GroupVersionResource, SystemClock, find, timestamp
from polyver.client.field_managers import POLYVER
from polyver.controllers.controller import Controller, Requeue, Watch, exactly
from polyver.controllers.egress import AllowedHttp
from polyver.controllers.events import Events
from polyver.controllers.outgoing import HttpRequests
from polyver.controllers.statuses import write_status
from polyver.core import Gate, PolyverError
from polyver.core.plain import Object
from polyver.core.rollout import (
    CheckResult,
    CohortCounts,
    Exposure,
    Observations,
    RolloutPlan,
    RolloutProgress,
    RolloutState,
    exposure_of,
    step,
)
from polyver.kube.http.logs import Log
from polyver.kube.objects.conditions import DesiredCondition, set_conditions
from polyver.kube.objects.kinds import ResourceKind
from polyver.rollouts.checks import CheckedStep
from polyver.rollouts.known import KnownRollout, KnownRollouts, RolloutKey, policy_in, rollout_in
from polyver.rollouts.metrics import RolloutMetrics
from polyver.rollouts.names import FREEZE, ROLLOUTS_ON, RolloutRequest, request_in
from polyver.rollouts.notifying import Notifier
from polyver.rollouts.observing import CheckObserver
from polyver.rollouts.policy_reconciler import PolicyReconciler
from polyver.rollouts.preflights import PreflightRunner
from polyver.rollouts.reports import report_counts
from polyver.rollouts.rollout_case import (
    RolloutCase,
    event_message,
    gate_after,
    problem_message,
    superseded_by,
)
from polyver.rollouts.rules import RULES, call_problems, read_rules
from polyver.rollouts.status import (
    RolloutObservation,
    checks_in,
    dependents_data,
    progress_in,
    rollout_status,
)
from polyver.rollouts.windows import is_open, next_opening

if TYPE_CHECKING:
    from prometheus_client.registry import Collector

__all__ = ["RolloutController"]

_CONFIG_MAPS: Final = GroupVersionResource("", "v1", "configmaps")
_SOON: Final = 0.05
_EVERY: Final = 0.5
"""The least number of seconds between two decisions about one rollout."""
_UNOBSERVED: Final = 30.0
"""If more than this number of seconds passed since the last decision about a rollout, this time
does not count for durations such as the pause of a step. For example, the process was stopped.
"""
_POLLED: Final = 5.0
"""Maximum seconds between two decisions about an active rollout, even if nothing has changed."""
_REPEATED: Final = 60.0
"""Seconds after which polyver repeats the preflight of a rollout in the state Held."""


class RolloutController(Controller[RolloutKey]):
    """Reconciles policies and rollouts."""

    name = "rollouts"

    def __init__(
        self,
        client: Client,
        targets: Sequence[RolloutTargets],
        http: AllowedHttp = AllowedHttp(),  # noqa: B008 - it is immutable
        *,
        clock: Clock | None = None,
        log: Log | None = None,
    ) -> None:
        self._client = client
        self._targets = {kind: each for each in targets for kind in each.kinds}
        self._all = [*targets]
        self._clock: Clock = clock or SystemClock()
        self._started_at = self._clock.now().timestamp() - self._clock.time()
        """The Unix time at which the monotonic clock was 0, computed when the controller starts.

        So durations do not change when somebody sets the clock of the machine.
        """
        log, requests = log or Log(), HttpRequests(http)
        self._events = Events(client, self._clock, log, component="polyver")
        self._observer = CheckObserver(requests, self._clock, log)
        self._notifier = Notifier(client, requests, self._clock, self._events, log)
        self._known = KnownRollouts()
        self._decided_at: dict[RolloutKey, float] = {}
        self._metrics = RolloutMetrics()
        self._policies = PolicyReconciler(client, self._all, self._known, self._clock)
        self._preflights = PreflightRunner(client, self._clock, self._metrics, self._preflighted)

    @property
    def watches(self) -> Sequence[Watch[Any, RolloutKey]]:
        return [
            Watch(kinds=exactly(POLICIES), observe=self._observe_policy, keep=policy_in),
            Watch(kinds=exactly(ROLLOUTS_ON), observe=self._observe_rollout, keep=rollout_in),
            *(
                watch
                for each in self._all
                for watch in each.watches(self._known.touched, self._known.active_keys)
            ),
        ]

    @property
    def collectors(self) -> Sequence[Callable[[], Collector]]:
        return (self._metrics.collector,)

    async def close(self) -> None:
        await self._preflights.close()
        await self._observer.close()
        await self._notifier.close()

    def _observe_policy(self, kind: ResourceKind, change: Change[Object]) -> Iterable[RolloutKey]:
        del kind
        return self._known.record_policy(change) if change.before != change.after else ()

    def _observe_rollout(
        self, kind: ResourceKind, change: Change[KnownRollout]
    ) -> Iterable[RolloutKey]:
        del kind
        if change.before == change.after:
            return ()
        key = RolloutKey("rollout", change.key.namespace, change.key.name)
        state = None if change.after is None else change.after.state
        self._metrics.observe_state(key.namespace, key.name, state)
        if change.after is None:
            self._decided_at.pop(key, None)
            self._observer.forget(key)
            self._preflights.forget(key)
        return self._known.record_rollout(change)

    def _preflighted(self, key: RolloutKey) -> None:
        """Decide about a rollout at once, because its preflight has ended."""
        self._decided_at.pop(key, None)
        self.wake(key)

    async def reconcile(self, key: RolloutKey) -> Requeue | None:
        if not self.synced:
            return Requeue(_SOON)
        since = self._clock.time() - self._decided_at.get(key, -math.inf)
        if since < _EVERY:
            return Requeue(_EVERY - since)
        self._decided_at[key] = self._clock.time()
        if key.kind == "policy":
            await self._policies.reconcile(key)
            return None
        longest = math.inf if since < _UNOBSERVED else 0.0
        return await self._reconcile_rollout(key, longest=longest)

    async def _reconcile_rollout(self, key: RolloutKey, *, longest: float) -> Requeue | None:
        """Reconcile a rollout: read its objects, decide, and write the status and the gate.

        `longest` limits the time, in seconds, that counts as elapsed since the last decision.
        """
        obj = await find(self._client, ROLLOUTS_ON, key.name, key.namespace)
        if obj is None or "deletionTimestamp" in obj["metadata"]:
            return None  # deleting a rollout opens nothing
        obj = await self._notifier.settle(obj, partial(self.wake, key))
        status = obj.get("status") or {}
        now = self._started_at + self._clock.time()
        request, progress = request_in(obj), progress_in(status).at(now, longest=longest)
        data = status.get("policy") or await self._rules_of(obj, request)
        rules, problems = read_rules(data or {"steps": []})
        targets = self._targets.get((request.lineage.group, request.lineage.kind))
        if rules is not None and targets is not None and not targets.has_calls:
            problems = call_problems(rules, request.lineage.kind)
        releases = await targets.releases(request.lineage) if targets is not None else ()
        release = next((each for each in releases if each.name == request.to), None)
        if targets is None or rules is None or release is None or data is None or problems:
            if not progress.state.is_final:
                if release is None and targets is not None and status.get("policy"):
                    await self._report_deleted(obj, request, progress)
                else:
                    await self._report_problem(obj, request, data, problems, releases)
            return None
        # Later, the checks find that the release cannot be used any more.
        is_new = progress.state is RolloutState.PREFLIGHT and not request.aborted
        if is_new and not release.is_published:
            return await self._report_unpublished(obj, release)
        moment = self._clock.now()
        case = RolloutCase(key, obj, request, progress, targets, releases, rules, data, now, moment)
        if progress.state.is_final:
            return await self._finish(case, release)
        release = await self._claim(case, release)
        plan, observed, opens_at = await self._decide(case)
        await self._report(case, plan, observed)
        await self._write_gate(case, release, gate_after(key.name, plan))
        if plan.progress.state.is_final:
            return Requeue(_EVERY)
        times = [plan.wake_at - now] if plan.wake_at is not None else []
        times += [(opens_at - moment).total_seconds()] if opens_at is not None else []
        return Requeue(max(_SOON, min([_POLLED, *times])))

    async def _report_deleted(
        self, obj: Object, request: RolloutRequest, progress: RolloutProgress
    ) -> None:
        """Set the state of a rollout to Superseded, because its release was deleted."""
        reason = f"{request.lineage} does not have the release {request.to} any more"
        ended = replace(progress, state=RolloutState.SUPERSEDED, reason=reason)
        status = obj["status"]
        observed = RolloutObservation(
            CohortCounts(), (), status["policy"], len(status["policy"]["steps"]), None
        )
        plan, now = RolloutPlan(ended, Exposure()), self._clock.now()
        wanted = {**status, **rollout_status(obj, plan, observed, now=now)}
        await write_status(self._client, ROLLOUTS_ON, obj, wanted, manager=POLYVER)
        await self._events.tell(obj, ended.state.value, reason, type="Warning")

    async def _finish(self, case: RolloutCase, release: ReleaseObject) -> Requeue | None:
        """Write the final gate of a finished rollout, if this has not been done.

        Do nothing if the gate does not have the name of this rollout: the release was then
        published again, and its gate belongs to the policy or to another rollout. After a rollback
        or an abort, also update the numbers of followers in the status.
        """
        self._observer.forget(case.key)
        if release.gate is None or release.gate.rollout != case.key.name:
            return None
        plan = RolloutPlan(case.progress, exposure_of(case.rollout, case.progress))
        await self._write_gate(case, release, gate_after(case.key.name, plan))
        return await self._report_returned(case)

    async def _claim(self, case: RolloutCase, release: ReleaseObject) -> ReleaseObject:
        """Replace the name of the policy in the gate of the release by the name of this rollout.

        If the release is published again later, the policy closes it with its own name. So this
        rollout can then see that the new gate does not belong to it.
        """
        if release.gate is None or release.gate.rollout != case.request.policy:
            return release
        gate = Gate(case.key.name)
        await case.targets.write_gate(case.request.lineage, release.name, gate)
        return replace(release, gate=gate, is_marked=True)

    async def _write_gate(
        self, case: RolloutCase, release: ReleaseObject, gate: Gate | None
    ) -> None:
        """Write the gate to the release, unless the release has this gate already."""
        if gate != release.gate or not release.is_marked:
            await case.targets.write_gate(case.request.lineage, release.name, gate)

    async def _report_unpublished(self, obj: Object, release: ReleaseObject) -> Requeue:
        """Report in the status that the release of a rollout is not published yet.

        Do nothing if the Rollout is younger than `_POLLED` seconds.
        """
        created = datetime.fromisoformat(obj["metadata"]["creationTimestamp"])
        if (self._clock.now() - created).total_seconds() < _POLLED:
            return Requeue(_EVERY)
        reason = f"waits until {release.name} can be used; see the conditions of this revision"
        fact = DesiredCondition("Completed", "False", "NotPublished", reason)
        conditions = set_conditions(obj, [fact], now=timestamp(self._clock))
        status = {**(obj.get("status") or {}), "reason": reason, "conditions": conditions}
        await write_status(self._client, ROLLOUTS_ON, obj, status, manager=POLYVER)
        return Requeue(_POLLED)

    async def _report_returned(self, case: RolloutCase) -> Requeue | None:
        """Write the number of followers that still use the release, after a rollback or an abort.

        Repeat this until no follower uses it.
        """
        status = case.obj.get("status") or {}
        shown = status.get("dependents") or {}
        if not case.progress.state.is_closed or not shown.get("moved"):
            return None
        followers = await case.targets.followers(case.request.lineage, case.request.to)
        counts = followers.counts(Exposure())
        progress = f"{counts.healthy}/{counts.cohort}"
        status = {**status, "progress": progress, "dependents": dependents_data(counts)}
        await write_status(self._client, ROLLOUTS_ON, case.obj, status, manager=POLYVER)
        return Requeue(_EVERY) if counts.moved else None

    async def _rules_of(self, obj: Object, request: RolloutRequest) -> Object | None:
        """Return the rules for a new rollout: from its policy if it names one, or from its spec.

        Return None if the policy does not exist.
        """
        spec: Object = obj["spec"]
        if request.policy:
            namespace = obj["metadata"]["namespace"]
            policy = await find(self._client, POLICIES, request.policy, namespace)
            if policy is None:
                return None
            spec = policy["spec"]
        return {name: spec[name] for name in RULES if name in spec}

    async def _decide(
        self, case: RolloutCase
    ) -> tuple[RolloutPlan, RolloutObservation, datetime | None]:
        """Decide the next state and gate of a rollout.

        Return the plan, the observations for the status, and the time at which the next window
        opens; None if the rollout does not wait for a window.
        """
        rules, progress, now = case.rules, case.progress, case.now
        followers = await case.targets.followers(case.request.lineage, case.request.to)
        current = exposure_of(case.rollout, progress)
        counts = followers.counts(current if progress.step else Exposure(1.0))
        preflight = self._preflight(case)
        waits_for, opens_at = await self._waits_for(case)
        following = rules.steps[progress.step] if progress.step < len(rules.steps) else None
        seen = Observations(
            report_counts(preflight) if preflight is not None else None,
            counts,
            self._checked(case, counts, current).results(rules.checks),
            followers.threshold(following.count) if following and following.count else 0.0,
            superseded_by(case, self._others(case)),
            not waits_for,
            waits_for,
        )
        plan = step(case.rollout, progress, seen, now)
        if plan.exposure != current:
            counts = followers.counts(plan.exposure)
        if not plan.progress.step:
            counts = CohortCounts(total=counts.total)
        return (
            plan,
            RolloutObservation(counts, seen.checks, case.data, len(rules.steps), preflight),
            opens_at,
        )

    def _checked(self, case: RolloutCase, counts: CohortCounts, exposure: Exposure) -> CheckedStep:
        lineage, to = case.request.lineage, case.request.to
        return CheckedStep(
            case.progress,
            counts,
            exposure.share >= 1,
            case.now,
            lambda since: case.targets.calls(lineage, to, since=since),
            checks_in(case.obj.get("status") or {}),
            self._answers(case, counts),
        )

    def _answers(self, case: RolloutCase, counts: CohortCounts) -> Mapping[int, CheckResult]:
        """Return the latest results of the checks `prometheus` and `http`, by their index."""
        if not (number := case.progress.step):
            return {}
        wake = partial(self.wake, case.key)
        moved, checks = not counts.waiting, case.rules.checks
        return self._observer.results(case.key, checks, step=number, has_moved=moved, wake=wake)

    def _others(self, case: RolloutCase) -> list[KnownRollout]:
        """Return the other active rollouts of the same lineage."""
        return self._known.active(case.request.lineage, without=case.key)

    async def _waits_for(self, case: RolloutCase) -> tuple[str, datetime | None]:
        """Return the reason why the next step may not start now; empty if it may start.

        The second value is the time at which the next window opens, if the rollout waits for a
        window.
        """
        metadata = case.obj["metadata"]
        created = metadata.get("creationTimestamp", ""), metadata["name"]
        for known in self._others(case):
            is_first = known.has_passed_preflight and known.created < created
            if known.has_started or is_first:
                return f"rollout {known.created[1]} of the same lineage is active", None
        moment = case.moment
        if not is_open(case.rules.windows, moment):
            opening = next_opening(case.rules.windows, moment)
            if opening is None:
                return "no window ever opens", None
            return f"the next window opens at {opening:%Y-%m-%d %H:%M} UTC", opening
        if await find(self._client, _CONFIG_MAPS, FREEZE, SYSTEM_NAMESPACE) is not None:
            return "rollouts are frozen; `polyver rollout unfreeze` continues them", None
        return "", None

    def _preflight(self, case: RolloutCase) -> Object | None:
        """Return the result of the preflight; None if there is no result yet.

        Start a preflight in the background if there is no result, or if the result is outdated.
        """
        shown = (case.obj.get("status") or {}).get("preflight")
        found = self._preflights.take(case.key, case.request.to)
        if found is not None:
            return found
        held = case.progress.state is RolloutState.HELD
        is_old = held and case.now - case.progress.seen_at >= _REPEATED
        if (shown is None or is_old) and not case.progress.step:
            self._preflights.start(case)
        return dict(shown) if shown is not None else None

    # The status.

    async def _report(
        self, case: RolloutCase, plan: RolloutPlan, observed: RolloutObservation
    ) -> None:
        key, obj = case.key, case.obj
        before = obj.get("status") or {}
        status = rollout_status(obj, plan, observed, now=case.moment)
        if await write_status(self._client, ROLLOUTS_ON, obj, status, manager=POLYVER) is obj:
            return
        state = plan.progress.state
        self._metrics.observe_checks(checks_in(before), observed.checks)
        if not state.is_final:
            self._metrics.observe_followers(key.namespace, key.name, status["dependents"])
        if all(before.get(name) == status[name] for name in ("state", "step")):
            return
        bad = (RolloutState.HELD, RolloutState.ROLLED_BACK, RolloutState.ABORTED)
        warns = state in bad or bool(plan.progress.failure)
        message = event_message(case, plan.progress, observed)
        await self._events.tell(obj, state.value, message, type="Warning" if warns else "Normal")

    async def _report_problem(
        self,
        obj: Object,
        request: RolloutRequest,
        data: Object | None,
        problems: Sequence[PolyverError],
        releases: Sequence[ReleaseObject],
    ) -> None:
        """Report in the status why a rollout cannot start, with the reason `Invalid`."""
        is_enabled = (request.lineage.group, request.lineage.kind) in self._targets
        message = problem_message(request, data, problems, releases, is_enabled=is_enabled)
        fact = DesiredCondition("Completed", "False", "Invalid", message)
        conditions = set_conditions(obj, [fact], now=timestamp(self._clock))
        status = {**(obj.get("status") or {}), "reason": message, "conditions": conditions}
        await write_status(self._client, ROLLOUTS_ON, obj, status, manager=POLYVER)
