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
    Unrendered,
    register,
)
from polyver.functions._clients import BlockingClient
from polyver.functions._context import AsyncContext, Cancelled, Context, FunctionLog

__all__ = [
    "Alias",
    "AsyncContext",
    "BlockingClient",
    "Cancelled",
    "Context",
    "Description",
    "Duration",
    "Function",
    "FunctionLog",
    "InvalidArguments",
    "InvalidDuration",
    "InvalidFunction",
    "Registry",
    "Unrendered",
    "register",
]
