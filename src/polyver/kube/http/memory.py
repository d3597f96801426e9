"""The memory limit of this process: from its control group, or a share of the machine's memory."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path, PurePosixPath

__all__ = ["memory_limit"]

_NO_LIMIT = 1 << 60
"""In control groups version 1, a limit of at least this number of bytes means no limit."""
_SHARE = 4
"""If there is no limit, the process may use the machine's memory divided by this number."""


def memory_limit(root: Path = Path("/")) -> int:
    """Return the number of bytes of memory that this process may use.

    This is the smallest limit of the process's control group and the groups that contain it, in
    version 1 or version 2. In a container, the folder /sys/fs/cgroup itself may be the group of the
    container, so the limit in this folder also counts.
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
