"""definitions: semantic versions of components, and applications that follow them."""

from polyver.capabilities import Capability
from polyver.capabilities.definitions._manifests import (
    applications_in,
    definitions_in,
    lineages,
    lineages_in,
)
from polyver.capabilities.definitions._policy import (
    DEFINITIONS,
    DEFINITIONS_EXACT,
    DEFINITIONS_FOLLOW,
    DEFINITIONS_LEGACY,
    DEFINITIONS_PRERELEASES,
    SEMANTIC_POLICIES,
    policy_for,
    selector,
)

__all__ = [
    "CAPABILITY",
    "DEFINITIONS",
    "DEFINITIONS_EXACT",
    "DEFINITIONS_FOLLOW",
    "DEFINITIONS_LEGACY",
    "DEFINITIONS_PRERELEASES",
    "applications_in",
    "definitions_in",
    "lineages_in",
    "policy_for",
]

CAPABILITY = Capability((*SEMANTIC_POLICIES, DEFINITIONS_LEGACY), lineages, selector)
