"""The state of running ActionSets and their calls, and the slots that limit concurrent calls.

A call of a function needs a slot. Namespaces share the slots by two rules:

- A namespace gets another slot only if it has fewer slots than are free. So the first
  busy namespace gets at most half of the slots, the second one half of the rest, and so
  on.
- A free slot goes to the namespace that has the fewest slots. Within this namespace, it goes to
  the action that has waited longest.
"""

from __future__ import annotations

import asyncio
from collections import Counter, defaultdict
from collections.abc import Callable, Hashable
from dataclasses import dataclass, field
from typing import Any, Generic, TypeVar

from polyver.client import Key
from polyver.functions.actions import Objects
from polyver.kube.objects.masking import Masks

__all__ = ["RunningActionSet", "RunningCall", "Slots"]

K = TypeVar("K", bound=Hashable)


@dataclass(slots=True)
class RunningCall:
    """A running call of a phase's function. A task of this process waits for its end."""

    place: int
    task: asyncio.Task[None]
    reason: str = ""
    """The reason why polyver stopped the call; empty if polyver has not stopped it."""

    def stop(self, reason: str) -> None:
        """Cancel the call. Do nothing if it was cancelled before.

        A second cancellation would interrupt the cleanup of the call.
        """
        if not self.reason:
            self.reason = reason
            self.task.cancel()


@dataclass(slots=True)
class RunningActionSet:
    """State of a running ActionSet. The keys of all mappings are the indexes of its actions."""

    key: Key
    objects: dict[int, Objects] = field(default_factory=dict)
    alive: dict[int, RunningCall] = field(default_factory=dict)
    masks: defaultdict[int, Masks] = field(default_factory=lambda: defaultdict(Masks))
    """Values of Secrets and sensitive outputs. polyver masks them in logs and statuses."""
    outputs: defaultdict[int, dict[int, dict[str, Any]]] = field(
        default_factory=lambda: defaultdict(dict)
    )
    """Sensitive outputs, by the index of the action and then by the index of the phase."""


class Slots(Generic[K]):
    """A limited number of slots: the namespaces that use them, and the queue of waiting owners.

    >>> slots = Slots[str](2)
    >>> [slots.take(name, namespace) for name, namespace in (("a", "x"), ("b", "x"), ("c", "y"))]
    [True, False, True]
    >>> slots.place("b")
    1
    """

    def __init__(self, limit: int) -> None:
        self.limit = limit
        self._held: Counter[str] = Counter()
        self._waiting: dict[K, str] = {}
        """The namespace of each waiting owner, in the order of arrival."""

    @property
    def free(self) -> int:
        return self.limit - self._held.total()

    def held_by(self, namespace: str) -> int:
        return self._held[namespace]

    @property
    def waiting(self) -> int:
        return len(self._waiting)

    def take(self, owner: K, namespace: str) -> bool:
        """Take a slot, and return True, if it is the owner's turn.

        Otherwise, put the owner into the queue and return False.
        """
        self._waiting.setdefault(owner, namespace)
        if owner not in self.due():
            return False
        del self._waiting[owner]
        self._held[namespace] += 1
        return True

    def give_back(self, namespace: str) -> None:
        """Return a slot of a namespace after a call."""
        self._held[namespace] -= 1
        if not self._held[namespace]:
            del self._held[namespace]

    def leave(self, owner: K) -> None:
        """Remove an owner from the queue."""
        self._waiting.pop(owner, None)

    def leave_all(self, chosen: Callable[[K], bool]) -> None:
        """Remove all owners from the queue for which `chosen` returns True."""
        for owner in [each for each in self._waiting if chosen(each)]:
            del self._waiting[owner]

    def place(self, owner: K) -> int:
        """Return the position of an owner in the queue: 1 is the first.

        Return 0 if the owner is not in the queue.
        """
        return next((n for n, each in enumerate(self._queue(), 1) if each == owner), 0)

    def due(self) -> list[K]:
        """Return the owners that may take a slot now."""
        if not self._waiting or not self.free:
            return []
        held, free, found = Counter(self._held), self.free, []
        for owner in self._queue():
            namespace = self._waiting[owner]
            if held[namespace] < free:
                held[namespace] += 1
                free -= 1
                found.append(owner)
        return found

    def _queue(self) -> list[K]:
        """Return all waiting owners, in the order in which they get slots."""
        turns, ranked = Counter(self._held), []
        for number, (owner, namespace) in enumerate(self._waiting.items()):
            ranked.append((turns[namespace], number, owner))
            turns[namespace] += 1
        return [owner for _, _, owner in sorted(ranked, key=lambda each: each[:2])]
