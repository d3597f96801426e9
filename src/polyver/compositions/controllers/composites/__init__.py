"""Controller of composite resources: runs pipelines of functions, and applies their results."""

from polyver.compositions.controllers.composites._controller import CompositeController
from polyver.compositions.controllers.composites._dependents import CompositeKey
from polyver.compositions.controllers.composites._function_calls import CompositeLimits
from polyver.compositions.controllers.composites._pipeline_loop import Ask, Look, drive
from polyver.compositions.controllers.composites._required_resources import (
    RequiredResourceReader,
    shown_to_functions,
)

__all__ = [
    "Ask",
    "CompositeController",
    "CompositeKey",
    "CompositeLimits",
    "Look",
    "RequiredResourceReader",
    "drive",
    "shown_to_functions",
]
