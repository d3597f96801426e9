"""Cache of the outputs of `cue`."""

from __future__ import annotations

import hashlib
import threading
from collections import OrderedDict
from typing import Final

from polyver.definitions.cue._program import Printed

__all__ = ["CueOutputCache"]

_LARGEST: Final = 32 << 20


class CueOutputCache:
    """Outputs by their inputs; the least recently used are removed first."""

    def __init__(self, largest: int = _LARGEST) -> None:
        self._largest = largest
        self._size = 0
        self._known: OrderedDict[bytes, Printed] = OrderedDict()
        self._lock = threading.Lock()

    def get(self, *given: str) -> Printed | None:
        key = _key(given)
        with self._lock:
            found = self._known.get(key)
            if found is not None:
                self._known.move_to_end(key)
            return found

    def put(self, printed: Printed, *given: str) -> None:
        key = _key(given)
        with self._lock:
            if key in self._known:
                return
            self._known[key] = printed
            self._size += _size(printed)
            while self._size > self._largest:
                self._size -= _size(self._known.popitem(last=False)[1])


def _size(printed: Printed) -> int:
    return 500 + len(printed.out) + len(printed.err)


def _key(given: tuple[str, ...]) -> bytes:
    hashed = hashlib.sha256()
    for each in given:
        hashed.update(each.encode("utf-8", "surrogatepass"))
        hashed.update(b"\0")
    return hashed.digest()
