"""Runtime that serves function revisions by child processes, for embedded use and development."""

from polyver.compositions.runtimes.process._digests import folder_digest
from polyver.compositions.runtimes.process._memory import InvalidMemory, read_memory
from polyver.compositions.runtimes.process._packages import (
    Folder,
    NotAllowed,
    Packages,
    PackageUnusable,
    Requirement,
    Source,
    Wheel,
    read_packages,
)
from polyver.compositions.runtimes.process._restarts import Timing, without_again
from polyver.compositions.runtimes.process._runtime import PackageChanged, ProcessRuntime

__all__ = [
    "Folder",
    "InvalidMemory",
    "NotAllowed",
    "PackageChanged",
    "PackageUnusable",
    "Packages",
    "ProcessRuntime",
    "Requirement",
    "Source",
    "Timing",
    "Wheel",
    "folder_digest",
    "read_memory",
    "read_packages",
    "without_again",
]
