"""Random UUIDs, made in batches, because each system call may have to wait for other threads."""

from __future__ import annotations

import os
import uuid

__all__ = ["new_uid"]

_AT_ONCE = 128
_waiting: list[str] = []


def new_uid() -> str:
    """Return a new random UUID.

    >>> len(new_uid())
    36
    """
    if not _waiting:
        random = os.urandom(16 * _AT_ONCE)
        parts = (random[start : start + 16] for start in range(0, len(random), 16))
        _waiting.extend(str(uuid.UUID(bytes=part, version=4)) for part in parts)
    return _waiting.pop()
