"""How much memory this process may use: the limit of its control group, or the machine's memory."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path, PurePosixPath

__all__ = ["memory_limit"]

_NO_LIMIT = 1 << 60
"""What version 1 of control groups says without a limit is more than this."""
_SHARE = 4
"""Without a limit, one part in so many of the machine's memory."""


def memory_limit(root: Path = Path("/")) -> int:
    """Return the bytes that this process may use.

    The smallest limit counts of the control group of the process and those around it, in versions
    1 and 2. In a container the groups are seen from its own root, whatever their path says.
    """
    limits = [
        int(text)
        for file in _limit_files(root)
        if (text := _read(file)).isdecimal() and int(text) < _NO_LIMIT
    ]
    return min(limits, default=_machine(root) // _SHARE)


def _limit_files(root: Path) -> Iterator[Path]:
    groups = root / "sys/fs/cgroup"
    for line in _read(root / "proc/self/cgroup").splitlines():
        _, controllers, path = line.split(":", 2)
        if not controllers:
            base, name = groups, "memory.max"
        elif "memory" in controllers.split(","):
            base, name = groups / "memory", "memory.limit_in_bytes"
        else:
            continue
        own = PurePosixPath(path.lstrip("/"))
        yield from (base / each / name for each in (own, *own.parents))


def _machine(root: Path) -> int:
    for line in _read(root / "proc/meminfo").splitlines():
        if line.startswith("MemTotal:"):
            return int(line.split()[1]) * 1024
    return 4 << 30


def _read(file: Path) -> str:
    try:
        return file.read_text().strip()
    except OSError:
        return ""
