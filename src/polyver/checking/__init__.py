"""Trying out conversions: many objects, what must hold for each, and the smallest that breaks it.

Hypothesis is imported when objects are drawn, and not before: it is a tool of developers.
"""

from polyver.checking._comparing import Before, compare_behaviour
from polyver.checking._drawing import MissingHypothesis
from polyver.checking._running import Checked, Progress, check
from polyver.checking._subject import Subject

__all__ = [
    "Before",
    "Checked",
    "MissingHypothesis",
    "Progress",
    "Subject",
    "check",
    "compare_behaviour",
]
