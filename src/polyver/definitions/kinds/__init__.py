"""Kinds of definitions and applications, with the fields of KubeVela and fields of polyver."""

from polyver.definitions.kinds._applications import (
    APPLICATION_REVISIONS,
    APPLICATIONS,
    Application,
    ApplicationRevision,
)
from polyver.definitions.kinds._definitions import (
    COMPONENTS,
    DEFINITIONS,
    GROUP,
    POLICIES,
    REVISIONS,
    STORED,
    TRAITS,
    VERSIONED,
    WORKFLOW_STEPS,
    DefinitionRevision,
)

__all__ = [
    "APPLICATIONS",
    "APPLICATION_REVISIONS",
    "COMPONENTS",
    "DEFINITIONS",
    "GROUP",
    "KINDS",
    "POLICIES",
    "REVISIONS",
    "STORED",
    "TRAITS",
    "VERSIONED",
    "WORKFLOW_STEPS",
    "Application",
    "ApplicationRevision",
    "DefinitionRevision",
]

KINDS = (*DEFINITIONS, REVISIONS, APPLICATIONS, APPLICATION_REVISIONS)
