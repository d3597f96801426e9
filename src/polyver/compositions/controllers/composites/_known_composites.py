"""State that the controller of composite resources keeps in memory between reconciles.

- `CompositeIndex` finds the composite resources that a change of a revision moves.
- `AdoptionCounter` counts the composite resources that follow each revision.
- `OwnWriteFilter` skips watch events that report the controller's own writes.
- `FailedMoves` records failed moves, so that they are not repeated without need.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from typing import Any, Generic, NamedTuple, TypeVar

from msgspec import Struct

from polyver.client import Clock, Key
from polyver.compositions._revision_rules import COMPOSITIONS_MANUAL, REVISIONS
from polyver.compositions.controllers.composites._candidates import CompositionCache
from polyver.compositions.decisions import (
    Candidate,
    Composite,
    CompositeKind,
    composite_entry,
    moved_pipelines,
)
from polyver.compositions.pipeline import WOULD_DELETE, FailedCompositeMove
from polyver.core import (
    Dependent,
    Exact,
    Index,
    Lineage,
    Loss,
    Move,
    NoMatch,
    Pin,
    Policy,
    Selector,
    affected,
    resolve,
)
from polyver.core.adoption import Adoption, Follower, adopted
from polyver.core.plain import Object
from polyver.kube.objects.conditions import DesiredCondition

__all__ = [
    "AdoptionCounter",
    "Combination",
    "CompositeIndex",
    "CompositeKey",
    "CompositeState",
    "FailedMoves",
    "OwnWriteFilter",
    "adopted_fact",
    "others_in",
    "state_of",
]

K = TypeVar("K", bound=Hashable)


class CompositeKey(NamedTuple):
    """Identifies a composite resource, independent of its API version."""

    group: str
    kind: str
    namespace: str
    """Empty for a cluster-scoped resource."""
    name: str


class CompositeState(Struct, frozen=True, gc=False):
    """The indexed fields of a composite resource."""

    uid: str
    revision: int
    """The resourceVersion of the composite resource."""
    composition: str
    used: str
    """The CompositionRevision that the spec of the composite resource references."""
    dependent: Dependent
    selector: Selector
    policy: Policy
    parts: tuple[tuple[str, str], ...]
    """Kinds of the composed resources, each as group and kind."""
    calls: tuple[tuple[str, str], ...] = ()
    """Functions that composed the resource, each with the function revision that was called."""
    trouble: Follower = ""
    """Result of the last move. "held" if it would delete objects, "failing" if it failed for
    another reason, empty if it succeeded.
    """
    synced: str = ""
    """Status of the condition `Synced`: True, False, or empty if it is not set."""

    @property
    def followed(self) -> tuple[object, ...]:
        """The fields that decide which revisions the composite resource follows and uses."""
        return self.composition, self.used, self.calls, self.trouble, self.synced, self.selector


def state_of(composite: Composite, revision: int) -> CompositeState:
    """Return the indexed fields of a composite resource. `revision` is its resourceVersion."""
    lineage = Lineage(composite.composition)
    dependent, _, selector, policy = composite_entry(composite, lineage)
    kinds = {(each["apiVersion"].rpartition("/")[0], each["kind"]) for each in composite.resources}
    status = composite.obj.get("status") or {}
    calls = tuple((each["function"], each["revision"]) for each in status.get("pipeline") or ())
    said = {each["type"]: each for each in status.get("conditions") or ()}
    updated = said.get("Updated") or {}
    trouble: Follower = ""
    if updated.get("status") == "False":
        trouble = "held" if updated.get("reason") == WOULD_DELETE else "failing"
    return CompositeState(
        composite.obj["metadata"].get("uid", ""),
        revision,
        composite.composition,
        composite.revision,
        replace(dependent, pin=None),
        selector,
        policy,
        tuple(sorted(kinds)),
        calls,
        trouble,
        (said.get("Synced") or {}).get("status", ""),
    )


class CompositeIndex:
    """Index of the composite resources of all kinds."""

    def __init__(self, known: CompositionCache) -> None:
        self._known = known
        self._states: dict[tuple[str, str], dict[Key, CompositeState]] = {}
        self._uids: dict[str, CompositeKey] = {}

    def put(self, key: CompositeKey, state: CompositeState | None) -> None:
        """Record the state of a composite resource.

        If the resource was deleted, `state` is None.
        """
        there = self._states.setdefault(key[:2], {})
        before = there.get(Key(*key[2:]))
        if before is not None and state is not None and before.revision > state.revision:
            return  # the index already has a later state: this controller has written it
        there.pop(Key(*key[2:]), None)
        if before is not None and self._uids.get(before.uid) == key:
            del self._uids[before.uid]
        if state is not None:
            there[Key(*key[2:])] = state
            self._uids[state.uid] = key

    def get(self, key: CompositeKey) -> CompositeState | None:
        return self._states.get(key[:2], {}).get(Key(*key[2:]))

    def states(self) -> Iterator[CompositeState]:
        for there in self._states.values():
            yield from there.values()

    def owner(self, uid: str) -> CompositeKey | None:
        return self._uids.get(uid)

    def of_kind(self, group: str, kind: str) -> list[CompositeKey]:
        """Return the keys of all composite resources of a kind."""
        return [CompositeKey(group, kind, *key) for key in self._states.get((group, kind), ())]

    def choosing(self, *told: Candidate | None) -> Iterator[CompositeKey]:
        """Yield the composite resources that use, or may choose, one of the given Compositions."""
        for each in filter(None, told):
            named = each.api_version.rpartition("/")[0], each.kind
            defined = self._known.defined(*named)
            for key, state in self._states.get(named, {}).items():
                if _may_have(state, defined, each.name):
                    yield CompositeKey(*named, *key)

    def moved(
        self, targets: Iterable[tuple[str, str]], before: Lineage, after: Lineage
    ) -> Iterator[CompositeKey]:
        """Yield the composite resources that a change of the revisions of a Composition moves.

        `targets` are the kinds, as group and kind, that the Composition is for. `before` and
        `after` are the lineages before and after the change.
        """
        for named in targets:
            defined = self._known.defined(*named)
            there: dict[Key, CompositeState] = self._states.get(named, {})
            found = [(k, s) for k, s in there.items() if _may_have(s, defined, after.name)]
            keys = {state.dependent.name: key for key, state in found}
            index = Index.of(_entry(state, after) for _, state in found)
            moves = affected(index, before, after)
            changed: list[Move | Loss] = [*moves.moves, *moves.losses]
            for each in changed:
                yield CompositeKey(*named, *keys[each.dependent.name])

    def calling(self, before: Lineage, after: Lineage) -> Iterator[CompositeKey]:
        """Yield the composite resources whose steps may call another function revision now.

        `before` and `after` are the lineages of the function before and after the change.
        """
        moved = moved_pipelines(self._known.pipelines, before, after)
        if not moved:
            return
        for named, there in self._states.items():
            for key, state in there.items():
                if state.used in moved or (state.trouble and self._wanted(state) in moved):
                    yield CompositeKey(*named, *key)

    def _wanted(self, state: CompositeState) -> str:
        """Return the name of the CompositionRevision that a resource selects.

        Return "" if it selects none.
        """
        return _target(self._known.lineage(state.composition), state.selector, state.policy)


class AdoptionCounter:
    """Counts the composite resources that follow each revision of a Composition or a Function."""

    def __init__(self, following: CompositeIndex, known: CompositionCache) -> None:
        self._following = following
        self._known = known

    def composition(self, name: str) -> dict[str, Adoption]:
        """Return the adoption of each revision of a Composition, by the revision's name."""
        lineage = self._known.lineage(name)

        def followers() -> Iterator[tuple[str, Follower]]:
            for state in self._following.states():
                if state.composition == name and state.policy is not COMPOSITIONS_MANUAL:
                    target = _target(lineage, state.selector, state.policy)
                    if target:
                        yield target, _became(state, is_on_it=state.used == target)

        return adoption_of(followers())

    def function(self, name: str) -> dict[str, Adoption]:
        """Return the adoption of each revision of a Function, by the revision's name."""
        lineage = self._known.installed.lineage(name)
        pipelines = {each.name: each for each in self._known.pipelines}

        def followers() -> Iterator[tuple[str, Follower]]:
            for state in self._following.states():
                pipeline = pipelines.get(state.used)
                for use in pipeline.uses if pipeline is not None else ():
                    if use.function == name and not isinstance(use.selector, Exact):
                        target = _target(lineage, use.selector, REVISIONS)
                        if target:
                            yield target, _became(state, is_on_it=(name, target) in state.calls)

        return adoption_of(followers())


