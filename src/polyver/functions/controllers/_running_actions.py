"""State in memory of ActionSets that run: their calls, and what their templates may see."""

from __future__ import annotations

import asyncio
from collections import defaultdict
from dataclasses import dataclass, field
from typing import Any

from polyver.client import Key
from polyver.functions.actions import Objects
from polyver.kube.objects.masking import Masks

__all__ = ["RunningActionSet", "RunningCall"]


@dataclass(slots=True)
class RunningCall:
    """A call that is under way here."""

    place: int
    task: asyncio.Task[None]
    reason: str = ""
    """Why it was stopped."""

    def stop(self, reason: str) -> None:
        """Stop it, once: a second time would interrupt its end."""
        if not self.reason:
            self.reason = reason
            self.task.cancel()


@dataclass(slots=True)
class RunningActionSet:
    """What is kept of a running ActionSet, by the number of each action."""

    key: Key
    objects: dict[int, Objects] = field(default_factory=dict)
    alive: dict[int, RunningCall] = field(default_factory=dict)
    masks: defaultdict[int, Masks] = field(default_factory=lambda: defaultdict(Masks))
    """Values that must not be shown."""
    outputs: defaultdict[int, dict[int, dict[str, Any]]] = field(
        default_factory=lambda: defaultdict(dict)
    )
    """Sensitive outputs, by the place of their phase."""
