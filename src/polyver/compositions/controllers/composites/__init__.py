"""Composite resources: pipelines of functions run, and what comes of them applied."""

from polyver.compositions.controllers.composites._calling import CompositeLimits
from polyver.compositions.controllers.composites._controller import CompositeController
from polyver.compositions.controllers.composites._driving import Ask, Look, drive
from polyver.compositions.controllers.composites._following import CompositeKey
from polyver.compositions.controllers.composites._looking import Looking, shown_to_functions

__all__ = [
    "Ask",
    "CompositeController",
    "CompositeKey",
    "CompositeLimits",
    "Look",
    "Looking",
    "drive",
    "shown_to_functions",
]
