"""Settings of function calls, which commands pass to the capability."""

from __future__ import annotations

from dataclasses import dataclass

__all__ = ["DEFAULT_SECONDS", "DEFAULT_TIMEOUT", "CallSettings"]

DEFAULT_TIMEOUT = "1h"
"""Default of `--function-timeout`: the maximum duration of one call."""
DEFAULT_SECONDS = 3600.0
"""`DEFAULT_TIMEOUT` in seconds."""


@dataclass(frozen=True, slots=True)
class CallSettings:
    """Settings for calls of functions."""

    seconds: float = DEFAULT_SECONDS
    """Timeout of one call in seconds."""
    allows: frozenset[str] = frozenset()
    """Permissions for functions; `command` allows local processes."""
    in_threads: bool = False
    """True if calls are made in threads of this process: only for tests that define functions,
    which no other process can load.
    """
