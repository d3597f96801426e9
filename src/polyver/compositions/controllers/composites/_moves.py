"""Releases that composite resources could not take, so that they are not tried again in vain.

A failed move is forgotten when the input of the composite resource changes, when somebody allows a
release to delete objects, and after some time, because functions may look at what nobody watches.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from polyver.client import Clock
from polyver.compositions.controllers.composites._dependents import CompositeKey
from polyver.compositions.pipeline import FailedCompositeMove

__all__ = ["FailedMoves", "Release"]

Release = tuple[str, ...]
"""A CompositionRevision, and the FunctionRevision of each step."""


class _Known(NamedTuple):
    input: str
    until: float
    failed: FailedCompositeMove


class FailedMoves:
    """By composite resource and release."""

    def __init__(self, clock: Clock, *, seconds: float) -> None:
        self._clock = clock
        self._seconds = seconds
        self._known: dict[CompositeKey, dict[Release, _Known]] = {}

    def get(self, key: CompositeKey, release: Release, given: str) -> FailedCompositeMove | None:
        """Why a release could not be taken with this input, if that is still known."""
        known = self._known.get(key, {}).get(release)
        if known is None or known.input != given or known.until < self._clock.time():
            return None
        return known.failed

    def note(
        self, key: CompositeKey, release: Release, given: str, failed: FailedCompositeMove
    ) -> None:
        """Take note of a failed move; of what passes nothing is remembered."""
        if not failed.passes:
            until = self._clock.time() + self._seconds
            self._known.setdefault(key, {})[release] = _Known(given, until, failed)

    def forget(self, key: CompositeKey) -> None:
        self._known.pop(key, None)

    def allowed(self, revision: str) -> Iterable[CompositeKey]:
        """Somebody allows a revision to delete objects: those that may be tried again."""
        found = [key for key, some in self._known.items() if any(revision in each for each in some)]
        for key in found:
            del self._known[key]
        return found
