"""Kinds of packages, compositions and their revisions, with Crossplane's and polyver's fields."""

from polyver.compositions.kinds._compositions import (
    COMPOSITION_GROUP,
    COMPOSITION_REVISIONS,
    COMPOSITION_STORED,
    COMPOSITIONS,
    DEFINITIONS,
    CompositeResourceDefinition,
    Composition,
    CompositionRevision,
)
from polyver.compositions.kinds._packages import (
    CONFIGURATIONS,
    FUNCTION_REVISIONS,
    FUNCTIONS,
    GROUP,
    PACKAGES,
    PROVIDERS,
    STORED,
    CompositionFunction,
    FunctionRevision,
)

__all__ = [
    "COMPOSITIONS",
    "COMPOSITION_GROUP",
    "COMPOSITION_KINDS",
    "COMPOSITION_REVISIONS",
    "COMPOSITION_STORED",
    "CONFIGURATIONS",
    "DEFINITIONS",
    "FUNCTIONS",
    "FUNCTION_REVISIONS",
    "GROUP",
    "KINDS",
    "PACKAGES",
    "PROVIDERS",
    "STORED",
    "CompositeResourceDefinition",
    "Composition",
    "CompositionFunction",
    "CompositionRevision",
    "FunctionRevision",
]

KINDS = (*PACKAGES, FUNCTION_REVISIONS)
COMPOSITION_KINDS = (DEFINITIONS, COMPOSITIONS, COMPOSITION_REVISIONS)