def _target(lineage: Lineage, selector: Selector, policy: Policy) -> str:
    try:
        return resolve(lineage, selector, policy, Dependent("")).release.name
    except NoMatch:
        return ""


def _became(state: CompositeState, *, is_on_it: bool) -> Follower:
    if is_on_it:
        return "updated" if state.synced == "True" else "failing" if state.synced else ""
    return state.trouble


def _may_have(state: CompositeState, defined: CompositeKind | None, composition: str) -> bool:
    enforced = defined is not None and defined.enforced == composition
    return enforced or state.composition in ("", composition)


def _entry(state: CompositeState, lineage: Lineage) -> tuple[Dependent, str, Selector, Policy]:
    known = lineage.get(state.used) if state.used else None
    pin = known.pin if known else Pin(state.used) if state.used else None
    return replace(state.dependent, pin=pin), lineage.name, state.selector, state.policy


def adoption_of(followers: Iterable[tuple[str, Follower]]) -> dict[str, Adoption]:
    """Count, for each revision, the followers in each state.

    Each element of `followers` is a revision, and the state of one follower of this revision.
    """
    found: dict[str, Adoption] = {}
    for release, state in followers:
        found[release] = found.get(release, Adoption()).with_follower(state)
    return found


def adopted_fact(adoption: Mapping[str, Adoption]) -> DesiredCondition:
    """Build the condition `Adopted` of a Composition or a Function from its adoption."""
    return DesiredCondition("Adopted", *adopted(dict(sorted(adoption.items())), noun="revisions"))


