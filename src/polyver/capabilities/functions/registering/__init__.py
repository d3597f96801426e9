"""Functions that are written in Python: registered, with arguments that are checked, and found."""

from polyver.capabilities.functions.registering._discovery import function_data, functions_data
from polyver.capabilities.functions.registering._duration import Duration, InvalidDuration
from polyver.capabilities.functions.registering._function import (
    Arguments,
    Function,
    InvalidArguments,
    Outputs,
)
from polyver.capabilities.functions.registering._hints import (
    Alias,
    Description,
    InvalidFunction,
    Unrendered,
)
from polyver.capabilities.functions.registering._known import (
    Functions,
    KnownFunction,
    Origin,
    UnknownFunction,
    check_registered,
    implementation,
    known_functions,
)
from polyver.capabilities.functions.registering._reading import Wrong
from polyver.capabilities.functions.registering._registry import Registry, register

__all__ = [
    "Alias",
    "Arguments",
    "Description",
    "Duration",
    "Function",
    "Functions",
    "InvalidArguments",
    "InvalidDuration",
    "InvalidFunction",
    "KnownFunction",
    "Origin",
    "Outputs",
    "Registry",
    "UnknownFunction",
    "Unrendered",
    "Wrong",
    "check_registered",
    "function_data",
    "functions_data",
    "implementation",
    "known_functions",
    "register",
]
