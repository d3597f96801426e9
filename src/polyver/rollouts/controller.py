"""The controller of RolloutPolicies and Rollouts.

For each Rollout, the controller reads the state of the followers and the results of the checks,
decides with the module `core.rollout`, and writes the gate of the release. It writes a decision to
the status of the Rollout before it writes the gate. So if the controller is killed in between, it
continues from the status.
"""

from __future__ import annotations

import asyncio
import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from functools import partial
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from polyver.capability.gates import (
    SYSTEM_NAMESPACE,
    LineageName,
    ReleaseObject,
    is_target,
)
from polyver.capability.rollouts import POLICIES, RolloutTargets
from polyver.client import Change, Client, Clock, GroupVersionResource, SystemClock, find, timestamp
from polyver.client.field_managers import POLYVER
from polyver.controllers.controller import Controller, Requeue, Watch, exactly
from polyver.controllers.egress import AllowedHttp
from polyver.controllers.events import Events
from polyver.controllers.outgoing import HttpRequests
from polyver.controllers.statuses import write_status
from polyver.core import Gate, PolyverError, listed
from polyver.core.plain import Object
from polyver.core.rollout import (
    CheckResult,
    CohortCounts,
    Exposure,
    Observations,
    Rollout,
    RolloutPlan,
    RolloutProgress,
    RolloutState,
    exposure_of,
    step,
)
from polyver.kube.http.logs import Log
from polyver.kube.objects.conditions import DesiredCondition, find_condition, set_conditions
from polyver.kube.objects.kinds import ResourceKind
from polyver.kube.objects.status import ApiError
from polyver.rollouts.checks import CheckedStep
from polyver.rollouts.description import addition_text
from polyver.rollouts.metrics import RolloutMetrics
from polyver.rollouts.names import (
    FREEZE,
    ROLLOUTS_ON,
    RolloutRequest,
    request_in,
)
from polyver.rollouts.notifying import Notifier
from polyver.rollouts.observing import CheckObserver
from polyver.rollouts.policies import (
    older_policy,
    releases_to_start,
    rollout_name,
    surplus_rollouts,
    unmarked_releases,
    unused_name,
)
from polyver.rollouts.reporting import store_report
from polyver.rollouts.reports import preflight_data, preflight_summary, report_counts
from polyver.rollouts.rules import RULES, RolloutRules, call_problems, read_rules
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

__all__ = ["RolloutController", "RolloutKey"]

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


class RolloutKey(NamedTuple):
    """Identifies a RolloutPolicy or a Rollout."""

    kind: str
    namespace: str
    name: str


@dataclass(frozen=True, slots=True)
class _Known:
    """The fields of a Rollout that the controller keeps for all rollouts."""

    request: RolloutRequest | None
    """The parsed spec; None if the spec is invalid."""
    state: str
    has_started: bool
    """True if the first step of the rollout has started."""
    created: tuple[str, str]
    generation: int

    @property
    def is_active(self) -> bool:
        return not self.state or not RolloutState(self.state).is_final

    @property
    def has_passed_preflight(self) -> bool:
        """False before the first step, if the state is empty, Preflight or Held; otherwise True."""
        before = ("", RolloutState.PREFLIGHT.value, RolloutState.HELD.value)
        return self.has_started or self.state not in before