class OwnWriteFilter(Generic[K]):
    """Separates watch events about writes of this controller from events about other writes.

    It records the resourceVersion of each state that the controller has read or written.
    """

    def __init__(self, wake: Callable[[K], None]) -> None:
        self._wake = wake
        self._noted: dict[K, int] = {}
        self._told: dict[K, int] = {}
        """Latest resourceVersion that a watch has reported, for keys that are being reconciled."""

    def is_news(self, key: K, revision: int) -> bool:
        """Report whether a watch event with this resourceVersion needs a reconcile."""
        if key in self._told:
            # The event may report a write of the reconcile that is in progress. Decide when it has
            # ended.
            self._told[key] = max(self._told[key], revision)
            return False
        return revision > self._noted.get(key, -1)

    def note(self, key: K, revision: int) -> None:
        """Record the resourceVersion of a state that the controller has read or written."""
        self._noted[key] = max(self._noted.get(key, -1), revision)

    def forget(self, key: K) -> None:
        self._noted.pop(key, None)

    @contextmanager
    def working(self, key: K) -> Iterator[None]:
        """Delay watch events during a reconcile.

        Then wake the key if another client has written.
        """
        self._told[key] = -1
        try:
            yield
        finally:
            if self._told.pop(key) > self._noted.get(key, -1):
                self._wake(key)


def others_in(obj: Object) -> tuple[Any, ...]:
    """Return the fields of an object that only other clients write.

    Changes of these fields show writes of other clients.
    """
    metadata, spec = obj["metadata"], obj.get("spec") or {}
    ours = {"compositionRef", "compositionRevisionRef", "resourceRefs"}
    inside = spec.get("crossplane")
    said = {name: each for name, each in spec.items() if name not in ours | {"crossplane"}}
    if isinstance(inside, Mapping):
        said |= {f".{name}": each for name, each in inside.items() if name not in ours}
    about = (metadata.get(name) for name in ("uid", "labels", "annotations", "deletionTimestamp"))
    return (*about, said)


Combination = tuple[str, ...]
"""A CompositionRevision, and the FunctionRevision that each of its steps calls."""


class _Known(NamedTuple):
    input: str
    until: float
    failed: FailedCompositeMove


class FailedMoves:
    """Records failed moves of composite resources, by combination."""

    def __init__(self, clock: Clock, *, seconds: float) -> None:
        self._clock = clock
        self._seconds = seconds
        self._known: dict[CompositeKey, dict[Combination, _Known]] = {}

    def get(
        self, key: CompositeKey, combination: Combination, given: str
    ) -> FailedCompositeMove | None:
        """Return the recorded failure of a move to a combination with this input.

        Return None if no failure is recorded, or if the record has expired.
        """
        known = self._known.get(key, {}).get(combination)
        if known is None or known.input != given or known.until < self._clock.time():
            return None
        return known.failed

    def note(
        self, key: CompositeKey, combination: Combination, given: str, failed: FailedCompositeMove
    ) -> None:
        """Record a failed move, unless the failure is transient."""
        if not failed.passes:
            until = self._clock.time() + self._seconds
            self._known.setdefault(key, {})[combination] = _Known(given, until, failed)

    def forget(self, key: CompositeKey) -> None:
        self._known.pop(key, None)

    def allowed(self, revision: str) -> Iterable[CompositeKey]:
        """Remove the records of failed moves to combinations with this revision.

        Return the keys to reconcile.

        This method is called when an annotation begins to allow the revision to delete objects.
        """
        found = [key for key, some in self._known.items() if any(revision in each for each in some)]
        for key in found:
            del self._known[key]
        return found
