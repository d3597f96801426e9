"""Controller of composite resources: runs pipelines of functions, and applies their results."""

from polyver.compositions.controllers.composites._controller import CompositeController
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
from polyver.compositions.controllers.composites._preflight import TriedRevision

__all__ = [
    "Ask",
    "CompositeController",
    "CompositeKey",
    "CompositeLimits",
    "Look",
    "RequiredResourceReader",
    "TriedRevision",
    "drive",
    "shown_to_functions",
]
