"""Limits for concurrent calls of each function revision, so that a slow one blocks few workers.

Each function revision has a concurrency limit (`lane` in the code). If the limit is reached, a
composite resource first waits for a short time, because calls may end soon. If the limit is still
reached, the key of the composite resource is recorded as a waiting key (`parked` in the code), and
the worker continues with other keys. The waiting key is woken when a call is possible. So no worker
waits for a revision that does not answer.

Some inputs make a function exit or hang. When a function exits, all calls in flight are lost, and
it is unknown which of their inputs was the cause. So each key that lost a call becomes a *suspect*.
Its next call is made alone, with no other call of the same revision in flight:

- If the call is answered, the key is no longer a suspect.
- If the call is lost, and the function has answered other keys since this key lost its previous
  call, then the input of this key is the cause. The key is *quarantined*: its calls are tried again
  only after a back-off, which starts at one minute, and again alone. The back-off applies even if
  other keys get answers meanwhile.
- If the call is lost, and no other key has got an answer since the previous lost call, then the
  function may fail for all keys. The key remains a suspect.

A call may also exceed its deadline while other keys get answers. The next call of its key is then
not made alone. If three such calls of a key are lost in a row, the key is quarantined. Fewer lost
calls may be caused by an overloaded function.

The quarantine ends when the function answers the key, or when the input of the key changes.
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
    """A call that a function may have received, but did not answer."""

    input: str
    """Digest of all inputs of the call."""
    hung: bool
    """True if the call exceeded its deadline; False if the connection broke, as it does when a
    function exits.
    """


@dataclass(frozen=True, slots=True)
class _Suspect:
    """A key whose last call was lost."""

    input: str
    since: float
    """Time at which the last call was lost."""
    times: int
    """Number of calls in a row that were lost."""
    strikes: int
    """Number of those lost calls of which the input of this key was the cause."""
    due: float
    """Time of the next try if the key is quarantined; otherwise 0."""
    alone: bool
    """True if the next call of this key must be the only call of the revision at that time."""


@dataclass(slots=True)
class _ConcurrencyLimit(Generic[K]):
    inside: dict[K, float] = field(default_factory=dict)
    """Keys that are calling the revision now, with the time at which each of them began."""
    parked: OrderedDict[K, None] = field(default_factory=OrderedDict)
    """Keys that wait because the limit was reached, in the order of arrival."""
    called: set[K] = field(default_factory=set)
    """Keys that were woken, but have not started their call yet."""
    failing: bool = False
    """True if the last call that ended got no answer. In this state, only one key at a time may
    call the revision.
    """
    left: asyncio.Event = field(default_factory=asyncio.Event)
    suspects: dict[K, _Suspect] = field(default_factory=dict)
    answered: float = -1.0
    """Time of the last answer of the revision to any key; -1 before the first answer."""

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
    """The concurrency limits of all function revisions."""

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
        """Report whether the limits of all revisions allow a call of this key.

        If a limit is reached, wait for a short time. If the result is True, the call counts for the
        limits until `leave`. If it is False, the key waits, and is woken when a call is possible.
        """
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
        """Record that a key has ended its calls, and wake waiting keys.

        `answered` are the function revisions that answered. `silent` is the revision that did not
        answer. If the function may have received that call, `lost` describes the call.
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
        """Report whether a key has lost two or more calls of a revision in a row.

        The calls for other keys are then made first.
        """
        lane = self._lanes.get(revision)
        return lane is not None and key in lane.suspects and lane.suspects[key].times > 1

    def quarantined(
        self, key: K, revisions: Iterable[str], input_of: Callable[[], str]
    ) -> tuple[str, float]:
        """Return the revision that must not be called for a key now, and for how many seconds.

        Return "" and 0 if all revisions may be called.
        """
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
        """Remove the data about a key whose composite resource no longer exists."""
        for name, lane in [*self._lanes.items()]:
            if lane.suspects.pop(key, None) is not None:
                self._call_back(name, lane)

    def drop(self, revision: str) -> None:
        """Remove the data about a function revision that no longer exists."""
        lane = self._lanes.get(revision)
        if lane is not None:
            lane.suspects.clear()
            lane.failing = False
            self._call_back(revision, lane)

    def settle(self, key: K) -> None:
        """Record that the reconcile of a key has ended.

        If the key was woken but made no call, wake other keys.
        """
        for name in self._called.pop(key, ()):
            lane = self._lanes.get(name)
            if lane is not None:
                lane.called.discard(key)
                self._call_back(name, lane)

    def open(self, revision: str) -> None:
        """Wake waiting keys after a revision got a new endpoint.

        The revision probably answers now.
        """
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
    """Wait until a call of any key ends. Return False if no call ends within `seconds`."""
    try:
        async with asyncio.timeout(seconds):
            return await lane.left.wait()
    except TimeoutError:
        return False
