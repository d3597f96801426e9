"""Decisions about Functions, their packages and their revisions, on plain data.

Admission calls these functions before a write. The controller calls them after a write.
"""

from polyver.compositions.packages._functions import (
    DesiredFunction,
    KnownFunctionRevision,
    check_package,
    check_reference,
    check_revision,
    function_of,
    ignored_fields,
    known_revision,
    lineage_of,
    read_function,
    revision_object,
    revision_patch,
)
from polyver.compositions.packages._plan import (
    UNPACKING,
    FunctionPackageState,
    FunctionPlan,
    Postponed,
    decide,
    function_status,
    results_of,
    revision_status,
    users_of,
)
from polyver.compositions.packages._uses import (
    CompositionPipeline,
    StepFunctionUse,
    pipeline_of,
    revision_used,
    selected_in,
    uses_in,
)

__all__ = [
    "UNPACKING",
    "CompositionPipeline",
    "DesiredFunction",
    "FunctionPackageState",
    "FunctionPlan",
    "KnownFunctionRevision",
    "Postponed",
    "StepFunctionUse",
    "check_package",
    "check_reference",
    "check_revision",
    "decide",
    "function_of",
    "function_status",
    "ignored_fields",
    "known_revision",
    "lineage_of",
    "pipeline_of",
    "read_function",
    "results_of",
    "revision_object",
    "revision_patch",
    "revision_status",
    "revision_used",
    "selected_in",
    "users_of",
    "uses_in",
]
