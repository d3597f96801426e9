"""Settings of function calls, which commands pass to the capability."""

from __future__ import annotations

from dataclasses import dataclass

__all__ = ["CallSettings"]


@dataclass(frozen=True, slots=True)
class CallSettings:
    """Settings for calls of functions."""

    seconds: float = 3600.0
    allows: frozenset[str] = frozenset()
    """`command`, if local processes may be run."""
    in_threads: bool = False
    """True if calls are made in threads of this process: only for tests that define functions,
    which no other process can load.
    """
