"""The graph of owners and dependents by uid, to find quickly which objects a change affects."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterator, Set
from typing import NamedTuple

from polyver.client import Discovery
from polyver.controllers.identity import ObjectIdentity, Owner
from polyver.kube.objects.kinds import ResourceKind

__all__ = ["FOREGROUND", "ORPHAN", "Coordinates", "Graph"]

FOREGROUND = "foregroundDeletion"
ORPHAN = "orphan"
_NOBODY: frozenset[str] = frozenset()
_REMEMBERED = 10_000


class Coordinates(NamedTuple):
    """The object that an owner reference points to."""

    group: str
    kind: str
    namespace: str
    name: str
    uid: str


class Graph:
    """All watched objects, their dependents, and the owners that are known to be gone."""

    def __init__(self) -> None:
        self.nodes: dict[str, ObjectIdentity] = {}
        self.served: dict[tuple[str, str], ResourceKind] = {}
        """The kinds that owner references can name now, by apiVersion and kind."""
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
        """Record that an object is gone for good."""
        node = self.nodes.get(uid)
        if node is not None:
            kind = node.kind
            self.lose(Coordinates(kind.group, kind.kind, node.namespace, node.name, uid))
            self.forget(uid)

    def forget(self, uid: str) -> None:
        """Record that it is unknown whether an object still exists."""
        node = self.nodes.pop(uid, None)
        if node is not None:
            self._unlink(node)

    def lose(self, owner: Coordinates) -> None:
        """Record that an owner does not exist; the oldest records are dropped."""
        self._absent[owner] = None
        self._absent.move_to_end(owner)
        if len(self._absent) > _REMEMBERED:
            self._absent.popitem(last=False)

    def lost(self, item: ObjectIdentity, owner: Owner) -> bool:
        """Report whether an owner is known not to exist, in the namespace or cluster-scoped."""
        return any(
            Coordinates(owner.group, owner.kind, namespace, owner.name, owner.uid) in self._absent
            for namespace in {item.namespace, ""}
        )

    def dependents(self, uid: str) -> Set[str]:
        """Return the dependents of an object; a reference to itself does not count."""
        return self._dependents.get(uid, _NOBODY) - {uid}

    def has_dependents(self, uid: str) -> bool:
        return _others(self._dependents.get(uid, _NOBODY), uid)

    def is_blocked(self, uid: str) -> bool:
        """Report whether there are dependents that a foreground deletion waits for."""
        return _others(self._blocking.get(uid, _NOBODY), uid)

    def owners(self, node: ObjectIdentity) -> Iterator[ObjectIdentity]:
        """Yield the owners of an object that are in the graph."""
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
    """Report whether an object is deleted in the foreground: after its dependents."""
    return node.deleting and FOREGROUND in node.finalizers


def is_orphaning(node: ObjectIdentity) -> bool:
    """Report whether an object is deleted with its dependents orphaned."""
    return node.deleting and ORPHAN in node.finalizers
