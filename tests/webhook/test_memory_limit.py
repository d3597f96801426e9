"""The memory that a process may use, as control groups say it."""

from __future__ import annotations

from pathlib import Path

import pytest

from polyver.webhook.budget import memory_limit

MIB = 1024 * 1024
NONE = "9223372036854771712"
V1 = "sys/fs/cgroup/memory"


@pytest.mark.parametrize(
    ("files", "limit"),
    [
        # Version 2, in a container and on a machine; the smallest on the way counts.
        ({"proc/self/cgroup": "0::/", "sys/fs/cgroup/memory.max": str(512 * MIB)}, 512),
        ({"proc/self/cgroup": "0::/a/b", "sys/fs/cgroup/a/memory.max": str(256 * MIB)}, 256),
        (
            {
                "proc/self/cgroup": "0::/a/b",
                "sys/fs/cgroup/a/b/memory.max": str(512 * MIB),
                "sys/fs/cgroup/a/memory.max": str(128 * MIB),
            },
            128,
        ),
        ({"proc/self/cgroup": "0::/a", "sys/fs/cgroup/a/memory.max": "max"}, 1000),
        # Version 1; in a container the path is the host's, and the limit at the root.
        ({"proc/self/cgroup": "4:memory:/x", f"{V1}/x/memory.limit_in_bytes": f"{64 * MIB}"}, 64),
        (
            {
                "proc/self/cgroup": "5:cpu,cpuacct:/x\n4:memory:/kubepods/pod1/x",
                f"{V1}/memory.limit_in_bytes": str(512 * MIB),
            },
            512,
        ),
        ({"proc/self/cgroup": "4:memory:/", f"{V1}/memory.limit_in_bytes": NONE}, 1000),
        # Nothing at all.
        ({}, 1000),
    ],
)
def test_the_smallest_limit_counts(tmp_path: Path, files: dict[str, str], limit: int) -> None:
    meminfo = {"proc/meminfo": f"MemTotal:  {4000 * 1024} kB\nMemFree: 1 kB"}
    for name, content in (meminfo | files).items():
        file = tmp_path / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(f"{content}\n")
    assert memory_limit(tmp_path) == limit * MIB
