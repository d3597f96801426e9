"""The kinds of packages and their revisions, with the fields that Crossplane's have, and ours."""

from polyver.capabilities.revisions.kinds._packages import (
    CONFIGURATIONS,
    FUNCTION_REVISIONS,
    FUNCTIONS,
    GROUP,
    PACKAGES,
    PROVIDERS,
    STORED,
    Function,
    FunctionRevision,
)

__all__ = [
    "CONFIGURATIONS",
    "FUNCTIONS",
    "FUNCTION_REVISIONS",
    "GROUP",
    "KINDS",
    "PACKAGES",
    "PROVIDERS",
    "STORED",
    "Function",
    "FunctionRevision",
]

KINDS = (*PACKAGES, FUNCTION_REVISIONS)
