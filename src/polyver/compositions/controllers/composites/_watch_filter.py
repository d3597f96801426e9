"""Filter of watch events that report the controller's own writes.

The state with the higher resourceVersion is later, so no content needs comparing.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any, Generic, TypeVar

from polyver.core.plain import Object

__all__ = ["OwnWriteFilter", "others_in"]

K = TypeVar("K", bound=Hashable)


class OwnWriteFilter(Generic[K]):
    """Records the states that the controller has read or written, to skip their events."""

    def __init__(self, wake: Callable[[K], None]) -> None:
        self._wake = wake
        self._noted: dict[K, int] = {}
        self._told: dict[K, int] = {}
        """Latest resourceVersion that a watch reported, for keys that are being reconciled."""

    def is_news(self, key: K, revision: int) -> bool:
        """Report whether the state in a watch event needs a reconcile."""
        if key in self._told:
            # It may be the write that is in progress.
            self._told[key] = max(self._told[key], revision)
            return False
        return revision > self._noted.get(key, -1)

    def note(self, key: K, revision: int) -> None:
        """Record a state that was read or written."""
        self._noted[key] = max(self._noted.get(key, -1), revision)

    def forget(self, key: K) -> None:
        self._noted.pop(key, None)

    @contextmanager
    def working(self, key: K) -> Iterator[None]:
        """Hold back watch events during a reconcile; wake the key afterwards if others wrote."""
        self._told[key] = -1
        try:
            yield
        finally:
            if self._told.pop(key) > self._noted.get(key, -1):
                self._wake(key)


def others_in(obj: Object) -> tuple[Any, ...]:
    """Return the fields that other clients write, to distinguish their changes from our own."""
    metadata, spec = obj["metadata"], obj.get("spec") or {}
    ours = {"compositionRef", "compositionRevisionRef", "resourceRefs"}
    inside = spec.get("crossplane")
    said = {name: each for name, each in spec.items() if name not in ours | {"crossplane"}}
    if isinstance(inside, Mapping):
        said |= {f".{name}": each for name, each in inside.items() if name not in ours}
    about = (metadata.get(name) for name in ("uid", "labels", "annotations", "deletionTimestamp"))
    return (*about, said)
