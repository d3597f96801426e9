"""Composite resources: pipelines of functions run, and what comes of them applied."""

from polyver.engine.composites._calling import CompositeLimits
from polyver.engine.composites._controller import CompositeController
from polyver.engine.composites._driving import Ask, Look, drive
from polyver.engine.composites._following import CompositeKey
from polyver.engine.composites._looking import Looking, shown_to_functions

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
