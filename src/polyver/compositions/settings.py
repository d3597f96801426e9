"""The settings for packages of composition functions, which commands pass to the capability."""

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
    """Settings for the packages of composition functions."""

    file: Path | None = None
    """The file of `--packages`. The packages that it lists may run.

    It maps package references to folders, wheels and requirements.
    """
    allows_others: bool = False
    """True if packages that the file does not list may run too.

    They must have a `file:` or `pypi:` reference.
    """
    several: bool = True
    """True if the feature FunctionRevisions is enabled.

    A composition function may then have several active revisions.
    """
    memory: int | None = None
    """Memory limit of a function's process, in bytes.

    0 means no limit; None means the default limit.
    """
    runtime: Runtime | None = None
    """The runtime of function revisions.

    None means that functions run as child processes, or as Deployments on a cluster.
    """

    @property
    def runs_processes(self) -> bool:
        """True if the settings allow packages to run as child processes."""
        return self.file is not None or self.allows_others


def read_memory_limit(text: str | None) -> int | None:
    """Parse the value of `--package-memory`. Return None if the option is not set."""
    if text is None:
        return None
    from polyver.compositions.runtimes.process import InvalidMemory, read_memory

    try:
        return read_memory(text)
    except InvalidMemory as error:
        raise Misused(error.fact, at="--package-memory", hint=error.hint) from None
