"""State that the controller of composite resources keeps in memory between reconciles.

- `CompositeIndex` finds the composite resources that a change of a revision moves.
- `AdoptionCounter` counts the composite resources that follow each revision.
- `OwnWriteFilter` skips watch events that report the controller's own writes.
- `FailedMoves` records failed moves, so that they are not repeated without need.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from typing import Any, Generic, Literal, NamedTuple, TypeVar

from msgspec import Struct

from polyver.client import Clock, Key
from polyver.compositions._revision_rules import COMPOSITIONS_MANUAL, REVISIONS
from polyver.compositions.controllers.composites._candidates import CompositionCache
from polyver.compositions.decisions import (
    Candidate,
    Composite,
    composite_entry,
)
from polyver.compositions.names import PREVIOUS
from polyver.compositions.packages import StepCall, StepFunctionUse, calls_in
from polyver.compositions.pipeline import WOULD_DELETE, FailedCompositeMove, failed_move_in
from polyver.core import (
    Dependent,
    Exact,
    Index,
    Lineage,
    Loss,
    Move,
    Moves,
    Pin,
    Policy,
    Resolution,
    Selector,
    affected,
    answers,
)
from polyver.core.adoption import Adoption, Follower, adopted
from polyver.core.plain import Object
from polyver.kube.objects.conditions import DesiredCondition, find_condition

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
    """The namespace; empty for a cluster-scoped resource."""
    name: str

    @property
    def label(self) -> str:
        """The kind, namespace and name, for messages: `AcmeBucket/shop/my-bucket`."""
        return "/".join(filter(None, self[1:]))


class CompositeState(Struct, frozen=True, gc=False):
    """The indexed fields of a composite resource."""

    uid: str
    revision: int
    """The resourceVersion of the composite resource."""
    composition: str
    used: str
    """The CompositionRevision that the spec of the composite resource references."""
    previous: str
    """The CompositionRevision that the composite resource used before `used`; empty if there is
    none.
    """
    dependent: Dependent
    selector: Selector
    policy: Policy
    parts: tuple[tuple[str, str], ...]
    """Kinds of the composed resources, each as group and kind."""
    calls: tuple[StepCall, ...] = ()
    """The function revision that each step called when the resource was last composed."""
    failed: tuple[str, ...] = ()
    """The revisions to which the last move failed; empty if it succeeded."""
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
    failed = failed_move_in(composite.obj)
    trouble: Follower = ""
    if failed is not None:
        trouble = "held" if failed.reason == WOULD_DELETE else "failing"
    return CompositeState(
        composite.obj["metadata"].get("uid", ""),
        revision,
        composite.composition,
        composite.revision,
        composite.previous,
        replace(dependent, pin=None, previous=None),
        selector,
        policy,
        tuple(sorted(kinds)),
        calls_in(composite.obj),
        tuple(failed.revisions) if failed is not None else (),
        trouble,
        (find_condition(composite.obj, "Synced") or {}).get("status", ""),
    )


class CompositeIndex:
    """Index of the composite resources of all kinds.

    It finds the composite resources that a changed revision moves. The cost grows with the number
    of composite resources that move, not with the number of all.
    """

    def __init__(self, known: CompositionCache) -> None:
        self._known = known
        self._states: dict[tuple[str, str], dict[Key, CompositeState]] = {}
        self._uids: dict[str, CompositeKey] = {}
        self._compositions = Index()
        """The composite resources as dependents of Compositions."""
        self._functions = Index()
        """The steps of the composite resources as dependents of functions."""
        self._users: dict[str, set[CompositeKey]] = {}
        """The composite resources that reference each CompositionRevision."""
        self._undecided: dict[tuple[str, str], set[CompositeKey]] = {}
        """The composite resources of each kind that have not chosen a Composition yet."""
        self._uncalled: dict[str, set[CompositeKey]] = {}
        """By function: composite resources with a step that has not called the function yet."""
        self._troubled: set[CompositeKey] = set()
        """The composite resources whose last move failed."""

    def put(self, key: CompositeKey, state: CompositeState | None) -> None:
        """Record the state of a composite resource.

        If the resource was deleted, `state` is None.
        """
        there = self._states.setdefault(key[:2], {})
        before = there.get(Key(*key[2:]))
        if before is not None and state is not None and before.revision > state.revision:
            return  # the index already has a later state: this controller has written it
        if before is not None:
            del there[Key(*key[2:])]
            self._remove(key, before)
        if state is not None:
            there[Key(*key[2:])] = state
            self._add(key, state)

    def _add(self, key: CompositeKey, state: CompositeState) -> None:
        self._uids[state.uid] = key
        if state.used:
            self._users.setdefault(state.used, set()).add(key)
        if state.trouble:
            self._troubled.add(key)
        if state.composition:
            pin, previous = self._known.pin(state.used), self._known.pin(state.previous)
            mine = self._dependent(key, state, "", pin, previous)
            self._compositions.put(mine, state.composition, state.selector, state.policy)
        else:
            self._undecided.setdefault(key[:2], set()).add(key)
        calls = {(each.step, each.function): each for each in state.calls}
        for use in self._uses(state):
            call = calls.get((use.step, use.function))
            if call is None:
                self._uncalled.setdefault(use.function, set()).add(key)
            else:
                mine = self._dependent(key, state, use.step, call.pin, call.previous)
                self._functions.put(mine, use.function, use.selector, REVISIONS)

    def _remove(self, key: CompositeKey, state: CompositeState) -> None:
        if self._uids.get(state.uid) == key:
            del self._uids[state.uid]
        self._users.get(state.used, set()).discard(key)
        self._troubled.discard(key)
        self._undecided.get(key[:2], set()).discard(key)
        self._compositions.remove(self._dependent(key, state, ""))
        for waiting in self._uncalled.values():
            waiting.discard(key)
        for call in state.calls:
            self._functions.remove(self._dependent(key, state, call.step))

    def revised(self, revision: str) -> None:
        """Update the index for all composite resources that reference a CompositionRevision.

        The controller calls this method when the steps of the revision have become known.
        """
        for key in [*self._users.get(revision, ())]:
            state = self.get(key)
            assert state is not None
            self._remove(key, state)
            self._add(key, state)

    def _uses(self, state: CompositeState) -> Sequence[StepFunctionUse]:
        pipeline = self._known.pipeline(state.used)
        return pipeline.uses if pipeline is not None else ()

    @staticmethod
    def _dependent(
        key: CompositeKey,
        state: CompositeState,
        at: str,
        pin: Pin | None = None,
        previous: Pin | None = None,
    ) -> Dependent:
        name = "/".join(key)
        return replace(state.dependent, name=name, at=at, pin=pin, previous=previous)

    def get(self, key: CompositeKey) -> CompositeState | None:
        return self._states.get(key[:2], {}).get(Key(*key[2:]))

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
            enforced = defined is not None and defined.enforced == each.name
            for key, state in self._states.get(named, {}).items():
                if enforced or state.composition in ("", each.name):
                    yield CompositeKey(*named, *key)

    def moved(
        self, targets: Iterable[tuple[str, str]], before: Lineage, after: Lineage
    ) -> Iterator[CompositeKey]:
        """Yield the composite resources that a change of the revisions of a Composition moves.

        `targets` are the kinds, as group and kind, that the Composition is for. `before` and
        `after` are the lineages before and after the change.
        """
        yield from _changed(affected(self._compositions, before, after))
        for named in targets:
            yield from self._undecided.get(named, ())
            defined = self._known.defined(*named)
            if defined is not None and defined.enforced == after.name:
                for key, state in self._states.get(named, {}).items():
                    if state.composition != after.name:
                        yield CompositeKey(*named, *key)

    def calling(self, before: Lineage, after: Lineage) -> Iterator[CompositeKey]:
        """Yield the composite resources whose steps may call another function revision now.

        `before` and `after` are the lineages of the function before and after the change.
        """
        if before.releases == after.releases:
            return
        yield from _changed(affected(self._functions, before, after))
        yield from self._uncalled.get(after.name, ())
        for key in self._troubled:
            state = self.get(key)
            pipelines = map(self._known.pipeline, state.failed if state is not None else ())
            if any(each is not None and after.name in each.functions for each in pipelines):
                yield key

    def followers(
        self, lineage: Lineage, *, of: Literal["Composition", "Function"]
    ) -> Iterator[tuple[str, CompositeState]]:
        """Yield the composite resources that follow a lineage, and the revision that each may use.

        A composite resource that names a revision, or keeps its revision, does not follow.
        """
        index = self._functions if of == "Function" else self._compositions
        for each in answers(index, lineage):
            if not isinstance(each.found, Resolution):
                continue
            selector, policy = each.found.question.selector, each.found.question.policy
            if isinstance(selector, Exact) or policy is COMPOSITIONS_MANUAL:
                continue
            for dependent in each.dependents:
                state = self.get(_key(dependent))
                if state is not None:
                    yield each.found.release.name, state


def _changed(moves: Moves) -> Iterator[CompositeKey]:
    changed: list[Move | Loss] = [*moves.moves, *moves.losses]
    for each in changed:
        yield _key(each.dependent)


def _key(dependent: Dependent) -> CompositeKey:
    return CompositeKey(*dependent.name.split("/"))


class AdoptionCounter:
    """Counts the composite resources that follow each revision of a Composition or a Function."""

    def __init__(self, following: CompositeIndex, known: CompositionCache) -> None:
        self._following = following
        self._known = known

    def composition(self, name: str) -> dict[str, Adoption]:
        """Return the adoption of each revision of a Composition, by the revision's name."""
        found = self._following.followers(self._known.lineage(name), of="Composition")
        return adoption_of(
            (target, _became(state, target, is_on_it=state.used == target))
            for target, state in found
        )

    def function(self, name: str) -> dict[str, Adoption]:
        """Return the adoption of each revision of a Function, by the revision's name."""
        found = self._following.followers(self._known.installed.lineage(name), of="Function")
        return adoption_of(
            (target, _became(state, target, is_on_it=_calls(state, target)))
            for target, state in found
        )


def _calls(state: CompositeState, revision: str) -> bool:
    return any(each.pin.release == revision for each in state.calls)


def _became(state: CompositeState, target: str, *, is_on_it: bool) -> Follower:
    if is_on_it:
        return "updated" if state.synced == "True" else "failing" if state.synced else ""
    return state.trouble if target in state.failed else ""


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
    annotations = {**(metadata.get("annotations") or {})}
    annotations.pop(PREVIOUS, None)
    about = (metadata.get(name) for name in ("uid", "labels", "deletionTimestamp"))
    return (*about, annotations, said)


Combination = tuple[str, ...]
"""Names: of a CompositionRevision, and of the FunctionRevision that each of its steps calls."""


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
        """Return the recorded failure of a composite resource's move to a combination.

        `given` is the digest of the input of the run. Return None if no failure with this input is
        recorded, or if the record has expired.
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
