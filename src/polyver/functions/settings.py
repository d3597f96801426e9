"""Settings of function calls, which commands pass to the capability."""

from __future__ import annotations

from dataclasses import dataclass

__all__ = ["DEFAULT_SECONDS", "DEFAULT_TIMEOUT", "CallSettings"]

DEFAULT_TIMEOUT = "1h"
"""How long one call may take, unless `--function-timeout` says otherwise."""
DEFAULT_SECONDS = 3600.0
"""The same in seconds."""


@dataclass(frozen=True, slots=True)
class CallSettings:
    """Settings for calls of functions."""

    seconds: float = DEFAULT_SECONDS
    """How long one call may take."""
    allows: frozenset[str] = frozenset()
    """`command`, if local processes may be run."""
    in_threads: bool = False
    """True if calls are made in threads of this process: only for tests that define functions,
    which no other process can load.
    """
