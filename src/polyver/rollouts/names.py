"""Names of the resources and kinds of rollouts, and the parsed spec of a Rollout."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from polyver.capability.gates import SYSTEM_NAMESPACE, LineageName
from polyver.client import GroupVersionResource
from polyver.core.plain import ReadOnlyObject

__all__ = [
    "BLUEPRINT_FUNCTION",
    "CLUSTER_SCOPED",
    "FREEZE",
    "REPORTS_ON",
    "ROLLOUTS_ON",
    "TARGET_KINDS",
    "RolloutRequest",
    "lineage_of",
    "request_in",
]

ROLLOUTS_ON: Final = GroupVersionResource("polyver.dev", "v1alpha1", "rollouts")
REPORTS_ON: Final = GroupVersionResource("polyver.dev", "v1alpha1", "rolloutreports")
FREEZE: Final = "polyver-rollout-freeze"
"""The name of the ConfigMap in polyver's namespace. While it exists, no rollout starts a step."""
BLUEPRINT_FUNCTION: Final = ("polyver.dev", "BlueprintFunction")
CLUSTER_SCOPED: Final = (
    ("apiextensions.crossplane.io", "Composition"),
    ("pkg.crossplane.io", "Function"),
    BLUEPRINT_FUNCTION,
)
"""The groups and kinds of targets that have no namespace."""
TARGET_KINDS: Final = (
    *(
        ("core.oam.dev", kind)
        for kind in (
            "ComponentDefinition",
            "TraitDefinition",
            "PolicyDefinition",
            "WorkflowStepDefinition",
        )
    ),
    *CLUSTER_SCOPED,
)
"""The groups and kinds of all objects that a policy or a rollout may target."""


@dataclass(frozen=True, slots=True)
class RolloutRequest:
    """The parsed spec of a Rollout, without its steps, checks and other rules."""

    lineage: LineageName
    to: str
    policy: str
    paused: bool
    aborted: bool
    approved_step: int


def lineage_of(target: Mapping[str, Any], namespace: str) -> LineageName:
    """Return the name of the lineage in a target of a policy or of a rollout.

    `namespace` is the namespace of the policy or the rollout.
    """
    group, kind = target["group"], target["kind"]
    inside = "" if (group, kind) in CLUSTER_SCOPED else namespace
    return LineageName(group, kind, inside, target["name"])


def request_in(obj: ReadOnlyObject) -> RolloutRequest:
    """Parse the spec of a Rollout, without its rules."""
    spec: ReadOnlyObject = obj["spec"]
    return RolloutRequest(
        lineage_of(spec["target"], obj["metadata"].get("namespace") or SYSTEM_NAMESPACE),
        spec["to"],
        (spec.get("policyRef") or {}).get("name") or "",
        spec.get("paused") is True,
        spec.get("aborted") is True,
        -1 if spec.get("approvedStep") is None else spec["approvedStep"],
    )
