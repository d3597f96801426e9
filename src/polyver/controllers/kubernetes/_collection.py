"""Decide what to do about one object and its owners, from the graph alone."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal, NamedTuple

from msgspec import structs

from polyver.client import Propagation
from polyver.controllers.identity import ObjectIdentity, Owner
from polyver.controllers.kubernetes._graph import (
    FOREGROUND,
    ORPHAN,
    Coordinates,
    Graph,
    is_orphaning,
    is_waiting,
)
from polyver.kube.objects.kinds import ResourceKind

__all__ = [
    "CollectionPlan",
    "Delete",
    "Effect",
    "RemoveFinalizer",
    "ReportInvalidOwner",
    "SetOwners",
    "plan",
    "touched",
]


@dataclass(frozen=True, slots=True)
class Delete:
    """Delete an object that has no owner left."""

    item: ObjectIdentity
    propagation: Propagation


@dataclass(frozen=True, slots=True)
class SetOwners:
    """Set the owner references of an object."""

    item: ObjectIdentity
    owners: tuple[Owner, ...]


@dataclass(frozen=True, slots=True)
class RemoveFinalizer:
    """Remove a finalizer, so that the deletion can complete."""

    item: ObjectIdentity
    finalizer: str


@dataclass(frozen=True, slots=True)
class ReportInvalidOwner:
    """Report an owner in a namespace from which it cannot own the object."""

    item: ObjectIdentity
    owner: Owner


Effect = Delete | SetOwners | RemoveFinalizer | ReportInvalidOwner


class CollectionPlan(NamedTuple):
    """The effects to carry out, or the information that is needed first."""

    effects: tuple[Effect, ...] = ()
    look: tuple[tuple[Owner, ResourceKind], ...] = ()
    """Owners that are not in the graph; the server must be asked whether they exist."""
    unserved: bool = False
    """True if an owner's kind is not served: the object is kept until the kinds change."""
    unsure: bool = False
    """True if the decision has to wait until all objects are known."""


_NOTHING = CollectionPlan()

_State = Literal["live", "waiting", "absent", "unseen", "unserved", "misplaced"]


def plan(
    graph: Graph,
    uid: str,
    *,
    seen: Mapping[str, ObjectIdentity] | None = None,
    complete: bool = True,
) -> CollectionPlan:
    """Return what to do about an object; `seen` are owners, by uid, that the server returned.

    The cost depends on the owners of this object, not on the number of all objects.
    """
    item = graph.nodes.get(uid)
    if item is None:
        return _NOTHING
    kept = tuple(owner for owner in item.owners if not _orphans(graph, owner, seen or {}))
    if kept != item.owners:
        return CollectionPlan((SetOwners(item, kept),))
    if item.deleting:
        return _while_deleting(graph, item, complete=complete)
    return _by_owners(graph, item, seen or {}) if item.owners else _NOTHING


def _orphans(graph: Graph, owner: Owner, seen: Mapping[str, ObjectIdentity]) -> bool:
    found = graph.nodes.get(owner.uid) or seen.get(owner.uid)
    return found is not None and is_orphaning(found)


def _while_deleting(graph: Graph, item: ObjectIdentity, *, complete: bool) -> CollectionPlan:
    if is_orphaning(item):
        if graph.has_dependents(item.uid):
            return _NOTHING  # each of them is reconciled, and this one again after them
        # A dependent that is not known yet would be deleted instead of orphaned.
        return (
            CollectionPlan((RemoveFinalizer(item, ORPHAN),))
            if complete
            else CollectionPlan(unsure=True)
        )
    if not is_waiting(item):
        return _NOTHING
    if not graph.is_blocked(item.uid):
        return CollectionPlan((RemoveFinalizer(item, FOREGROUND),))
    return _unblock(item) if _closes_a_circle(graph, item) else _NOTHING


def _by_owners(
    graph: Graph, item: ObjectIdentity, seen: Mapping[str, ObjectIdentity]
) -> CollectionPlan:
    states = {owner: _state(graph, item, owner, seen) for owner in item.owners}
    found = set(states.values())
    reports = tuple(
        ReportInvalidOwner(item, owner) for owner in item.owners if _elsewhere(graph, item, owner)
    )
    if "misplaced" in found:
        return CollectionPlan(reports)  # as in Kubernetes, such an object is never collected
    if "unserved" in found:
        return CollectionPlan(unserved=True)
    if "unseen" in found:
        return CollectionPlan(look=tuple(_unseen(graph, states)))
    return CollectionPlan((*reports, *_decided(graph, item, states)))


