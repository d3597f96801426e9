"""Writing functions: what a project imports to register what blueprints may call."""

from polyver.capabilities.functions.registering import (
    Alias,
    Description,
    Duration,
    Function,
    InvalidArguments,
    InvalidDuration,
    InvalidFunction,
    Registry,
    register,
)

__all__ = [
    "Alias",
    "Description",
    "Duration",
    "Function",
    "InvalidArguments",
    "InvalidDuration",
    "InvalidFunction",
    "Registry",
    "register",
]
