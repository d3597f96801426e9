"""Concurrency limits for calls of each revision, so that a slow one occupies few workers.

If a revision's limit (a `lane` in the code) is reached, a composite resource waits for a moment
while calls complete; otherwise it is parked, and its key is woken when there is room. So no worker
waits for a revision that does not answer.

Some inputs make a function exit or hang. When a function exits, all calls in flight are lost, and
the input that caused it is unknown. So each key that lost a call is a suspect, and its next call is
made alone, with no other call of the revision in flight:

- It is answered: the suspicion was wrong.
- It is lost, and the function has answered others since it lost the call before: the input is the
  cause. The key is quarantined: it is tried again alone, after a back-off of its own that starts at
  a minute, even if other keys get answers meanwhile.
- It is lost, and no key got an answer since: the function may fail for all keys. The key remains a
  suspect.

A call that exceeds its deadline while others are answered need not be made alone. Three of these in
a row lead to a quarantine: one or two may be caused by an overloaded function.

The quarantine ends with an answer, or when the input changes.
"""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from collections.abc import Callable, Container, Hashable, Iterable
from dataclasses import dataclass, field, replace
from typing import Final, Generic, TypeVar

from polyver.client import Backoff, Clock, chance

__all__ = ["ConcurrencyLimits", "LostCall"]

K = TypeVar("K", bound=Hashable)
_MOMENT: Final = 0.25
_QUARANTINE: Final = Backoff(first=60.0, most=1800.0)
_HUNG_AT_LEAST: Final = 3


@dataclass(frozen=True, slots=True)
class LostCall:
    """A call that a function may have received, and did not answer."""

    input: str
    """Digest of all inputs of the call."""
    hung: bool
    """True if it exceeded its deadline; else the connection broke, as when a function exits."""


@dataclass(frozen=True, slots=True)
class _Suspect:
    """A key whose last call was lost."""

    input: str
    since: float
    """Time at which the last call was lost."""
    times: int
    """Number of lost calls in a row."""
    strikes: int
    """Number of lost calls in a row that the key itself caused."""
    due: float
    """Time of the next try, if the key is quarantined."""
    alone: bool
    """True if no other key may call the revision at the same time."""


@dataclass(slots=True)
class _ConcurrencyLimit(Generic[K]):
    inside: dict[K, float] = field(default_factory=dict)
    """Keys that are calling the revision, and the time at which each of them began."""
    parked: OrderedDict[K, None] = field(default_factory=OrderedDict)
    """Keys that found no room and wait to be woken."""
    called: set[K] = field(default_factory=set)
    """Keys that were woken, and have not entered yet."""
    failing: bool = False
    """True if the last call that ended got no answer; then only one key at a time may call."""
    left: asyncio.Event = field(default_factory=asyncio.Event)
    suspects: dict[K, _Suspect] = field(default_factory=dict)
    answered: float = -1.0
    """Time of the last answer."""

    @property
    def is_needless(self) -> bool:
        waits = self.inside or self.parked or self.called
        return not (waits or self.failing or self.suspects)

    def must_be_alone(self, key: K) -> bool:
        return key in self.suspects and self.suspects[key].alone

    def has_room(self, key: K, width: int) -> bool:
        if self.must_be_alone(key):
            return not self.inside
        if any(each.alone and self._is_near(other) for other, each in self.suspects.items()):
            return False
        return len(self.inside) < (1 if self.failing else width)

    def _is_near(self, key: K) -> bool:
        return key in self.inside or key in self.parked or key in self.called


