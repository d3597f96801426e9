"""Test conversions with many generated objects, and find the smallest object that shows a failure.

Hypothesis, a development tool, is imported only when objects are generated.
"""

from polyver.apis.trials._behaviour import BehaviourComparison, EarlierConversions
from polyver.apis.trials._generated_objects import MissingHypothesis
from polyver.apis.trials._run import CheckedKind, ConversionCheckResult, Progress, check

__all__ = [
    "BehaviourComparison",
    "CheckedKind",
    "ConversionCheckResult",
    "EarlierConversions",
    "MissingHypothesis",
    "Progress",
    "check",
]
