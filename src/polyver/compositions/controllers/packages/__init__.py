"""Controllers of Functions and FunctionRevisions."""

from polyver.compositions.controllers.packages._digests import DigestLimits
from polyver.compositions.controllers.packages._functions import FunctionController
from polyver.compositions.controllers.packages._lookup import (
    FUNCTION_REVISIONS,
    FUNCTIONS,
    ClientFunctionLookup,
    Compositions,
    CompositionsOn,
    Dependents,
    NoDependents,
    Users,
    composites,
    keep_revision,
    observe_name,
)
from polyver.compositions.controllers.packages._revisions import FunctionRevisionController

__all__ = [
    "FUNCTIONS",
    "FUNCTION_REVISIONS",
    "ClientFunctionLookup",
    "Compositions",
    "CompositionsOn",
    "Dependents",
    "DigestLimits",
    "FunctionController",
    "FunctionRevisionController",
    "NoDependents",
    "Users",
    "composites",
    "keep_revision",
    "observe_name",
]
