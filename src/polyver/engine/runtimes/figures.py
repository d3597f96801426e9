"""How revisions do, as numbers."""

from __future__ import annotations

from dataclasses import dataclass

__all__ = ["Figures"]


@dataclass(frozen=True, slots=True)
class Figures:
    """One revision since it is served."""

    revision: str
    up: bool
    """Whether it can be called now."""
    restarts: int
    """How often it was started again after it had ended by itself."""
