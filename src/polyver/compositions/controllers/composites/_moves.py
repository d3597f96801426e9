"""Releases that composite resources failed to move to, so that they are not tried in vain.

A failed move is forgotten when the input of the composite resource changes, when an annotation
allows the release to delete objects, and after some time, because functions may read objects that
are not watched.
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
    """Failed moves by composite resource and release."""

    def __init__(self, clock: Clock, *, seconds: float) -> None:
        self._clock = clock
        self._seconds = seconds
        self._known: dict[CompositeKey, dict[Release, _Known]] = {}

    def get(self, key: CompositeKey, release: Release, given: str) -> FailedCompositeMove | None:
        """Return the failure of a move to a release with this input, if it is still known."""
        known = self._known.get(key, {}).get(release)
        if known is None or known.input != given or known.until < self._clock.time():
            return None
        return known.failed

    def note(
        self, key: CompositeKey, release: Release, given: str, failed: FailedCompositeMove
    ) -> None:
        """Record a failed move, unless the failure is transient."""
        if not failed.passes:
            until = self._clock.time() + self._seconds
            self._known.setdefault(key, {})[release] = _Known(given, until, failed)

    def forget(self, key: CompositeKey) -> None:
        self._known.pop(key, None)

    def allowed(self, revision: str) -> Iterable[CompositeKey]:
        """Forget failed moves to a revision that may now delete objects; return their keys."""
        found = [key for key, some in self._known.items() if any(revision in each for each in some)]
        for key in found:
            del self._known[key]
        return found
