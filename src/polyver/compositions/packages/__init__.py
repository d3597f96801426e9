"""Decisions about packages on plain data: the revisions of a Function, and refusals.

Admission calls these functions before a write, the controller afterwards.
"""

from polyver.compositions.packages._compositions import (
    CompositionPipeline,
    pipeline_of,
    revision_used,
    uses_in,
)
from polyver.compositions.packages._plan import (
    FunctionPlan,
    Postponed,
    decide,
    results_of,
    users_of,
)
from polyver.compositions.packages._references import check_reference
from polyver.compositions.packages._revisions import (
    KnownFunctionRevision,
    check_revision,
    function_of,
    known_revision,
    lineage_of,
    revision_object,
    revision_patch,
)
from polyver.compositions.packages._spec import (
    DesiredFunction,
    check_package,
    ignored_fields,
    read_function,
)
from polyver.compositions.packages._status import (
    UNPACKING,
    FunctionPackageState,
    function_status,
    revision_status,
)
from polyver.compositions.packages._uses import StepFunctionUse, selected_in

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
