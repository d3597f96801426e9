"""Settings of packages of composition functions, which commands pass to the capability."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from polyver.cli.exit_codes import Misused

if TYPE_CHECKING:
    from polyver.compositions.runtimes import Runtime

__all__ = ["PACKAGE_NAMES", "PackageSettings", "read_memory_limit"]

PACKAGE_NAMES = ("package", "packages", "function", "functions", "functions.pkg.crossplane.io")


@dataclass(frozen=True, slots=True)
class PackageSettings:
    """Which functions of compositions may be run, and how."""

    file: Path | None = None
    """A mapping from references to folders, wheels and requirements, which may be run."""
    allows_others: bool = False
    """Whether `file:` and `pypi:` references are run that it does not name."""
    several: bool = True
    """The switch FunctionRevisions: whether functions may have several active revisions."""
    memory: int | None = None
    """Bytes that one of their processes may take, 0 for any number; without, what is usual."""
    runtime: Runtime | None = None
    """What serves revisions; without, processes or Deployments, depending on the place."""

    @property
    def runs_processes(self) -> bool:
        """Whether somebody said which packages may be run beside this process."""
        return self.file is not None or self.allows_others


def read_memory_limit(text: str | None) -> int | None:
    """Bytes that a function may take, if `--package-memory` says it."""
    if text is None:
        return None
    from polyver.compositions.runtimes.process import InvalidMemory, read_memory

    try:
        return read_memory(text)
    except InvalidMemory as error:
        raise Misused(error.fact, at="--package-memory", hint=error.hint) from None
