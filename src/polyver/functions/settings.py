"""The settings that commands pass to the capability functions."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from polyver.languages.values.durations import nanoseconds

if TYPE_CHECKING:
    from polyver.functions.registering import Functions

__all__ = ["DEFAULT_SECONDS", "DEFAULT_TIMEOUT", "CallSettings", "FunctionSettings"]

DEFAULT_TIMEOUT = "1h"
"""The default of `--function-timeout`, the maximum duration of one call."""
DEFAULT_SECONDS = (nanoseconds(DEFAULT_TIMEOUT) or 0) / 1e9
"""`DEFAULT_TIMEOUT` in seconds."""


@dataclass(frozen=True, slots=True)
class CallSettings:
    """Settings for calls of functions."""

    seconds: float = DEFAULT_SECONDS
    """Timeout of one call in seconds."""
    allows: frozenset[str] = frozenset()
    """Permissions for functions: `command` allows the function `Command` to run programs."""
    in_threads: bool = False
    """True if functions are called in threads of this process.

    Only tests use this, for functions that another process cannot load.
    """


@dataclass(frozen=True, slots=True)
class FunctionSettings:
    """Settings of the capability functions."""

    functions: Functions | None = None
    """The functions that blueprints may call. None means the built-in functions."""
    calls: CallSettings = field(default_factory=CallSettings)