def _unseen(graph: Graph, states: Mapping[Owner, _State]) -> list[tuple[Owner, ResourceKind]]:
    return [
        (owner, graph.served[owner.api_version, owner.kind])
        for owner, state in states.items()
        if state == "unseen"
    ]


def _decided(
    graph: Graph, item: ObjectIdentity, states: Mapping[Owner, _State]
) -> tuple[Effect, ...]:
    live = tuple(owner for owner in item.owners if states[owner] == "live")
    if live:
        return () if live == item.owners else (SetOwners(item, live),)
    if "waiting" in states.values() and graph.has_dependents(item.uid):
        if _closes_a_circle(graph, item):
            return _unblock(item).effects
        return (Delete(item, "Foreground"),)
    return (Delete(item, _propagation(item)),)


def _propagation(item: ObjectIdentity) -> Propagation:
    """Return the propagation policy that an earlier request set by a finalizer, or Background."""
    if ORPHAN in item.finalizers:
        return "Orphan"
    return "Foreground" if FOREGROUND in item.finalizers else "Background"


def _state(
    graph: Graph, item: ObjectIdentity, owner: Owner, seen: Mapping[str, ObjectIdentity]
) -> _State:
    if graph.lost(item, owner):
        return "absent"
    kind = graph.served.get((owner.api_version, owner.kind))
    if kind is None:
        return "unserved"
    if kind.namespaced and not item.namespace:
        return "misplaced"
    found = graph.nodes.get(owner.uid)
    if found is None or not _is_at(found, coordinates(item, owner, kind)):
        found = seen.get(owner.uid)
    if found is None:
        return "unseen"
    return "waiting" if is_waiting(found) else "live"


def coordinates(item: ObjectIdentity, owner: Owner, kind: ResourceKind) -> Coordinates:
    """Return the kind, namespace, name and uid that the owner of an object must have."""
    namespace = item.namespace if kind.namespaced else ""
    return Coordinates(owner.group, owner.kind, namespace, owner.name, owner.uid)


def _is_at(node: ObjectIdentity, place: Coordinates) -> bool:
    found = node.kind.group, node.kind.kind, node.namespace, node.name, node.uid
    return found == place


def _elsewhere(graph: Graph, item: ObjectIdentity, owner: Owner) -> bool:
    """Report whether the owner exists, but in a namespace from which it cannot own this object."""
    found = graph.nodes.get(owner.uid)
    if found is None or not found.namespace or found.namespace == item.namespace:
        return False
    named = found.kind.group, found.kind.kind, found.name
    return named == (owner.group, owner.kind, owner.name)


def _unblock(item: ObjectIdentity) -> CollectionPlan:
    owners = tuple(
        structs.replace(owner, block_owner_deletion=False) if owner.block_owner_deletion else owner
        for owner in item.owners
    )
    return CollectionPlan((SetOwners(item, owners),))


def _closes_a_circle(graph: Graph, item: ObjectIdentity) -> bool:
    """Report whether an object waits for its own deletion through its owners."""
    waiting, done = [item], set[str]()
    while waiting:
        for owner in waiting.pop().owners:
            found = graph.nodes.get(owner.uid) if owner.block_owner_deletion else None
            if found is None or not (found is item or is_waiting(found)):
                continue
            if found.uid == item.uid:
                return True
            if found.uid not in done:
                done.add(found.uid)
                waiting.append(found)
    return False


def touched(graph: Graph, before: ObjectIdentity | None, after: ObjectIdentity | None) -> list[str]:
    """Return the uids of the objects to check after a change, which is in the graph already."""
    found: dict[str, None] = {}
    if before is not None and after is not None and _alike(before, after):
        return []  # most changes do not matter here
    if after is not None and (after.owners or after.deleting):
        found[after.uid] = None
    for node in (before, after):
        if node is not None:
            found.update((owner.uid, None) for owner in graph.owners(node) if owner.deleting)
    if before is not None and (after is None or after.uid != before.uid):
        found.update(dict.fromkeys(graph.dependents(before.uid)))
    if after is not None and _starts(before, after):
        found.update(dict.fromkeys(graph.dependents(after.uid)))
    return list(found)


def _alike(before: ObjectIdentity, after: ObjectIdentity) -> bool:
    return structs.replace(before, resource_version=after.resource_version) == after


def _starts(before: ObjectIdentity | None, after: ObjectIdentity) -> bool:
    """Report whether a deletion begins that waits for dependents, or orphans them."""
    earlier = before if before is not None and before.uid == after.uid else None
    return any(
        each(after) and not (earlier is not None and each(earlier))
        for each in (is_waiting, is_orphaning)
    )
