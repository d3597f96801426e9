"""Decisions about the retirement of a version: its plan, its next step, and the changes it makes.

All modules are pure. The controller of Retirements executes the steps.
"""

from polyver.apis.retirement._decisions import (
    FIXED_REASONS,
    PASSES,
    Blocker,
    PassProgress,
    RetirementDecision,
    RetirementSnapshot,
    RetirementState,
    RetirementStep,
    decide,
)
from polyver.apis.retirement._definitions import (
    appliers_of_versions,
    conversion_without,
    paths_through,
    versions_served,
    versions_without,
)
from polyver.apis.retirement._plan import (
    ObjectCounts,
    PlannedStep,
    RetirementPlan,
    plan_retirement,
)
from polyver.apis.retirement._usage import VersionClients, clients_of

__all__ = [
    "FIXED_REASONS",
    "PASSES",
    "Blocker",
    "ObjectCounts",
    "PassProgress",
    "PlannedStep",
    "RetirementDecision",
    "RetirementPlan",
    "RetirementSnapshot",
    "RetirementState",
    "RetirementStep",
    "VersionClients",
    "appliers_of_versions",
    "clients_of",
    "conversion_without",
    "decide",
    "paths_through",
    "plan_retirement",
    "versions_served",
    "versions_without",
]
