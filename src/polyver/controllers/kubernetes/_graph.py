"""The graph of owners and dependents, and the garbage collector's decision about one object.

An object is a dependent of the objects that its owner references name. `touched` finds the objects
that a change affects. `plan` decides about one object from the graph, and from owners that were
read from the server.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterator, Mapping, Set
from dataclasses import dataclass
from typing import Literal, NamedTuple

from msgspec import structs

from polyver.client import Discovery, Propagation
from polyver.controllers.identity import ObjectIdentity, Owner
from polyver.kube.objects.kinds import ResourceKind

__all__ = [
    "FOREGROUND",
    "ORPHAN",
    "CollectionPlan",
    "Coordinates",
    "Delete",
    "Effect",
    "Graph",
    "RemoveFinalizer",
    "ReportInvalidOwner",
    "SetOwners",
    "plan",
    "touched",
]

FOREGROUND = "foregroundDeletion"
ORPHAN = "orphan"
_NOBODY: frozenset[str] = frozenset()
_REMEMBERED = 10_000


class Coordinates(NamedTuple):
    """The identity of the object to which an owner reference points."""

    group: str
    kind: str
    namespace: str
    name: str
    uid: str


class Graph:
    """All watched objects by uid, their dependents, and owners that are known not to exist."""

    def __init__(self) -> None:
        self.nodes: dict[str, ObjectIdentity] = {}
        self.served: dict[tuple[str, str], ResourceKind] = {}
        """The kinds that the server serves now, by apiVersion and kind."""
        self._dependents: dict[str, set[str]] = {}
        self._blocking: dict[str, set[str]] = {}
        self._absent: OrderedDict[Coordinates, None] = OrderedDict()

    def serve(self, discovery: Discovery) -> None:
        """Record the kinds that are served now."""
        self.served = {(kind.api_version, kind.kind): kind for kind in discovery.kinds}

    def put(self, node: ObjectIdentity) -> None:
        """Record the current state of an object."""
        before = self.nodes.get(node.uid)
        if before is not None:
            self._unlink(before)
        self.nodes[node.uid] = node
        for owner in node.owners:
            self._dependents.setdefault(owner.uid, set()).add(node.uid)
            if owner.block_owner_deletion:
                self._blocking.setdefault(owner.uid, set()).add(node.uid)

    def remove(self, uid: str) -> None:
        """Record that an object has been deleted."""
        node = self.nodes.get(uid)
        if node is not None:
            kind = node.kind
            self.lose(Coordinates(kind.group, kind.kind, node.namespace, node.name, uid))
            self.forget(uid)

    def forget(self, uid: str) -> None:
        """Remove an object from the graph, because it is unknown whether it still exists."""
        node = self.nodes.pop(uid, None)
        if node is not None:
            self._unlink(node)

    def lose(self, owner: Coordinates) -> None:
        """Record that an owner does not exist. If there are too many records, drop the oldest."""
        self._absent[owner] = None
        self._absent.move_to_end(owner)
        if len(self._absent) > _REMEMBERED:
            self._absent.popitem(last=False)

    def lost(self, item: ObjectIdentity, owner: Owner) -> bool:
        """Report whether it is known that an owner of an object does not exist."""
        return any(
            Coordinates(owner.group, owner.kind, namespace, owner.name, owner.uid) in self._absent
            for namespace in {item.namespace, ""}
        )

    def dependents(self, uid: str) -> Set[str]:
        """Return the uids of the dependents of an object, never the uid of the object itself."""
        return self._dependents.get(uid, _NOBODY) - {uid}

    def has_dependents(self, uid: str) -> bool:
        return _others(self._dependents.get(uid, _NOBODY), uid)

    def is_blocked(self, uid: str) -> bool:
        """Report whether the foreground deletion of an object must still wait for dependents."""
        return _others(self._blocking.get(uid, _NOBODY), uid)

    def owners(self, node: ObjectIdentity) -> Iterator[ObjectIdentity]:
        """Yield those owners of an object that are in the graph."""
        for owner in node.owners:
            found = self.nodes.get(owner.uid)
            if found is not None:
                yield found

    def _unlink(self, node: ObjectIdentity) -> None:
        for owner in node.owners:
            for index in (self._dependents, self._blocking):
                uids = index.get(owner.uid)
                if uids is not None:
                    uids.discard(node.uid)
                    if not uids:
                        del index[owner.uid]


def _others(uids: Set[str], uid: str) -> bool:
    return len(uids) > (uid in uids)


def is_waiting(node: ObjectIdentity) -> bool:
    """Report whether an object is being deleted in the foreground: after its dependents."""
    return node.deleting and FOREGROUND in node.finalizers


def is_orphaning(node: ObjectIdentity) -> bool:
    """Report whether an object is being deleted with the policy Orphan: its dependents stay."""
    return node.deleting and ORPHAN in node.finalizers


# The decision about one object and its owners.


@dataclass(frozen=True, slots=True)
class Delete:
    """Effect: delete an object that has no owner left."""

    item: ObjectIdentity
    propagation: Propagation


@dataclass(frozen=True, slots=True)
class SetOwners:
    """Effect: replace the owner references of an object."""

    item: ObjectIdentity
    owners: tuple[Owner, ...]


@dataclass(frozen=True, slots=True)
class RemoveFinalizer:
    """Effect: remove a finalizer of an object, so that the API server can delete the object."""

    item: ObjectIdentity
    finalizer: str


@dataclass(frozen=True, slots=True)
class ReportInvalidOwner:
    """Effect: report an invalid owner reference, whose owner is in another namespace."""

    item: ObjectIdentity
    owner: Owner


Effect = Delete | SetOwners | RemoveFinalizer | ReportInvalidOwner


class CollectionPlan(NamedTuple):
    """The decision of the garbage collector about one object: effects, or owners to read first."""

    effects: tuple[Effect, ...] = ()
    look: tuple[tuple[Owner, ResourceKind], ...] = ()
    """Owners that are not in the graph. Read them from the server, and then call `plan` again."""
    unserved: bool = False
    """True if the server does not serve the kind of an owner.

    The object is then kept, and `plan` must be called again when the served kinds change.
    """
    unsure: bool = False
    """True if not all dependents of the object are known yet. Call `plan` again later."""


_NOTHING = CollectionPlan()

_State = Literal["live", "waiting", "absent", "unseen", "unserved", "misplaced"]


def plan(
    graph: Graph,
    uid: str,
    *,
    seen: Mapping[str, ObjectIdentity] | None = None,
    complete: bool = True,
) -> CollectionPlan:
    """Decide what the garbage collector does about an object.

    `seen` has the owners that were read from the server, by uid. `complete` is True if all
    dependents of the object are known. The cost depends on the number of owners of this object, not
    on the number of all objects.
    """
    item = graph.nodes.get(uid)
    if item is None:
        return _NOTHING
    seen = seen or {}
    kept: list[Owner] = []
    for owner in item.owners:
        found = graph.nodes.get(owner.uid) or seen.get(owner.uid)
        if found is None or not is_orphaning(found):
            kept.append(owner)
    if len(kept) != len(item.owners):
        return CollectionPlan((SetOwners(item, tuple(kept)),))
    if item.deleting:
        return _while_deleting(graph, item, complete=complete)
    return _by_owners(graph, item, seen) if item.owners else _NOTHING


def _while_deleting(graph: Graph, item: ObjectIdentity, *, complete: bool) -> CollectionPlan:
    if is_orphaning(item):
        if graph.has_dependents(item.uid):
            return _NOTHING  # first each dependent is reconciled, and then this object again
        # If a dependent were not known yet, it would be deleted later instead of orphaned.
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
        return CollectionPlan(reports)  # as in Kubernetes, such an object is never deleted
    if "unserved" in found:
        return CollectionPlan(unserved=True)
    if "unseen" in found:
        unseen = [owner for owner, state in states.items() if state == "unseen"]
        look = [(owner, graph.served[owner.api_version, owner.kind]) for owner in unseen]
        return CollectionPlan(look=tuple(look))
    live = tuple(owner for owner in item.owners if states[owner] == "live")
    effects: tuple[Effect, ...]
    if live:
        effects = () if live == item.owners else (SetOwners(item, live),)
    elif "waiting" in found and graph.has_dependents(item.uid):
        circle = _closes_a_circle(graph, item)
        effects = _unblock(item).effects if circle else (Delete(item, "Foreground"),)
    else:
        effects = (Delete(item, _propagation(item)),)
    return CollectionPlan((*reports, *effects))


def _propagation(item: ObjectIdentity) -> Propagation:
    """Return the propagation policy in the finalizers of an object; by default Background."""
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
    if found is not None:
        place = found.kind.group, found.kind.kind, found.namespace, found.name, found.uid
        if place != coordinates(item, owner, kind):
            found = None
    found = found or seen.get(owner.uid)
    if found is None:
        return "unseen"
    return "waiting" if is_waiting(found) else "live"


def coordinates(item: ObjectIdentity, owner: Owner, kind: ResourceKind) -> Coordinates:
    """Return the identity that an object must have to be the owner which a reference names.

    `item` is the object that has the owner reference, and `kind` is the kind of the owner.
    """
    namespace = item.namespace if kind.namespaced else ""
    return Coordinates(owner.group, owner.kind, namespace, owner.name, owner.uid)


def _elsewhere(graph: Graph, item: ObjectIdentity, owner: Owner) -> bool:
    """Report whether an owner exists, but in another namespace than the object.

    From another namespace, it cannot own the object.
    """
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
    """Report whether the deletion of an object waits for itself, through a cycle of owners."""
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
    """Return the uids of the objects to reconcile after a change of one object.

    The change must already be in the graph.
    """
    found: dict[str, None] = {}
    if before is not None and after is not None:
        same = structs.replace(before, resource_version=after.resource_version) == after
        if same:
            return []  # most changes do not affect identity, owners or finalizers
    if after is not None and (after.owners or after.deleting):
        found[after.uid] = None
    for node in (before, after):
        if node is not None:
            found.update((owner.uid, None) for owner in graph.owners(node) if owner.deleting)
    if before is not None and (after is None or after.uid != before.uid):
        found.update(dict.fromkeys(graph.dependents(before.uid)))
    if after is not None:
        earlier = before if before is not None and before.uid == after.uid else None
        states = (is_waiting, is_orphaning)
        if any(each(after) and not (earlier and each(earlier)) for each in states):
            # A deletion begins that waits for the dependents, or that orphans them.
            found.update(dict.fromkeys(graph.dependents(after.uid)))
    return list(found)
