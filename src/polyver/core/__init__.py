"""The code that all capabilities share: versions, lineages, selectors, resolution, lifecycles.

A lineage is all releases of one building block, such as a ComponentDefinition. A selector states
which releases a user accepts, resolution chooses one of them, and a lifecycle states how releases
move from stage to stage. The code here is pure: it does no I/O, reads no clock and knows nothing of
Kubernetes clients.
"""

from polyver.core.convert import ConversionTree, Edge, Hop, InvalidTree
from polyver.core.errors import PolyverError, listed
from polyver.core.impact import Answer, Index, Loss, Move, Moves, affected, answers
from polyver.core.lifecycle import (
    API_STAGES,
    DEFINITION_STAGES,
    FUNCTION_STAGES,
    NOTICE,
    REVISION_STAGES,
    Contradiction,
    EarlyRemoval,
    IllegalTransition,
    Lifecycle,
    Stage,
    advance,
    check_dates,
    check_releases,
    check_removal,
    next_stage,
    usual_removal,
)
from polyver.core.lineage import (
    Dependent,
    FailedMove,
    Gate,
    Lineage,
    MixedOrders,
    Notes,
    Pin,
    Release,
    VersionTaken,
    is_same,
)
from polyver.core.resolve import Gone, NoMatch, Policy, Question, Rejection, Resolution, resolve
from polyver.core.selectors import UNSPECIFIED, Exact, Labels, Selector, Unspecified
from polyver.core.versions import InvalidVersion, KubeVersion, SemVer, Serial, Series, Version

__all__ = [
    "API_STAGES",
    "DEFINITION_STAGES",
    "FUNCTION_STAGES",
    "NOTICE",
    "REVISION_STAGES",
    "UNSPECIFIED",
    "Answer",
    "Contradiction",
    "ConversionTree",
    "Dependent",
    "EarlyRemoval",
    "Edge",
    "Exact",
    "FailedMove",
    "Gate",
    "Gone",
    "Hop",
    "IllegalTransition",
    "Index",
    "InvalidTree",
    "InvalidVersion",
    "KubeVersion",
    "Labels",
    "Lifecycle",
    "Lineage",
    "Loss",
    "MixedOrders",
    "Move",
    "Moves",
    "NoMatch",
    "Notes",
    "Pin",
    "Policy",
    "PolyverError",
    "Question",
    "Rejection",
    "Release",
    "Resolution",
    "Selector",
    "SemVer",
    "Serial",
    "Series",
    "Stage",
    "Unspecified",
    "Version",
    "VersionTaken",
    "advance",
    "affected",
    "answers",
    "check_dates",
    "check_releases",
    "check_removal",
    "is_same",
    "listed",
    "next_stage",
    "resolve",
    "usual_removal",
]