class ConcurrencyLimits(Generic[K]):
    """The concurrency limits of all revisions."""

    def __init__(
        self,
        wake: Callable[[K], None],
        clock: Clock,
        *,
        width: int,
        quarantine: Backoff = _QUARANTINE,
    ) -> None:
        self._wake = wake
        self._clock = clock
        self._width = width
        self._quarantine = quarantine
        self._lanes: dict[str, _ConcurrencyLimit[K]] = {}
        self._called: dict[K, set[str]] = {}

    async def enter(self, key: K, revisions: Iterable[str]) -> bool:
        """Return True if all limits have room, now or soon; otherwise the key is woken later."""
        names = sorted(set(revisions))
        until = self._clock.time() + _MOMENT
        while full := next((name for name in names if not self._has_room(name, key)), ""):
            lane = self._lanes[full]
            left = until - self._clock.time()
            gets_on = left > 0 and not self._is_slow(lane) and await _left(lane, left)
            if not gets_on and not self._has_room(full, key):
                self._lanes[full].parked[key] = None
                return False
        for name in names:
            lane = self._lanes.setdefault(name, _ConcurrencyLimit())
            lane.parked.pop(key, None)
            lane.called.discard(key)
            lane.inside[key] = self._clock.time()
        return True

    def leave(
        self,
        key: K,
        revisions: Iterable[str],
        *,
        answered: Container[str] = (),
        silent: str = "",
        lost: LostCall | None = None,
    ) -> None:
        """End the calls of a key; `answered` are the revisions that answered, `silent` did not.

        `lost` describes the unanswered call, if the function may have received it.
        """
        for name in set(revisions):
            lane = self._lanes.get(name)
            if lane is None:
                continue
            if name == silent and lost is not None:
                lane.suspects[key] = self._suspected(lane, key, lost)
            elif name in answered and name != silent:
                lane.answered = self._clock.time()
                lane.suspects.pop(key, None)
            lane.inside.pop(key, None)
            if name == silent or name in answered:
                lane.failing = name == silent
            lane.left.set()
            lane.left = asyncio.Event()
            self._call_back(name, lane)

    def _suspected(self, lane: _ConcurrencyLimit[K], key: K, lost: LostCall) -> _Suspect:
        now, entered = self._clock.time(), lane.inside.get(key, 0.0)
        before = lane.suspects.get(key)
        if before is not None and before.input != lost.input:
            before = None
        others_went_on = lost.hung and lane.answered > entered
        was_alone = before is not None and before.alone and lane.answered > before.since
        times = before.times + 1 if before is not None else 1
        guilty = was_alone or (others_went_on and times >= _HUNG_AT_LEAST)
        strikes = (before.strikes if before is not None else 0) + guilty
        due = now + self._quarantine.delay(strikes, spread=chance()) if strikes else 0.0
        return _Suspect(lost.input, now, times, strikes, due, not others_went_on)

    # Suspects.

    def is_suspect(self, key: K, revision: str) -> bool:
        lane = self._lanes.get(revision)
        return lane is not None and key in lane.suspects

    def failed_again(self, key: K, revision: str) -> bool:
        """Report whether a suspect has lost two calls in a row, so that other keys go first."""
        lane = self._lanes.get(revision)
        return lane is not None and key in lane.suspects and lane.suspects[key].times > 1

    def quarantined(
        self, key: K, revisions: Iterable[str], input_of: Callable[[], str]
    ) -> tuple[str, float]:
        """Return the revision that must not be called for a key now, and for how many seconds."""
        for name in revisions:
            lane = self._lanes.get(name)
            suspect = lane.suspects.get(key) if lane is not None else None
            if lane is None or suspect is None or not suspect.strikes:
                continue
            if suspect.input != input_of():
                lane.suspects[key] = replace(suspect, strikes=0, due=0.0)
            elif (left := suspect.due - self._clock.time()) > 0:
                return name, left
        return "", 0.0

    def forget(self, key: K) -> None:
        """Remove a key that no longer exists."""
        for name, lane in [*self._lanes.items()]:
            if lane.suspects.pop(key, None) is not None:
                self._call_back(name, lane)

    def drop(self, revision: str) -> None:
        """Remove a revision that no longer exists."""
        lane = self._lanes.get(revision)
        if lane is not None:
            lane.suspects.clear()
            lane.failing = False
            self._call_back(revision, lane)

    def settle(self, key: K) -> None:
        """End the work on a key; if it was woken and made no call, wake other keys instead."""
        for name in self._called.pop(key, ()):
            lane = self._lanes.get(name)
            if lane is not None:
                lane.called.discard(key)
                self._call_back(name, lane)

    def open(self, revision: str) -> None:
        """Wake parked keys, because a revision has a new endpoint and probably answers now."""
        lane = self._lanes.get(revision)
        if lane is not None:
            lane.failing = False
            self._call_back(revision, lane)

    def _has_room(self, name: str, key: K) -> bool:
        lane = self._lanes.get(name)
        return lane is None or lane.has_room(key, self._width)

    def _is_slow(self, lane: _ConcurrencyLimit[K]) -> bool:
        oldest = min(lane.inside.values(), default=self._clock.time())
        return lane.failing or self._clock.time() - oldest > _MOMENT

    def _call_back(self, name: str, lane: _ConcurrencyLimit[K]) -> None:
        room = (1 if lane.failing else self._width) - len(lane.inside) - len(lane.called)
        while lane.parked:
            key = next(iter(lane.parked))
            alone = lane.must_be_alone(key)
            if room <= 0 or (alone and (lane.inside or lane.called)):
                break
            del lane.parked[key]
            lane.called.add(key)
            self._called.setdefault(key, set()).add(name)
            self._wake(key)
            room = 0 if alone else room - 1
        if lane.is_needless:
            del self._lanes[name]


async def _left(lane: _ConcurrencyLimit[K], seconds: float) -> bool:
    """Report whether the calls of any key end within this time."""
    try:
        async with asyncio.timeout(seconds):
            return await lane.left.wait()
    except TimeoutError:
        return False
