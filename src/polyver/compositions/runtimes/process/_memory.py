"""Memory limits of functions, so that a memory leak does not exhaust the machine's memory."""

from __future__ import annotations

import os
import re
from contextlib import suppress
from pathlib import Path

from polyver.core import PolyverError

__all__ = ["InvalidMemory", "read_memory", "share_of", "usual_memory"]

_AMOUNT = re.compile(r"(\d{1,15})(Ki|Mi|Gi|Ti)?")
_UNITS = {"": 0, "Ki": 10, "Mi": 20, "Gi": 30, "Ti": 40}

_LEAST = 1 << 30
_GROUPS = ("/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory/memory.limit_in_bytes")


class InvalidMemory(PolyverError):
    """The string is not an amount of memory."""


def read_memory(text: str) -> int:
    """Parse an amount of memory in Kubernetes notation, and return the number of bytes.

    >>> read_memory("512Mi") >> 20, read_memory("0")
    (512, 0)
    """
    found = _AMOUNT.fullmatch(text)
    if found is None:
        raise InvalidMemory(f"{text!r} is not an amount of memory", hint="write 512Mi or 2Gi")
    return int(found[1]) << _UNITS[found[2] or ""]


def usual_memory() -> int:
    """Return the default memory limit of one function in bytes.

    Return 0, which means no limit, if the memory of the machine is not known.
    """
    found: list[int] = []
    with suppress(OSError, ValueError):
        found.append(os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE"))
    for name in _GROUPS:
        with suppress(OSError, ValueError):
            found.append(int(Path(name).read_text()))
    return share_of(min(found, default=0))


def share_of(memory: int) -> int:
    """Return half of an amount of memory, but at least 1 GiB. Return 0 if the amount is 0.

    An amount of 0 means that it is not known.

    >>> share_of(16 << 30) >> 30, share_of(1 << 30) >> 30, share_of(0)
    (8, 1, 0)
    """
    return max(memory // 2, _LEAST) if memory > 0 else 0
