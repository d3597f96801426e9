"""In-memory state of running ActionSets: their calls, and data for their templates."""

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
    """A call that runs in this process."""

    place: int
    task: asyncio.Task[None]
    reason: str = ""
    """Reason why it was stopped."""

    def stop(self, reason: str) -> None:
        """Stop it, but only once: a second cancellation would interrupt its cleanup."""
        if not self.reason:
            self.reason = reason
            self.task.cancel()


@dataclass(slots=True)
class RunningActionSet:
    """State of a running ActionSet, by the index of each action."""

    key: Key
    objects: dict[int, Objects] = field(default_factory=dict)
    alive: dict[int, RunningCall] = field(default_factory=dict)
    masks: defaultdict[int, Masks] = field(default_factory=lambda: defaultdict(Masks))
    """Values that must not be shown."""
    outputs: defaultdict[int, dict[int, dict[str, Any]]] = field(
        default_factory=lambda: defaultdict(dict)
    )
    """Sensitive outputs, by the index of their phase."""
