"""The API with which a project writes functions for blueprints in Python, and registers them."""

from typing import TYPE_CHECKING

from polyver.core.loading import imported_on_use

if TYPE_CHECKING:
    from polyver.functions.registering import (
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
    from polyver.functions.runtime.context import (
        AsyncContext,
        BlockingClient,
        Cancelled,
        Context,
        FunctionLog,
    )

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

__getattr__ = imported_on_use(
    __name__,
    {
        "polyver.functions.registering": (
            "Alias Description Duration Function InvalidArguments InvalidDuration "
            "InvalidFunction Registry Unrendered register"
        ),
        "polyver.functions.runtime.context": (
            "AsyncContext BlockingClient Cancelled Context FunctionLog"
        ),
    },
)
