"""Blueprint functions written in Python: registration, validation of arguments, and lookup."""

from polyver.functions.registering._hints import Alias, Description, InvalidFunction, Unrendered
from polyver.functions.registering._registry import Registry, register
from polyver.functions.registering._types import ArgumentField
from polyver.functions.registering.arguments import (
    ANYTHING,
    ArgumentProblem,
    Duration,
    InvalidDuration,
)
from polyver.functions.registering.function import (
    Arguments,
    Function,
    FunctionOutputs,
    InvalidArguments,
)
from polyver.functions.registering.functions import (
    Functions,
    KnownFunction,
    Origin,
    UnknownFunction,
    check_registered,
    function_data,
    functions_data,
    implementation,
    known_functions,
)

__all__ = [
    "ANYTHING",
    "Alias",
    "ArgumentField",
    "ArgumentProblem",
    "Arguments",
    "Description",
    "Duration",
    "Function",
    "FunctionOutputs",
    "Functions",
    "InvalidArguments",
    "InvalidDuration",
    "InvalidFunction",
    "KnownFunction",
    "Origin",
    "Registry",
    "UnknownFunction",
    "Unrendered",
    "check_registered",
    "function_data",
    "functions_data",
    "implementation",
    "known_functions",
    "register",
]
