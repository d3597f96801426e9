"""The ApplicationRevisions that there are, so that nobody has to list them for each application.

A watch may be behind. What was made here is known at once; of what others made before an
application came, such as a backup, one is sure when the watch has told of what was made after.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from typing import Any

from polyver.client import Change, Key
from polyver.core.plain import Object
from polyver.definitions.names import APP_NAME
from polyver.definitions.resolution import newest_revision, surplus_revisions
from polyver.kube.objects.kinds import ResourceKind

__all__ = ["ApplicationRevisionIndex", "revision_in"]

_Kept = tuple[str, Object]


def revision_in(kind: ResourceKind, obj: Object) -> _Kept:
    """The application that a revision is of, and of the revision its name and annotations."""
    del kind
    metadata = obj["metadata"]
    about = {name: metadata.get(name) for name in ("name", "namespace", "annotations")}
    return (metadata.get("labels") or {}).get(APP_NAME, ""), {"metadata": about}


class ApplicationRevisionIndex:
    """By their applications."""

    def __init__(self) -> None:
        self._known: dict[Key, dict[str, Object]] = {}
        # Of revisions, by their own namespaces and names.
        self._observed: set[Key] = set()
        self._awaited: dict[Key, asyncio.Event] = {}

    def observe(self, kind: ResourceKind, change: Change[_Kept]) -> Iterable[Key]:
        del kind
        if change.before is not None:
            self._observed.discard(change.key)
            self._drop(Key(change.key.namespace, change.before[0]), change.key.name)
        if change.after is not None:
            self._put(Key(change.key.namespace, change.after[0]), change.after[1])
            self._observed.add(change.key)
            if change.key in self._awaited:
                self._awaited[change.key].set()
        return ()

    def note(self, obj: Object) -> None:
        """Take note of one that was made, or read."""
        application, kept = revision_in(_ANY, obj)
        self._put(Key(obj["metadata"]["namespace"], application), kept)

    def names(self, key: Key) -> list[str]:
        return [*self._known.get(key, ())]

    def newest(self, key: Key) -> Object | None:
        """With nothing but its name and annotations."""
        found = newest_revision(self._known.get(key, {}).values())
        return dict(found) if found is not None else None

    def surplus(self, key: Key) -> list[str]:
        """The names of those that are too many."""
        return surplus_revisions(self._known.get(key, {}).values())

    def forget(self, key: Key, name: str) -> None:
        """One was deleted."""
        self._drop(key, name)

    async def told(self, namespace: str, name: str, *, patience: float) -> bool:
        """Whether the watch tells of a revision that was made, before patience ends."""
        key = Key(namespace, name)
        if key in self._observed:
            return True
        event = self._awaited.setdefault(key, asyncio.Event())
        try:
            async with asyncio.timeout(patience):
                return await event.wait()
        except TimeoutError:
            return False
        finally:
            self._awaited.pop(key, None)

    def _put(self, key: Key, kept: Object) -> None:
        self._known.setdefault(key, {})[kept["metadata"]["name"]] = kept

    def _drop(self, key: Key, name: str) -> None:
        known = self._known.get(key, {})
        known.pop(name, None)
        if not known:
            self._known.pop(key, None)


_ANY: Any = None
