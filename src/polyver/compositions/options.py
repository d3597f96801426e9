"""The command-line options of the capability `compositions`."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

from cyclopts import Parameter

from polyver.cli.exit_codes import Misused
from polyver.compositions.settings import PackageSettings, read_memory_limit
from polyver.core import listed

__all__ = ["CompositionOptions", "CompositionPlanOptions"]

_FEATURES = ("FunctionRevisions",)


@Parameter(name="*")
@dataclass(frozen=True, kw_only=True)
class CompositionOptions:
    """The options for compositions and the packages of their functions.

    Attributes
    ----------
    packages
        A file with the packages of composition functions that polyver may run as processes. The
        file maps each package reference to a folder, a wheel, or a requirement such as NAME==1.2.3.
    allow_packages
        Also run a package that the file of --packages does not list, if its reference begins with
        file: or pypi:. With this option, everyone who may write Functions can run code on the
        machine, or in the container, in which polyver runs.
    package_memory
        The memory limit for the process of each revision of a composition function, together with
        its child processes, such as 512Mi or 2Gi; 0 means no limit. Default: half of the memory of
        the machine, but at least 1Gi.
    feature
        Enable or disable a feature: NAME=true or NAME=false; repeatable. The only feature is
        FunctionRevisions, which is enabled by default. With FunctionRevisions=false, a composition
        function can have only one active revision.
    """

    packages: Path | None = None
    allow_packages: Annotated[bool, Parameter(negative=())] = False
    package_memory: str | None = None
    feature: Annotated[list[str] | None, Parameter(negative=())] = None

    @property
    def given(self) -> str:
        """The names of the options that were set and need this capability, for messages.

        Empty if none of these options was set.
        """
        return "--packages and --allow-packages" if self.packages or self.allow_packages else ""

    def settings(self, *, enabled: bool, show_traceback: bool) -> PackageSettings:
        """Check the options and return the settings that they express."""
        del enabled, show_traceback
        several = _features(self.feature or ())["FunctionRevisions"]
        memory = read_memory_limit(self.package_memory)
        return PackageSettings(self.packages, self.allow_packages, several, memory)

    def arguments(self) -> Iterator[str]:
        """Yield the options as arguments for another command: `--packages`, `packages.yaml`.

        Options with their default value are left out.
        """
        if self.packages:
            yield from ("--packages", str(self.packages))
        if self.allow_packages:
            yield "--allow-packages"
        if self.package_memory is not None:
            yield from ("--package-memory", self.package_memory)
        for value in self.feature or ():
            yield from ("--feature", value)


@Parameter(name="*")
@dataclass(frozen=True, kw_only=True)
class CompositionPlanOptions:
    """The options of `polyver plan` for the functions that compose composite resources.

    Attributes
    ----------
    packages
        A file with the packages of composition functions that polyver may run as processes on this
        machine. The file maps each package reference to a folder, a wheel, or a requirement such as
        NAME==1.2.3.
    allow_packages
        Also run a package that the file of --packages does not list, if its reference begins with
        'file:' or 'pypi:'.
    package_memory
        The memory limit for the process of each function revision, together with its child
        processes, such as 512Mi or 2Gi; 0 means no limit. Default: half of the memory of the
        machine, but at least 1Gi.
    function_address
        NAME=ADDRESS: call a function at this address instead of starting a process; repeatable.
        ADDRESS is HOST:PORT, or http://HOST:PORT without TLS. NAME is a FunctionRevision, or a
        Function of which the plan needs only one revision.
    function_credentials
        A file or folder with Secrets. Functions get these Secrets instead of the Secrets on the
        cluster with the same names.
    data
        The folder in which polyver keeps the Python environments that it builds for functions, so
        that later runs start faster. Default: the data folder of `polyver up`:
        `$XDG_DATA_HOME/polyver`, or `~/.local/share/polyver` if the variable is not set.
    """

    packages: Path | None = None
    allow_packages: Annotated[bool, Parameter(negative=())] = False
    package_memory: str | None = None
    function_address: Annotated[list[str] | None, Parameter(negative=())] = None
    function_credentials: str | None = None
    data: Path | None = None

    def settings(self) -> PackageSettings:
        """Return the settings of the packages that these options express."""
        memory = read_memory_limit(self.package_memory)
        return PackageSettings(self.packages, self.allow_packages, memory=memory)


def _features(texts: Iterable[str]) -> dict[str, bool]:
    """Return whether each feature is enabled, by its name. All features are enabled by default."""
    found = dict.fromkeys(_FEATURES, True)
    for text in texts:
        name, _, value = text.partition("=")
        if name not in found or value not in ("true", "false"):
            hint = f"write NAME=true or NAME=false; known: {listed(_FEATURES)}"
            raise Misused(f"{text!r} is not a feature setting", at="--feature", hint=hint)
        found[name] = value == "true"
    return found
