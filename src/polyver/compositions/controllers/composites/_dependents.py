"""Index of composite resources: finds those that a change concerns.

It keeps only the fields that the search needs.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from typing import Any, NamedTuple

from msgspec import Struct

from polyver.client import Key
from polyver.compositions._adoption import adoption_of
from polyver.compositions._policy import COMPOSITIONS_MANUAL, REVISIONS
from polyver.compositions.controllers.composites._candidates import CompositionCache
from polyver.compositions.decisions import (
    Candidate,
    Composite,
    CompositeKind,
    composite_entry,
    moved_pipelines,
)
from polyver.compositions.pipeline import WOULD_DELETE
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
from polyver.core.adoption import Adoption, Follower

__all__ = ["AdoptionCounter", "CompositeIndex", "CompositeKey", "CompositeState", "state_of"]


class CompositeKey(NamedTuple):
    """Identifies a composite resource, independent of its version."""

    group: str
    kind: str
    namespace: str
    """Empty for a cluster-scoped resource."""
    name: str


class CompositeState(Struct, frozen=True, gc=False):
    """The indexed fields of a composite resource."""

    uid: str
    revision: int
    """Its resourceVersion."""
    composition: str
    used: str
    """The CompositionRevision that its spec references."""
    dependent: Dependent
    selector: Selector
    policy: Policy
    parts: tuple[tuple[str, str], ...]
    """Kinds of its composed resources, by group and name."""
    calls: tuple[tuple[str, str], ...] = ()
    """Functions that composed it, and their revisions."""
    trouble: Follower = ""
    """Result of its last failed move: "held" if it would delete objects, "failing", or empty."""
    synced: str = ""
    """Status of its condition `Synced`."""

    @property
    def followed(self) -> tuple[object, ...]:
        """The fields that decide which releases the resource follows and uses."""
        return self.composition, self.used, self.calls, self.trouble, self.synced, self.selector


def state_of(composite: Composite, revision: int) -> CompositeState:
    """Return the indexed fields of a composite resource."""
    entry = composite_entry(composite, Lineage(composite.composition))
    dependent, _, selector, policy = entry
    kinds = {(each["apiVersion"].rpartition("/")[0], each["kind"]) for each in composite.resources}
    uid = composite.obj["metadata"].get("uid", "")
    used = composite.revision
    who = replace(dependent, pin=None)
    parts = tuple(sorted(kinds))
    status = composite.obj.get("status") or {}
    calls = tuple((each["function"], each["revision"]) for each in status.get("pipeline") or ())
    said = {each["type"]: each for each in status.get("conditions") or ()}
    return CompositeState(
        uid,
        revision,
        composite.composition,
        used,
        who,
        selector,
        policy,
        parts,
        calls,
        _trouble(said.get("Updated") or {}),
        (said.get("Synced") or {}).get("status", ""),
    )


def _trouble(updated: Mapping[str, Any]) -> Follower:
    if updated.get("status") != "False":
        return ""
    return "held" if updated.get("reason") == WOULD_DELETE else "failing"


class CompositeIndex:
    """Composite resources of all kinds."""

    def __init__(self, known: CompositionCache) -> None:
        self._known = known
        self._states: dict[tuple[str, str], dict[Key, CompositeState]] = {}
        self._uids: dict[str, CompositeKey] = {}

    def put(self, key: CompositeKey, state: CompositeState | None) -> None:
        """Record a composite resource; None means that it is gone."""
        there = self._states.setdefault(key[:2], {})
        before = there.get(Key(*key[2:]))
        if before is not None and state is not None and before.revision > state.revision:
            return  # a later state, of our own write, is known already
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
        """Return the keys of a kind."""
        return [CompositeKey(group, kind, *key) for key in self._states.get((group, kind), ())]

    def choosing(self, *told: Candidate | None) -> Iterator[CompositeKey]:
        """Yield the composite resources that use or may choose one of these compositions."""
        for each in filter(None, told):
            named = each.api_version.rpartition("/")[0], each.kind
            defined = self._known.defined(*named)
            for key, state in self._states.get(named, {}).items():
                if _may_have(state, defined, each.name):
                    yield CompositeKey(*named, *key)

    def moved(
        self, targets: Iterable[tuple[str, str]], before: Lineage, after: Lineage
    ) -> Iterator[CompositeKey]:
        """Yield the composite resources that a change of a composition's revisions moves."""
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
        """Yield the composite resources whose function revision changes with a lineage."""
        moved = moved_pipelines(self._known.pipelines, before, after)
        if not moved:
            return
        for named, there in self._states.items():
            for key, state in there.items():
                if state.used in moved or (state.trouble and self._wanted(state) in moved):
                    yield CompositeKey(*named, *key)

    def _wanted(self, state: CompositeState) -> str:
        """Return the CompositionRevision that the selector resolves to; empty if there is none."""
        return _target(self._known.lineage(state.composition), state.selector, state.policy)


class AdoptionCounter:
    """Counts the composite resources that follow each release of a Composition or a Function."""

    def __init__(self, following: CompositeIndex, known: CompositionCache) -> None:
        self._following = following
        self._known = known

    def composition(self, name: str) -> dict[str, Adoption]:
        """Return the adoption of each revision of a Composition."""
        lineage = self._known.lineage(name)

        def followers() -> Iterator[tuple[str, Follower]]:
            for state in self._following.states():
                if state.composition == name and state.policy is not COMPOSITIONS_MANUAL:
                    target = _target(lineage, state.selector, state.policy)
                    if target:
                        yield target, _became(state, is_on_it=state.used == target)

        return adoption_of(followers())

    def function(self, name: str) -> dict[str, Adoption]:
        """Return the adoption of each revision of a Function."""
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
