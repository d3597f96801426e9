"""The port between functions and whoever uses them: who selects what, and when that changes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol

from polyver.capabilities.revisions.packages import Use
from polyver.engine._controller import Watch

__all__ = ["Dependents", "NoDependents"]


class Dependents(Protocol):
    """Who uses functions."""

    @property
    def watches(self) -> Sequence[Watch[Any, str]]:
        """What changes it; the keys are names of functions."""
        ...

    async def uses(self, function: str) -> Sequence[Use]:
        """The steps that call a function and are not to lose it."""
        ...


class NoDependents:
    """Nobody, where there are no compositions."""

    @property
    def watches(self) -> Sequence[Watch[Any, str]]:
        return ()

    async def uses(self, function: str) -> Sequence[Use]:
        del function
        return ()
