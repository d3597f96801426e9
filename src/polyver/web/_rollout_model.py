"""The rollouts and their policies in the model of the page.

A rollout brings a new release of a lineage to its dependents in steps.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import NamedTuple, TypeVar

from polyver.core.rollout import CohortCounts

__all__ = [
    "PageCheck",
    "PageCommand",
    "PageEvent",
    "PageExample",
    "PageGroup",
    "PagePreflight",
    "PageRollout",
    "PageRolloutPolicy",
    "PageRolloutStep",
    "PageRollouts",
    "PublisherKey",
]

V = TypeVar("V")


class PublisherKey(NamedTuple):
    """The key of the object that publishes the releases of a lineage, as rollouts name it."""

    group: str
    kind: str
    namespace: str
    name: str


class PageRolloutStep(NamedTuple):
    """One step of a rollout."""

    adds: str
    pause: str
    state: str


class PageCheck(NamedTuple):
    """One check of a rollout, and its latest result."""

    name: str
    rule: str
    result: str
    message: str


class PageExample(NamedTuple):
    """An example of a change: a follower, one of its objects, and the lines that change in it."""

    dependent: str
    object: str
    diff: str


class PageGroup(NamedTuple):
    """A group of followers with the same change, or with the same failure.

    `names` has the names of some of the followers.
    """

    text: str
    dependents: int
    names: tuple[str, ...]
    example: PageExample | None = None


class PagePreflight(NamedTuple):
    """The result of a preflight: the effect that the release would have on its followers."""

    unchanged: int
    changed: int
    loses: int
    fails: int
    groups: tuple[PageGroup, ...]
    failures: tuple[PageGroup, ...]


class PageEvent(NamedTuple):
    """A change of the state of a rollout."""

    time: str
    state: str
    step: int
    message: str


class PageCommand(NamedTuple):
    """A command that a user can type now, and its effect."""

    command: str
    effect: str


@dataclass(frozen=True, slots=True)
class PageRollout:
    """A rollout as the page shows it."""

    name: str
    """The namespace and the name, such as `vela-system/webservice-1.2.5`."""
    publisher: PublisherKey
    """The object that publishes the releases."""
    to: str
    """The name of the release to which the followers move."""
    state: str
    is_active: bool
    reason: str = ""
    step: int = 0
    """The step in progress, from 1; 0 before the first step."""
    steps: tuple[PageRolloutStep, ...] = ()
    counts: CohortCounts = field(default_factory=CohortCounts)
    facts: Mapping[str, str] = field(default_factory=dict)
    checks: tuple[PageCheck, ...] = ()
    preflight: PagePreflight | None = None
    history: tuple[PageEvent, ...] = ()
    windows: tuple[str, ...] = ()
    commands: tuple[PageCommand, ...] = ()
    created: str = ""


@dataclass(frozen=True, slots=True)
class PageRolloutPolicy:
    """A policy: the steps in which new releases of some lineages reach their users."""

    name: str
    """The namespace and the name, such as `vela-system/careful`."""
    ready: str
    """The status of the condition `Ready`; empty if it is not set yet."""
    message: str
    targets: tuple[str, ...]
    lineages: int
    steps: str


class PageRollouts:
    """All rollouts and their policies, by their namespace and name."""

    def __init__(self, note: Callable[[], None]) -> None:
        self.is_enabled = False
        """True if a source reports rollouts."""
        self.rollouts: dict[str, PageRollout] = {}
        self.policies: dict[str, PageRolloutPolicy] = {}
        self.freeze: str | None = None
        """The reason why all rollouts are frozen, which may be empty; None if they are not."""
        self._note = note

    def put(self, name: str, rollout: PageRollout | None) -> None:
        """Add, replace or remove a rollout."""
        self._put(self.rollouts, name, rollout)

    def put_policy(self, name: str, policy: PageRolloutPolicy | None) -> None:
        """Add, replace or remove a policy."""
        self._put(self.policies, name, policy)

    def _put(self, known: dict[str, V], name: str, value: V | None) -> None:
        if value is None:
            known.pop(name, None)
        else:
            known[name] = value
        self._note()

    def set_freeze(self, reason: str | None) -> None:
        """Set the reason why all rollouts are frozen; None if they are not."""
        self.freeze = reason
        self._note()

    def of(self, publisher: PublisherKey) -> Iterator[PageRollout]:
        """Yield the rollouts of one lineage."""
        return (each for each in self.rollouts.values() if each.publisher == publisher)
