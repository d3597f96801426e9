"""Functions that are installed: their revisions made and collected, and the active ones served."""

from polyver.engine.packages._dependents import (
    Compositions,
    CompositionsOn,
    Dependents,
    NoDependents,
    Users,
    composites,
    keep_revision,
)
from polyver.engine.packages._digests import DigestLimits
from polyver.engine.packages._functions import FunctionController
from polyver.engine.packages._installed import FUNCTION_REVISIONS, FUNCTIONS, InstalledOn
from polyver.engine.packages._revisions import FunctionRevisionController

__all__ = [
    "FUNCTIONS",
    "FUNCTION_REVISIONS",
    "Compositions",
    "CompositionsOn",
    "Dependents",
    "DigestLimits",
    "FunctionController",
    "FunctionRevisionController",
    "InstalledOn",
    "NoDependents",
    "Users",
    "composites",
    "keep_revision",
]
