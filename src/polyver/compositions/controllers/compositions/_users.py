"""Which composite resources use which revision of a composition, kept up to date."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from polyver.client import Change, Key
from polyver.compositions.controllers.compositions._snapshot import shown
from polyver.kube.objects.kinds import ResourceKind

__all__ = ["CompositeUsers"]

_User = tuple[str, str, Key]
"""The group and the kind of a composite resource, and which one it is."""


class CompositeUsers:
    """Takes note of composite resources, and tells who uses a revision."""

    def __init__(self) -> None:
        self._users: dict[str, dict[_User, None]] = {}

    def of(self, revision: str) -> Sequence[str]:
        """Those that use a revision, as sentences name them."""
        return [shown(kind, *reversed(key)) for _, kind, key in self._users.get(revision, ())]

    def observe(self, kind: ResourceKind, change: Change[str]) -> set[str]:
        """Take note of a change; the revisions that are used from now on, or no longer."""
        user = kind.group, kind.kind, change.key
        touched = {self._drop(change.before or "", user)}
        if change.after:
            users = self._users.setdefault(change.after, {})
            touched ^= {change.after} if not users else set()
            users[user] = None
        return touched - {""}

    def forget(self, kind: ResourceKind) -> set[str]:
        """A kind is no longer served: nobody of it uses anything, as far as can be told."""
        gone = [
            (revision, user)
            for revision, users in self._users.items()
            for user in users
            if user[:2] == (kind.group, kind.kind)
        ]
        return {self._drop(*each) for each in gone} - {""}

    def _drop(self, revision: str, user: _User) -> str:
        """The revision, if this was the last one that used it."""
        users = self._users.get(revision)
        if users is None or user not in users:
            return ""
        del users[user]
        if users:
            return ""
        del self._users[revision]
        return revision

    def used(self, revisions: Iterable[str]) -> set[str]:
        """Those of some revisions that somebody uses."""
        return {each for each in revisions if each in self._users}
