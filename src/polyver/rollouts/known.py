"""The policies and rollouts that the controller knows from its watches."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, NamedTuple

from polyver.capability.gates import LineageName
from polyver.client import Change
from polyver.core.plain import Object
from polyver.core.rollout import RolloutState
from polyver.kube.objects.conditions import find_condition
from polyver.kube.objects.kinds import ResourceKind
from polyver.rollouts.names import RolloutRequest, request_in

__all__ = ["KnownRollout", "KnownRollouts", "RolloutKey", "policy_in", "rollout_in"]


class RolloutKey(NamedTuple):
    """Identifies a RolloutPolicy or a Rollout."""

    kind: str
    namespace: str
    name: str


@dataclass(frozen=True, slots=True)
class KnownRollout:
    """The fields of a Rollout that the controller keeps for all rollouts."""

    request: RolloutRequest | None
    """The parsed spec; None if the spec is invalid."""
    state: str
    has_started: bool
    """True if the first step of the rollout has started."""
    created: tuple[str, str]
    """The creation time and the name."""
    generation: int

    @property
    def is_active(self) -> bool:
        return not self.state or not RolloutState(self.state).is_final

    @property
    def has_passed_preflight(self) -> bool:
        """False before the first step, if the state is empty, Preflight or Held; otherwise True."""
        before = ("", RolloutState.PREFLIGHT.value, RolloutState.HELD.value)
        return self.has_started or self.state not in before


class KnownRollouts:
    """All policies, all rollouts, and the active rollouts of each lineage.

    The methods that record a change return the keys to reconcile after it.
    """

    def __init__(self) -> None:
        self._policies: dict[RolloutKey, Object] = {}
        self._rollouts: dict[RolloutKey, KnownRollout] = {}
        self._active: dict[LineageName, set[RolloutKey]] = {}

    def record_policy(self, change: Change[Object]) -> set[RolloutKey]:
        key = RolloutKey("policy", change.key.namespace, change.key.name)
        if change.after is None:
            self._policies.pop(key, None)
        else:
            self._policies[key] = change.after
        # Another policy may have waited for this one, and rollouts that cannot read it.
        policies = {each for each in self._policies if each.namespace == key.namespace}
        return {key, *policies, *(each for each in self._rollouts if self._follows(each, key))}

    def _follows(self, rollout: RolloutKey, policy: RolloutKey) -> bool:
        request = self._rollouts[rollout].request
        named = request is not None and request.policy == policy.name
        return named and rollout.namespace == policy.namespace

    def record_rollout(self, change: Change[KnownRollout]) -> set[RolloutKey]:
        key = RolloutKey("rollout", change.key.namespace, change.key.name)
        for known, is_new in ((change.before, False), (change.after, True)):
            if known is not None and known.request is not None:
                active = self._active.setdefault(known.request.lineage, set())
                (active.add if is_new and known.is_active else active.discard)(key)
        if change.after is None:
            self._rollouts.pop(key, None)
        else:
            self._rollouts[key] = change.after
        both = [each.request for each in (change.before, change.after) if each is not None]
        return {key, *self.touched(each.lineage for each in both if each is not None)}

    def touched(self, lineages: Iterable[LineageName]) -> set[RolloutKey]:
        """Return the keys to reconcile after a change of these lineages.

        These are the active rollouts of the lineages, and all policies in the namespaces for them.
        """
        touched = {*lineages}
        spaces = {each.policy_namespace for each in touched}
        found = {each for each in self._policies if each.namespace in spaces}
        return found | self.active_keys(touched)

    def active_keys(self, lineages: Iterable[LineageName]) -> set[RolloutKey]:
        """Return the keys of the active rollouts of these lineages."""
        return {key for each in lineages for key in self._active.get(each, ())}

    def active(self, lineage: LineageName, *, without: RolloutKey | None) -> list[KnownRollout]:
        """Return the active rollouts of a lineage, without one of them."""
        found = self._active.get(lineage, set()) - {without}
        return [self._rollouts[each] for each in sorted(found)]

    def finished(self, lineage: LineageName) -> list[KnownRollout]:
        """Return the rollouts of a lineage that have ended."""
        return [
            each
            for each in self._rollouts.values()
            if each.request is not None and each.request.lineage == lineage and not each.is_active
        ]

    def names(self, namespace: str) -> list[str]:
        """Return the names of all rollouts in a namespace."""
        return [key.name for key in self._rollouts if key.namespace == namespace]

    def other_policies(self, name: str) -> list[Object]:
        """Return all policies with another name than `name`."""
        return [each for each in self._policies.values() if each["metadata"]["name"] != name]


def policy_in(kind: ResourceKind, obj: Object) -> Object:
    """Return the fields of a RolloutPolicy that the controller keeps."""
    del kind
    metadata = {
        name: obj["metadata"].get(name)
        for name in ("name", "namespace", "generation", "creationTimestamp", "uid")
    }
    ready = find_condition(obj, "Ready") or {}
    status = {"conditions": [{"type": "Ready", "status": ready.get("status")}]} if ready else {}
    return {"metadata": metadata, "spec": obj.get("spec") or {}, "status": status}


def rollout_in(kind: ResourceKind, obj: Object) -> KnownRollout:
    """Return the fields of a Rollout that the controller keeps."""
    del kind
    metadata, status = obj["metadata"], obj.get("status") or {}
    request: RolloutRequest | None
    try:
        request = request_in(obj)
    except (KeyError, TypeError):
        request = None
    has_started = not (status.get("step") or "0/").startswith("0/")
    created = (metadata.get("creationTimestamp", ""), metadata["name"])
    state: Any = status.get("state") or ""
    return KnownRollout(request, state, has_started, created, metadata.get("generation", 0))
