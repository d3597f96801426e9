"""The gate of a release, which a rollout stores in annotations, and the targets of a policy.

A gate is stored in annotations of the object that stores the release, so one request reads both. If
a policy targets the lineage, a release without these annotations is closed. So no follower can use
a new release before a controller has written its gate.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

import msgspec

from polyver.core.lineage import Gate
from polyver.core.plain import ReadOnlyObject
from polyver.kube.objects import encode_json

__all__ = [
    "GATE",
    "OPEN",
    "STATE",
    "SYSTEM_NAMESPACE",
    "LineageName",
    "ReleaseObject",
    "gate_annotations",
    "gate_data",
    "gate_from_data",
    "gate_in",
    "is_target",
]

STATE: Final = "rollout.polyver.dev/state"
"""Annotation of the object that stores a release: `open`, or `closed` if the release has a gate."""
GATE: Final = "rollout.polyver.dev/gate"
"""Annotation with the gate of a closed release, in JSON."""
OPEN: Final = "open"
_CLOSED: Final = "closed"
SYSTEM_NAMESPACE: Final = "polyver-system"
"""The namespace of the policies and rollouts for cluster-scoped lineages and for blueprint
functions.
"""


@dataclass(frozen=True, slots=True, order=True)
class LineageName:
    """Identifies a lineage by the object that publishes its releases.

    >>> str(LineageName("core.oam.dev", "ComponentDefinition", "vela-system", "webservice"))
    'ComponentDefinition vela-system/webservice'
    """

    group: str
    kind: str
    namespace: str
    """The namespace of the object; empty if it is cluster-scoped."""
    name: str

    def __str__(self) -> str:
        return f"{self.kind} {'/'.join(filter(None, (self.namespace, self.name)))}"

    @property
    def policy_namespace(self) -> str:
        """The namespace of the policies and rollouts for this lineage."""
        return self.namespace or SYSTEM_NAMESPACE


# Gates on objects.


def gate_in(annotations: Mapping[str, str], *, policy: str = "") -> Gate | None:
    """Return the gate that the annotations of a release contain; None if the release is open.

    `policy` is the name of the Ready policy for the lineage; it is empty if there is none. If there
    is a policy and the annotation `STATE` is missing, return a gate that admits no follower.

    >>> gate_in({}, policy="careful")
    Gate(rollout='careful', step=0, share=0.0, cohorts=(), returns=False)
    """
    state = annotations.get(STATE)
    if state == OPEN or (state is None and not policy):
        return None
    try:
        return gate_from_data(msgspec.json.decode(annotations[GATE]))
    except (KeyError, TypeError, ValueError):
        return Gate(policy or "polyver")  # unreadable: closed is the safe side


def gate_data(gate: Gate) -> dict[str, Any]:
    """Convert a gate to a dictionary that can be stored as JSON."""
    data: dict[str, Any] = {"rollout": gate.rollout, "step": gate.step, "share": gate.share}
    data |= {"cohorts": [dict(each) for each in gate.cohorts]} if gate.cohorts else {}
    return data | ({"returns": True} if gate.returns else {})


def gate_from_data(data: Mapping[str, Any]) -> Gate:
    """Convert the dictionary that `gate_data` made back to a gate.

    Raise an error if it is not such a dictionary.
    """
    return Gate(
        str(data["rollout"]),
        int(data["step"]),
        min(1.0, max(0.0, float(data["share"]))),
        tuple({str(k): str(v) for k, v in each.items()} for each in data.get("cohorts") or ()),
        data.get("returns") is True,
    )


def gate_annotations(gate: Gate | None) -> dict[str, str | None]:
    """Return the values of the annotations `STATE` and `GATE` for a release with this gate.

    `gate` is None for an open release. The value None means that the annotation must be removed.
    """
    if gate is None:
        return {STATE: OPEN, GATE: None}
    return {STATE: _CLOSED, GATE: encode_json(gate_data(gate)).decode()}


# Policies.


def is_target(policy: ReadOnlyObject, lineage: LineageName, labels: Mapping[str, str]) -> bool:
    """Report whether a policy names a lineage, or selects it by the labels of its object."""
    if policy["metadata"].get("namespace", "") != lineage.policy_namespace:
        return False
    for each in (policy.get("spec") or {}).get("targets") or ():
        if (each.get("group"), each.get("kind")) != (lineage.group, lineage.kind):
            continue
        selector = (each.get("selector") or {}).get("matchLabels")
        if each.get("name") == lineage.name:
            return True
        if selector is not None and selector.items() <= labels.items():
            return True
    return False


@dataclass(frozen=True, slots=True)
class ReleaseObject:
    """A release of a lineage, with the gate that its object states."""

    name: str
    """The name by which `Rollout.spec.to` refers to this release: a version, or a revision's name.
    """
    order: int
    """The position in the lineage; newer releases have higher positions."""
    gate: Gate | None
    is_marked: bool
    """True if the object has the annotation `rollout.polyver.dev/state`."""
    is_published: bool = True
    """False if the release exists, but dependents cannot use it yet: for example, the status of the
    definition does not list it yet.
    """
    series: str = ""
    """The series, such as `1.2`. If two releases have the same series, they have the same
    followers, and a rollout of the newer one supersedes a rollout of the older one.
    """