@dataclass(frozen=True, slots=True)
class _Case:
    """One Rollout with everything that a decision about it needs."""

    key: RolloutKey
    obj: Object
    request: RolloutRequest
    progress: RolloutProgress
    targets: RolloutTargets
    releases: Sequence[ReleaseObject]
    rules: RolloutRules
    data: Object
    """The same rules as in `rules`, as a dictionary with the fields of the spec."""
    now: float
    """The current time in seconds, for durations. Changes of the machine's clock do not affect it.
    """
    moment: datetime
    """The current date and time, for windows and for entries of the history."""

    @property
    def rollout(self) -> Rollout:
        rules, request = self.rules, self.request
        asked = request.paused, request.aborted, request.approved_step
        return Rollout(rules.steps, rules.limits, rules.on_failure, *asked)


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
        self._rollouts: dict[RolloutKey, _Known] = {}
        self._active: dict[LineageName, set[RolloutKey]] = {}
        """The active rollouts of each lineage."""
        self._policies: dict[RolloutKey, Any] = {}
        self._decided_at: dict[RolloutKey, float] = {}
        self._preflights: dict[RolloutKey, asyncio.Task[None]] = {}
        self._metrics = RolloutMetrics()
        self._reports: dict[RolloutKey, tuple[str, Object]] = {}
        """The results of preflights that have ended and are not in the status yet. Each value has
        the name of the tested release, and the result.
        """

    @property
    def watches(self) -> Sequence[Watch[Any, RolloutKey]]:
        return [
            Watch(kinds=exactly(POLICIES), observe=self._observe_policy, keep=_policy),
            Watch(kinds=exactly(ROLLOUTS_ON), observe=self._observe_rollout, keep=_rollout),
            *(
                watch
                for each in self._all
                for watch in each.watches(self._touched, self._rollouts_of)
            ),
        ]

    @property
    def collectors(self) -> Sequence[Callable[[], Collector]]:
        return (self._metrics.collector,)

    async def close(self) -> None:
        for task in self._preflights.values():
            task.cancel()
        await asyncio.gather(*self._preflights.values(), return_exceptions=True)
        await self._observer.close()
        await self._notifier.close()

    def _observe_policy(self, kind: ResourceKind, change: Change[Any]) -> Iterable[RolloutKey]:
        del kind
        key = RolloutKey("policy", change.key.namespace, change.key.name)
        if change.before == change.after:
            return ()
        if change.after is None:
            self._policies.pop(key, None)
        else:
            self._policies[key] = change.after
        # Another policy may have waited for this one, and rollouts that cannot read it.
        policies = [each for each in self._policies if each.namespace == key.namespace]
        return {key, *policies, *(each for each in self._rollouts if self._follows(each, key))}

    def _follows(self, rollout: RolloutKey, policy: RolloutKey) -> bool:
        request = self._rollouts[rollout].request
        named = request is not None and request.policy == policy.name
        return named and rollout.namespace == policy.namespace

    def _observe_rollout(self, kind: ResourceKind, change: Change[_Known]) -> Iterable[RolloutKey]:
        del kind
        key = RolloutKey("rollout", change.key.namespace, change.key.name)
        if change.before == change.after:
            return ()
        for known, is_new in ((change.before, False), (change.after, True)):
            if known is not None and known.request is not None:
                active = self._active.setdefault(known.request.lineage, set())
                (active.add if is_new and known.is_active else active.discard)(key)
        state = None if change.after is None else change.after.state
        self._metrics.observe_state(key.namespace, key.name, state)
        if change.after is None:
            self._rollouts.pop(key, None)
            self._decided_at.pop(key, None)
            self._reports.pop(key, None)
            self._observer.forget(key)
            if (task := self._preflights.pop(key, None)) is not None:
                task.cancel()
        else:
            self._rollouts[key] = change.after
        both = [each.request for each in (change.before, change.after) if each is not None]
        lineages = {each.lineage for each in both if each is not None}
        return {key, *self._touched(lineages)}

    def _touched(self, lineages: Iterable[LineageName]) -> set[RolloutKey]:
        """Return the keys to reconcile after a change of these lineages.

        These are the active rollouts of the lineages, and all policies in the namespaces for them.
        """
        touched = {*lineages}
        spaces = {each.policy_namespace for each in touched}
        found = {each for each in self._policies if each.namespace in spaces}
        return found | self._rollouts_of(touched)

    def _rollouts_of(self, lineages: Iterable[LineageName]) -> set[RolloutKey]:
        """Return the active rollouts of these lineages."""
        return {key for each in lineages for key in self._active.get(each, ())}

    async def reconcile(self, key: RolloutKey) -> Requeue | None:
        if not self.synced:
            return Requeue(_SOON)
        since = self._clock.time() - self._decided_at.get(key, -math.inf)
        if since < _EVERY:
            return Requeue(_EVERY - since)
        self._decided_at[key] = self._clock.time()
        if key.kind == "policy":
            return await self._reconcile_policy(key)
        longest = math.inf if since < _UNOBSERVED else 0.0
        return await self._reconcile_rollout(key, longest=longest)

    # Policies.

    async def _reconcile_policy(self, key: RolloutKey) -> Requeue | None:
        obj = await find(self._client, POLICIES, key.name, key.namespace)
        if obj is None or "deletionTimestamp" in obj["metadata"]:
            return None  # deleting a policy opens nothing
        _, problems = read_rules(obj["spec"])
        lineages = self._lineages_of(obj)
        others = [each for each in self._policies.values() if each["metadata"]["name"] != key.name]
        older = older_policy(obj, lineages, others)
        if problems:
            message = "; ".join(map(str, problems))
            await self._tell_policy(obj, "False", "InvalidSpec", message, len(lineages))
            return None
        if older:
            await self._tell_policy(obj, "False", "Overlaps", older, len(lineages))
            return None
        for name in sorted(lineages):
            await self._mark(obj, name)
        number = len(lineages)
        message = f"it applies to {number} {'lineage' if number == 1 else 'lineages'}"
        await self._tell_policy(obj, "True", "Applied", message, number)
        return None

    def _lineages_of(self, policy: Object) -> dict[LineageName, Mapping[str, str]]:
        namespace = policy["metadata"]["namespace"]
        return {
            name: labels
            for each in self._all
            for name, labels in each.lineages(namespace).items()
            if is_target(policy, name, labels)
        }

    async def _mark(self, policy: Object, lineage: LineageName) -> None:
        """Open or close the releases of a lineage that have no gate annotation yet.

        Releases that are older than the policy are opened, newer ones are closed. Then create a
        Rollout for each release that the policy has closed.
        """
        targets, name = self._targets[lineage.group, lineage.kind], policy["metadata"]["name"]
        releases = await targets.releases(lineage)
        for release, closed in unmarked_releases(releases):
            await targets.write_gate(lineage, release.name, Gate(name) if closed else None)
        known = [self._rollouts[key].request for key in self._active.get(lineage, ())]
        active = {each.to for each in known if each is not None}
        used = [key.name for key in self._rollouts if key.namespace == lineage.policy_namespace]
        for release in releases_to_start(lineage, releases, active):
            made = {
                "apiVersion": "polyver.dev/v1alpha1",
                "kind": "Rollout",
                "metadata": {
                    "name": unused_name(rollout_name(lineage, release.name), used),
                    "namespace": lineage.policy_namespace,
                },
                "spec": {
                    "target": {
                        "group": lineage.group,
                        "kind": lineage.kind,
                        "name": lineage.name,
                    },
                    "to": release.name,
                    "policyRef": {"name": name},
                },
            }
            try:
                await self._client.create(ROLLOUTS_ON, made, manager=POLYVER)
            except ApiError as error:
                if error.reason != "AlreadyExists":
                    raise
        await self._delete_old(lineage)

    async def _delete_old(self, lineage: LineageName) -> None:
        """Delete the oldest finished rollouts of a lineage; the newest `KEPT` ones stay."""
        finished = [
            known.created
            for known in self._rollouts.values()
            if known.request is not None and known.request.lineage == lineage
            if not known.is_active
        ]
        for name in surplus_rollouts(finished):
            try:
                await self._client.delete(ROLLOUTS_ON, name, lineage.policy_namespace)
            except ApiError as error:
                if error.code != 404:
                    raise

    async def _tell_policy(
        self, obj: Object, status: Any, reason: str, message: str, targets: int
    ) -> None:
        ready = DesiredCondition("Ready", status, reason, message)
        conditions = set_conditions(obj, [ready], now=timestamp(self._clock))
        wanted = {**(obj.get("status") or {}), "targets": targets, "conditions": conditions}
        await write_status(self._client, POLICIES, obj, wanted, manager=POLYVER)

    # Rollouts.

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
                    await self._tell_deleted(obj, request, progress)
                else:
                    await self._tell_problem(obj, request, data, problems, releases)
            return None
        # Later, the checks find that the release cannot be used any more.
        is_new = progress.state is RolloutState.PREFLIGHT and not request.aborted
        if is_new and not release.is_published:
            return await self._tell_unpublished(obj, release)
        moment = self._clock.now()
        case = _Case(key, obj, request, progress, targets, releases, rules, data, now, moment)
        if progress.state.is_final:
            return await self._finish(case, release)
        release = await self._claim(case, release)
        plan, observed, opens_at = await self._decide(case)
        await self._tell(case, plan, observed)
        await self._write_gate(case, release, _gate(key.name, plan))
        if plan.progress.state.is_final:
            return Requeue(_EVERY)
        times = [plan.wake_at - now] if plan.wake_at is not None else []
        times += [(opens_at - moment).total_seconds()] if opens_at is not None else []
        return Requeue(max(_SOON, min([_POLLED, *times])))

    async def _tell_deleted(
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

    async def _finish(self, case: _Case, release: ReleaseObject) -> Requeue | None:
        """Write the final gate of a finished rollout, if this has not been done.

        Do nothing if the gate does not have the name of this rollout: the release was then
        published again, and its gate belongs to the policy or to another rollout. After a rollback
        or an abort, also update the numbers of followers in the status.
        """
        self._observer.forget(case.key)
        if release.gate is None or release.gate.rollout != case.key.name:
            return None
        plan = RolloutPlan(case.progress, exposure_of(case.rollout, case.progress))
        await self._write_gate(case, release, _gate(case.key.name, plan))
        return await self._tell_returned(case)

    async def _claim(self, case: _Case, release: ReleaseObject) -> ReleaseObject:
        """Replace the name of the policy in the gate of the release by the name of this rollout.

        If the release is published again later, the policy closes it with its own name. So this
        rollout can then see that the new gate does not belong to it.
        """
        if release.gate is None or release.gate.rollout != case.request.policy:
            return release
        gate = Gate(case.key.name)
        await case.targets.write_gate(case.request.lineage, release.name, gate)
        return replace(release, gate=gate, is_marked=True)

    async def _write_gate(self, case: _Case, release: ReleaseObject, gate: Gate | None) -> None:
        """Write the gate to the release, unless the release has this gate already."""
        if gate != release.gate or not release.is_marked:
            await case.targets.write_gate(case.request.lineage, release.name, gate)

    async def _tell_unpublished(self, obj: Object, release: ReleaseObject) -> Requeue:
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

    async def _tell_returned(self, case: _Case) -> Requeue | None:
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

    async def _decide(self, case: _Case) -> tuple[RolloutPlan, RolloutObservation, datetime | None]:
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
            self._superseded_by(case),
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

    def _checked(self, case: _Case, counts: CohortCounts, exposure: Exposure) -> CheckedStep:
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

    def _answers(self, case: _Case, counts: CohortCounts) -> Mapping[int, CheckResult]:
        """Return the latest results of the checks `prometheus` and `http`, by their index."""
        if not (number := case.progress.step):
            return {}
        wake = partial(self.wake, case.key)
        moved, checks = not counts.waiting, case.rules.checks
        return self._observer.results(case.key, checks, step=number, has_moved=moved, wake=wake)

    def _superseded_by(self, case: _Case) -> str:
        """Return the name of a newer release in the same series that replaces this one, or "".

        A newer release replaces this one if all followers may use it, or if its rollout has passed
        its preflight.
        """
        mine = next(each for each in case.releases if each.name == case.request.to)
        others = [known for known in self._others(case) if known.has_passed_preflight]
        starting = {known.request.to for known in others if known.request is not None}
        for newer in case.releases:
            is_newer = newer.order > mine.order and newer.series == mine.series
            is_open = newer.gate is None and newer.is_marked and newer.is_published
            if is_newer and (is_open or newer.name in starting):
                return newer.name
        return ""

    def _others(self, case: _Case) -> list[_Known]:
        """Return the other active rollouts of the same lineage."""
        others = self._active.get(case.request.lineage, set()) - {case.key}
        return [self._rollouts[each] for each in sorted(others)]

    async def _waits_for(self, case: _Case) -> tuple[str, datetime | None]:
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

    def _preflight(self, case: _Case) -> Object | None:
        """Return the result of the preflight; None if there is no result yet.

        Start a preflight in the background if there is no result, or if the result is outdated.
        """
        key, shown = case.key, (case.obj.get("status") or {}).get("preflight")
        found = self._reports.pop(key, None)
        if found is not None and found[0] == case.request.to:
            return found[1]
        held = case.progress.state is RolloutState.HELD
        is_old = held and case.now - case.progress.seen_at >= _REPEATED
        if (shown is None or is_old) and not case.progress.step and key not in self._preflights:
            self._preflights[key] = asyncio.create_task(self._run_preflight(case))
        return dict(shown) if shown is not None else None

    async def _run_preflight(self, case: _Case) -> None:
        key, request, began = case.key, case.request, self._clock.time()
        try:
            report = await case.targets.preflight(request.lineage, request.to, case.rules.sample)
            data = await asyncio.to_thread(preflight_data, report)
            stored = await store_report(self._client, case.obj, data)
            self._reports[key] = request.to, preflight_summary(data) | stored
        except (ApiError, PolyverError) as error:
            failure = {"message": f"the preflight failed: {error}", "dependents": 0, "names": []}
            counts = {"unchanged": 0, "changed": 0, "loses": 0, "fails": 1}
            self._reports[key] = request.to, {**counts, "failures": [failure]}
        finally:
            self._metrics.preflights.observe(self._clock.time() - began)
            self._preflights.pop(key, None)
            self._decided_at.pop(key, None)
            self.wake(key)

    # The status.

    async def _tell(self, case: _Case, plan: RolloutPlan, observed: RolloutObservation) -> None:
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
        message = _message(case, plan.progress, observed)
        await self._events.tell(obj, state.value, message, type="Warning" if warns else "Normal")

    async def _tell_problem(
        self,
        obj: Object,
        request: RolloutRequest,
        data: Object | None,
        problems: Sequence[PolyverError],
        releases: Sequence[ReleaseObject],
    ) -> None:
        """Report in the status why a rollout cannot start, with the reason `Invalid`."""
        if data is None:
            message = f"there is no RolloutPolicy {request.policy} (spec.policyRef)"
        elif problems:
            message = "; ".join(map(str, problems))
        elif (request.lineage.group, request.lineage.kind) not in self._targets:
            message = f"rollouts of {request.lineage.kind} are not enabled here (spec.target.kind)"
        else:
            known = listed([each.name for each in releases]) if releases else "none"
            message = f"{request.lineage} has no release {request.to} (spec.to); known: {known}"
        fact = DesiredCondition("Completed", "False", "Invalid", message)
        conditions = set_conditions(obj, [fact], now=timestamp(self._clock))
        status = {**(obj.get("status") or {}), "reason": message, "conditions": conditions}
        await write_status(self._client, ROLLOUTS_ON, obj, status, manager=POLYVER)


def _gate(name: str, plan: RolloutPlan) -> Gate | None:
    """Return the gate for a release after a decision; None if all followers may use it."""
    if plan.progress.state is RolloutState.COMPLETED:
        return None
    exposure = plan.exposure
    return Gate(name, plan.progress.step, exposure.share, exposure.labels, exposure.returns)


def _message(case: _Case, progress: RolloutProgress, observed: RolloutObservation) -> str:
    """Return the message of the Event that polyver emits when the state or the step has changed."""
    to, counts = case.request.to, observed.counts
    if progress.state is RolloutState.PREFLIGHT:
        return f"tries {to} for the followers of {case.request.lineage}; nothing changes yet"
    if progress.state is not RolloutState.PROGRESSING:
        return progress.reason or progress.state.value
    added = addition_text(case.data["steps"][progress.step - 1])
    step, cohort = f"step {progress.step} of {observed.steps}", f"{counts.cohort} of {counts.total}"
    return f"{step} has started ({added}): {cohort} followers may use {to}"


def _policy(kind: ResourceKind, obj: Object) -> Object:
    del kind
    metadata = {
        name: obj["metadata"].get(name)
        for name in ("name", "namespace", "generation", "creationTimestamp", "uid")
    }
    ready = find_condition(obj, "Ready") or {}
    status = {"conditions": [{"type": "Ready", "status": ready.get("status")}]} if ready else {}
    return {"metadata": metadata, "spec": obj.get("spec") or {}, "status": status}


def _rollout(kind: ResourceKind, obj: Object) -> _Known:
    del kind
    metadata = obj["metadata"]
    try:
        request = request_in(obj)
    except (KeyError, TypeError):
        request = None
    return _Known(
        request,
        (obj.get("status") or {}).get("state") or "",
        not ((obj.get("status") or {}).get("step") or "0/").startswith("0/"),
        (metadata.get("creationTimestamp", ""), metadata["name"]),
        metadata.get("generation", 0),
    )
