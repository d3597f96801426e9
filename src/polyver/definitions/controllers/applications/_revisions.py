"""Index of ApplicationRevisions, so that they need not be listed for each application.

A watch may be behind. Revisions that this process creates are known at once. Those that others
created earlier, such as a restored backup, are complete once the watch reports a revision that was
created afterwards.
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
    """Return the application of a revision, and the revision's name and annotations."""
    del kind
    metadata = obj["metadata"]
    about = {name: metadata.get(name) for name in ("name", "namespace", "annotations")}
    return (metadata.get("labels") or {}).get(APP_NAME, ""), {"metadata": about}


class ApplicationRevisionIndex:
    """ApplicationRevisions by application."""

    def __init__(self) -> None:
        self._known: dict[Key, dict[str, Object]] = {}
        # Keys of revisions: their own namespaces and names.
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
        """Record a revision that was created or read."""
        application, kept = revision_in(_ANY, obj)
        self._put(Key(obj["metadata"]["namespace"], application), kept)

    def names(self, key: Key) -> list[str]:
        return [*self._known.get(key, ())]

    def newest(self, key: Key) -> Object | None:
        """Return the newest revision, with only its name and annotations, or None."""
        found = newest_revision(self._known.get(key, {}).values())
        return dict(found) if found is not None else None

    def surplus(self, key: Key) -> list[str]:
        """Return the names of the revisions that exceed the limit."""
        return surplus_revisions(self._known.get(key, {}).values())

    def forget(self, key: Key, name: str) -> None:
        """Remove a deleted revision."""
        self._drop(key, name)

    async def told(self, namespace: str, name: str, *, patience: float) -> bool:
        """Report whether the watch reports a revision before the timeout `patience`."""
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
