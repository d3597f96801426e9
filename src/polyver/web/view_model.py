"""The model of the page: lineages, their dependents, and runs, of all capabilities.

The page sources of the capabilities write the model, and the HTML pages read it. The model keeps
dependents in a `polyver.core.Index`, in groups with the same selector and pin. So the cost of
showing a lineage grows with the number of groups, not with the number of dependents.
"""

from __future__ import annotations

import asyncio
from bisect import bisect_left, insort
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from polyver.core import (
    Answer,
    Dependent,
    Index,
    Lineage,
    NoMatch,
    Policy,
    Resolution,
    Selector,
    answers,
    resolve,
)
from polyver.web._rollout_model import PageRollouts, PublisherKey

__all__ = [
    "DependentKey",
    "LineageKey",
    "LineageRecord",
    "LineageRequest",
    "PageLineage",
    "PageModel",
    "PageRun",
    "PageRunStep",
    "PageTable",
    "ReleaseDetails",
    "UnresolvedRequest",
]


class LineageKey(NamedTuple):
    """The key of a lineage: its capability, and its name within the capability."""

    capability: str
    path: str
    """The unique name of the lineage in its capability, such as `stable.example.com/CronTab`."""


class DependentKey(NamedTuple):
    """The key of one reference: the name of the dependent, and the field with the reference."""

    name: str
    at: str


@dataclass(frozen=True, slots=True)
class PageTable:
    """A table about a release, such as its arguments."""

    title: str
    columns: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]


@dataclass(frozen=True, slots=True)
class ReleaseDetails:
    """Details that the page shows for a release, and that only some releases have."""

    text: str = ""
    marks: tuple[str, ...] = ()
    """Words that the page shows beside the stage of the release, such as `storage`."""
    table: PageTable | None = None


NO_DETAILS = ReleaseDetails()


@dataclass(frozen=True, slots=True)
class PageLineage:
    """A lineage as the page shows it."""

    where: LineageKey
    lineage: Lineage
    policy: Policy
    """The policy by which the page computes the default release.

    A dependent without a selector and without a pin gets this release.
    """
    noun: str
    """What the lineage is, in one word: `function`, `ComponentDefinition`."""
    scope: str = ""
    """The namespace of the lineage; for a kind, its API group."""
    text: str = ""
    problem: str = ""
    """The reason why the lineage is not in the desired state; empty if it is."""
    facts: Mapping[str, str] = field(default_factory=dict)
    details: Mapping[str, ReleaseDetails] = field(default_factory=dict)
    """Details of some releases, by the names of the releases."""
    is_counted: bool = True
    """False if the page does not know the dependents of the lineage, so it cannot count them."""
    publisher: PublisherKey | None = None
    """The object that publishes the releases, as rollouts name it; None if rollouts cannot name the
    lineage.
    """
    anyone: Dependent | None = None
    """The dependent for which the page computes the default release. None for a dependent that uses
    no release yet.
    """


@dataclass(frozen=True, slots=True)
class LineageRequest:
    """One reference of a dependent to a lineage."""

    dependent: Dependent
    where: LineageKey
    requested: str
    """The selector as the user wrote it; empty if the reference has none."""
    selector: Selector
    policy: Policy
    since: str = ""
    """The time at which the reference was pinned to its release; empty if unknown."""

    @property
    def place(self) -> DependentKey:
        return DependentKey(self.dependent.name, self.dependent.at)


@dataclass(frozen=True, slots=True)
class UnresolvedRequest:
    """A reference that polyver cannot read, or whose lineage does not exist; with the reason."""

    dependent: Dependent
    requested: str
    fact: str
    hint: str = ""

    @property
    def place(self) -> DependentKey:
        return DependentKey(self.dependent.name, self.dependent.at)


@dataclass(frozen=True, slots=True)
class PageRunStep:
    """One step of a run, with the version of the function that was recorded for it."""

    part: str
    name: str
    where: LineageKey | None
    release: str
    state: str
    reason: str = ""


@dataclass(frozen=True, slots=True)
class PageRun:
    """A run, with its steps."""

    name: str
    state: str
    steps: tuple[PageRunStep, ...] = ()
    warnings: tuple[str, ...] = ()
    problem: str = ""
    created: str = ""


