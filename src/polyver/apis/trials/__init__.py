"""Trying out conversions: many objects, what must hold for each, and the smallest that breaks it.

Hypothesis is imported when objects are drawn, and not before: it is a tool of developers.
"""

from polyver.apis.trials._behaviour import EarlierConversions, compare_behaviour
from polyver.apis.trials._generated_objects import MissingHypothesis
from polyver.apis.trials._run import ConversionCheckResult, Progress, check
from polyver.apis.trials._subject import CheckedKind

__all__ = [
    "CheckedKind",
    "ConversionCheckResult",
    "EarlierConversions",
    "MissingHypothesis",
    "Progress",
    "check",
    "compare_behaviour",
]
