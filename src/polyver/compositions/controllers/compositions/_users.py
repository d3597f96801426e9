"""Index of the composite resources that use each revision of a composition."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from polyver.client import Change, Key
from polyver.compositions.controllers.compositions._snapshot import shown
from polyver.kube.objects.kinds import ResourceKind

__all__ = ["CompositeUsers"]

_User = tuple[str, str, Key]
"""Group, kind and key of a composite resource."""


class CompositeUsers:
    """Records composite resources, and returns the users of a revision."""

    def __init__(self) -> None:
        self._users: dict[str, dict[_User, None]] = {}

    def of(self, revision: str) -> Sequence[str]:
        """Return the users of a revision, as messages name them."""
        return [shown(kind, *reversed(key)) for _, kind, key in self._users.get(revision, ())]

    def observe(self, kind: ResourceKind, change: Change[str]) -> set[str]:
        """Record a change; return the revisions that become used or unused by it."""
        user = kind.group, kind.kind, change.key
        touched = {self._drop(change.before or "", user)}
        if change.after:
            users = self._users.setdefault(change.after, {})
            touched ^= {change.after} if not users else set()
            users[user] = None
        return touched - {""}

    def forget(self, kind: ResourceKind) -> set[str]:
        """Remove the users of a kind that is no longer served; return revisions now unused."""
        gone = [
            (revision, user)
            for revision, users in self._users.items()
            for user in users
            if user[:2] == (kind.group, kind.kind)
        ]
        return {self._drop(*each) for each in gone} - {""}

    def _drop(self, revision: str, user: _User) -> str:
        """Remove a user; return the revision if this was its last user, else an empty string."""
        users = self._users.get(revision)
        if users is None or user not in users:
            return ""
        del users[user]
        if users:
            return ""
        del self._users[revision]
        return revision

    def used(self, revisions: Iterable[str]) -> set[str]:
        """Return the given revisions that are in use."""
        return {each for each in revisions if each in self._users}