class LineageRecord:
    """A lineage, and all references of dependents to it.

    `shown` is None if there are references, but the lineage itself does not exist.
    """

    def __init__(self) -> None:
        self.shown: PageLineage | None = None
        self.index = Index()
        self.asked: dict[DependentKey, LineageRequest] = {}
        self.order: list[DependentKey] = []
        """The keys of all references, sorted by the name of the dependent and by field."""
        self._answers: tuple[Answer, ...] | None = None

    @property
    def answers(self) -> tuple[Answer, ...]:
        """The releases that the references get, in groups; computed again after each change."""
        if self._answers is None:
            lineage = self.shown.lineage if self.shown else Lineage("")
            self._answers = tuple(answers(self.index, lineage))
        return self._answers

    def put(self, asked: LineageRequest) -> None:
        self.remove(asked.place)
        self.asked[asked.place] = asked
        insort(self.order, asked.place)
        self._note(asked)

    def _note(self, asked: LineageRequest) -> None:
        if self.shown is not None:
            name = self.shown.lineage.name
            self.index.put(asked.dependent, name, asked.selector, asked.policy)
        self._answers = None

    def remove(self, place: DependentKey) -> None:
        asked = self.asked.pop(place, None)
        if asked is not None:
            del self.order[bisect_left(self.order, place)]
            self.index.remove(asked.dependent)
            self._answers = None

    def show(self, shown: PageLineage | None) -> None:
        before = self.shown
        self.shown, self._answers = shown, None
        if (before and before.lineage.name) != (shown and shown.lineage.name):
            self.index = Index()
            for asked in self.asked.values():
                self._note(asked)

    def found(self, asked: LineageRequest) -> Resolution | NoMatch:
        """Return the release that a reference gets, or the error if it is unresolved."""
        assert self.shown is not None
        try:
            return resolve(self.shown.lineage, asked.selector, asked.policy, asked.dependent)
        except NoMatch as error:
            return error


class PageModel:
    """All data of the page: lineages, references of dependents, runs and rollouts."""

    def __init__(self) -> None:
        self.rollouts = PageRollouts(self._note)
        self.sections: dict[str, str] = {}
        """The description of each capability, in the order of their sections on the page."""
        self.runs: dict[str, PageRun] = {}
        self.unanswered: dict[DependentKey, UnresolvedRequest] = {}
        self.revision = 0
        """A number that increases with every change of the model."""
        self._known: dict[LineageKey, LineageRecord] = {}
        self._published: dict[PublisherKey, LineageKey] = {}
        self._owned: dict[tuple[str, str], tuple[LineageRequest | UnresolvedRequest, ...]] = {}
        self._names: dict[str, set[str]] = {}
        """The capabilities whose lineages a dependent references, by name of the dependent."""
        self._changed = asyncio.Event()

    # Reading.

    def lineages(self) -> Iterator[LineageRecord]:
        """Yield all lineages, sorted by capability and name."""
        for _, known in sorted(self._known.items()):
            if known.shown is not None:
                yield known

    def get(self, where: LineageKey) -> LineageRecord | None:
        known = self._known.get(where)
        return known if known is not None and known.shown is not None else None

    def published_by(self, publisher: PublisherKey) -> LineageKey | None:
        """Return the key of the lineage whose releases an object publishes; None for no lineage."""
        return self._published.get(publisher)

    @property
    def dependents(self) -> Collection[str]:
        """The names of all dependents."""
        return self._names.keys()

    def places(self, name: str) -> list[LineageRequest | UnresolvedRequest]:
        """Return all references of a dependent, sorted by field."""
        owners = self._names.get(name, ())
        found = [each for owner in owners for each in self._owned[owner, name]]
        return sorted(found, key=lambda each: each.place)

    async def changed(self, since: int) -> int:
        """Wait until the model has another revision than `since`; return the new revision."""
        while self.revision == since:
            await self._changed.wait()
        return self.revision

    # Writing.

    def show(self, shown: PageLineage) -> None:
        """Add or replace a lineage."""
        self._known.setdefault(shown.where, LineageRecord()).show(shown)
        if shown.publisher is not None:
            self._published[shown.publisher] = shown.where
        self._note()

    def hide(self, where: LineageKey) -> None:
        """Remove a lineage, because it no longer exists.

        References to the lineage stay in the model; the page shows them as unresolved.
        """
        known = self._known.get(where)
        if known is not None:
            if known.shown is not None and known.shown.publisher is not None:
                self._published.pop(known.shown.publisher, None)
            known.show(None)
            self._drop_if_empty(where)
            self._note()

    def ask(
        self, capability: str, name: str, places: Sequence[LineageRequest | UnresolvedRequest] = ()
    ) -> None:
        """Set all references of a dependent to lineages of one capability; replace earlier ones."""
        owner = (capability, name)
        if self._owned.get(owner, ()) == tuple(places):
            return
        self._forget(self._owned.pop(owner, ()))
        if places:
            self._owned[owner] = tuple(places)
            self._names.setdefault(name, set()).add(capability)
        else:
            self._names.get(name, set()).discard(capability)
            if not self._names.get(name):
                self._names.pop(name, None)
        for each in places:
            if isinstance(each, LineageRequest):
                self._known.setdefault(each.where, LineageRecord()).put(each)
            else:
                self.unanswered[each.place] = each
        self._note()

    def _forget(self, places: Iterable[LineageRequest | UnresolvedRequest]) -> None:
        for each in places:
            if isinstance(each, LineageRequest):
                self._known[each.where].remove(each.place)
                self._drop_if_empty(each.where)
            else:
                self.unanswered.pop(each.place, None)

    def _drop_if_empty(self, where: LineageKey) -> None:
        known = self._known[where]
        if known.shown is None and not known.asked:
            del self._known[where]

    def run(self, name: str, run: PageRun | None) -> None:
        """Add or replace a run; with None, remove it."""
        if self.runs.get(name) == run:
            return
        if run is None:
            del self.runs[name]
        else:
            self.runs[name] = run
        self._note()

    def _note(self) -> None:
        self.revision += 1
        self._changed.set()
        self._changed.clear()
