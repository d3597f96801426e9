"""Controller of composite resources: runs pipelines of functions, and applies their results."""

from polyver.compositions.controllers.composites._controller import CompositeController
from polyver.compositions.controllers.composites._detached import detached_preflight
from polyver.compositions.controllers.composites._known_composites import CompositeKey
from polyver.compositions.controllers.composites._observed_state import (
    RequiredResourceReader,
    shown_to_functions,
)
from polyver.compositions.controllers.composites._pipeline_run import (
    Ask,
    CompositeLimits,
    Look,
    drive,
)
from polyver.compositions.controllers.composites._preflight import (
    Combined,
    ComparedComposites,
    TriedRevision,
)
from polyver.compositions.controllers.composites._reconcile import Work, recorded_calls

__all__ = [
    "Ask",
    "Combined",
    "ComparedComposites",
    "CompositeController",
    "CompositeKey",
    "CompositeLimits",
    "Look",
    "RequiredResourceReader",
    "TriedRevision",
    "Work",
    "detached_preflight",
    "drive",
    "recorded_calls",
    "shown_to_functions",
]
