"""Reconciles RolloutPolicies: marks the releases of their lineages, and creates Rollouts."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from polyver.capability.gates import LineageName, is_target
from polyver.capability.rollouts import POLICIES, RolloutTargets
from polyver.client import Client, Clock, find, timestamp
from polyver.client.field_managers import POLYVER
from polyver.controllers.statuses import write_status
from polyver.core import Gate
from polyver.core.plain import Object
from polyver.kube.objects.conditions import DesiredCondition, set_conditions
from polyver.kube.objects.status import ApiError
from polyver.rollouts.known import KnownRollouts, RolloutKey
from polyver.rollouts.names import ROLLOUTS_ON
from polyver.rollouts.policies import (
    older_policy,
    releases_to_start,
    rollout_name,
    surplus_rollouts,
    unmarked_releases,
    unused_name,
)
from polyver.rollouts.rules import read_rules

__all__ = ["PolicyReconciler"]


class PolicyReconciler:
    """Reconciles one RolloutPolicy at a time."""

    def __init__(
        self, client: Client, targets: Sequence[RolloutTargets], known: KnownRollouts, clock: Clock
    ) -> None:
        self._client = client
        self._targets = targets
        self._known = known
        self._clock = clock

    async def reconcile(self, key: RolloutKey) -> None:
        obj = await find(self._client, POLICIES, key.name, key.namespace)
        if obj is None or "deletionTimestamp" in obj["metadata"]:
            return  # deleting a policy opens nothing
        _, problems = read_rules(obj["spec"])
        lineages = self._lineages_of(obj)
        number = len(lineages)
        if problems:
            message = "; ".join(map(str, problems))
            await self._set_status(obj, "False", "InvalidSpec", message, number)
        elif older := older_policy(obj, lineages, self._known.other_policies(key.name)):
            await self._set_status(obj, "False", "Overlaps", older, number)
        else:
            for name in sorted(lineages):
                await self._apply_to(obj, name)
            message = f"it applies to {number} {'lineage' if number == 1 else 'lineages'}"
            await self._set_status(obj, "True", "Applied", message, number)

    def _lineages_of(self, policy: Object) -> dict[LineageName, Mapping[str, str]]:
        namespace = policy["metadata"]["namespace"]
        return {
            name: labels
            for each in self._targets
            for name, labels in each.lineages(namespace).items()
            if is_target(policy, name, labels)
        }

    async def _apply_to(self, policy: Object, lineage: LineageName) -> None:
        """Open or close the releases of a lineage that have no gate annotation yet.

        Releases that are older than the policy are opened, newer ones are closed. Then create a
        Rollout for each release that the policy has closed.
        """
        name = policy["metadata"]["name"]
        targets = next(t for t in self._targets if (lineage.group, lineage.kind) in t.kinds)
        releases = await targets.releases(lineage)
        for release, closed in unmarked_releases(releases):
            await targets.write_gate(lineage, release.name, Gate(name) if closed else None)
        requests = [each.request for each in self._known.active(lineage, without=None)]
        active = {each.to for each in requests if each is not None}
        for release in releases_to_start(lineage, releases, active):
            await self._start(lineage, release.name, name)
        await self._delete_old(lineage)

    async def _start(self, lineage: LineageName, release: str, policy: str) -> None:
        """Create a Rollout of a release."""
        used = self._known.names(lineage.policy_namespace)
        rollout = {
            "apiVersion": "polyver.dev/v1alpha1",
            "kind": "Rollout",
            "metadata": {
                "name": unused_name(rollout_name(lineage, release), used),
                "namespace": lineage.policy_namespace,
            },
            "spec": {
                "target": {"group": lineage.group, "kind": lineage.kind, "name": lineage.name},
                "to": release,
                "policyRef": {"name": policy},
            },
        }
        try:
            await self._client.create(ROLLOUTS_ON, rollout, manager=POLYVER)
        except ApiError as error:
            if error.reason != "AlreadyExists":
                raise

    async def _delete_old(self, lineage: LineageName) -> None:
        """Delete the oldest finished rollouts of a lineage; the newest `KEPT` ones stay."""
        finished = [each.created for each in self._known.finished(lineage)]
        for name in surplus_rollouts(finished):
            try:
                await self._client.delete(ROLLOUTS_ON, name, lineage.policy_namespace)
            except ApiError as error:
                if error.code != 404:
                    raise

    async def _set_status(
        self, obj: Object, status: Any, reason: str, message: str, targets: int
    ) -> None:
        ready = DesiredCondition("Ready", status, reason, message)
        conditions = set_conditions(obj, [ready], now=timestamp(self._clock))
        wanted = {**(obj.get("status") or {}), "targets": targets, "conditions": conditions}
        await write_status(self._client, POLICIES, obj, wanted, manager=POLYVER)
