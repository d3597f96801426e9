"""The options for the capabilities of a control plane: the same for every command.

`polyver up`, `polyver run` and `polyver install` take them; an installation passes them on.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

from cyclopts import Parameter

from polyver.app.choices import CAPABILITIES, RENAMED, Choices
from polyver.cli.exit_codes import Misused
from polyver.cli.options import read_seconds
from polyver.cli.output import warn
from polyver.compositions.settings import PackageSettings, read_memory_limit
from polyver.core import listed
from polyver.functions.settings import DEFAULT_TIMEOUT, CallSettings

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from polyver.functions.registering import Functions

__all__ = ["CapabilityOptions"]

FEATURES = ("FunctionRevisions",)
_USUAL = "apis"


@Parameter(name="*")
@dataclass(frozen=True, kw_only=True)
class CapabilityOptions:
    """The options that enable and configure the capabilities of a control plane.

    Attributes
    ----------
    capabilities
        The capabilities to enable, separated by commas: apis, functions, definitions,
        compositions; empty for none. Default: apis, and functions if --functions or --catalogue is
        given.
    functions
        A .py file or a module that registers functions for blueprints; repeatable. Functions of
        installed packages are always loaded.
    catalogue
        A catalogue file with the stages of function versions; repeatable.
    allow_command
        Allow blueprints to run programs on this machine, with the function Command.
    function_timeout
        The timeout of one phase of an action: 90s, 1m30s, 2h.
    semver_gate
        The action for a new version of a definition that breaks its users without a new major
        version.
    packages
        A file that lists the allowed packages of composition functions: a mapping from references
        to folders, wheels and requirements such as NAME==1.2.3.
    allow_packages
        Also allow packages that the file does not list, if their references begin with file: or
        pypi:. Everyone who may write Functions can then run code on this machine.
    package_memory
        The memory limit for the process of one such function: 512Mi, 2Gi, 0 for no limit. Default:
        half of the memory of the machine.
    feature
        A feature to enable or disable; repeatable. FunctionRevisions=false refuses several active
        revisions of one function.
    """

    capabilities: str | None = None
    functions: Annotated[list[str] | None, Parameter(negative=())] = None
    catalogue: Annotated[list[str] | None, Parameter(negative=())] = None
    allow_command: Annotated[bool, Parameter(negative=())] = False
    function_timeout: str = DEFAULT_TIMEOUT
    semver_gate: Literal["refuse", "warn"] = "refuse"
    packages: Path | None = None
    allow_packages: Annotated[bool, Parameter(negative=())] = False
    package_memory: str | None = None
    feature: Annotated[list[str] | None, Parameter(negative=())] = None

    def choices(self, *, show_traceback: bool = False) -> Choices:
        """Return the choices, with the functions loaded; raise an error if they are invalid."""
        chosen = self._chosen()
        for old in RENAMED.keys() & set(_names(self.capabilities or "")):
            warn(f"--capabilities: {old} is deprecated; the capability is now {RENAMED[old]}")
        seconds = read_seconds(self.function_timeout, "--function-timeout")
        calls = CallSettings(seconds, frozenset({"command"} if self.allow_command else ()))
        functions = self._functions(show_traceback) if "functions" in chosen else None
        several = _features(self.feature or ())["FunctionRevisions"]
        memory = read_memory_limit(self.package_memory)
        packages = PackageSettings(self.packages, self.allow_packages, several, memory)
        return Choices(chosen, functions, calls, self.semver_gate, packages)

    def on_a_cluster(self, *, show_traceback: bool = False) -> Choices:
        """Return the choices for replicas; raise an error without apis, which they need."""
        choices = self.choices(show_traceback=show_traceback)
        if _USUAL not in choices.capabilities:
            fact = "the capability apis is required on a cluster"
            raise Misused(fact, at="--capabilities", hint="add apis to --capabilities")
        return choices

    def _chosen(self) -> frozenset[str]:
        named = bool(self.functions or self.catalogue)
        text = self.capabilities
        if text is None:
            text = f"{_USUAL},functions" if named else _USUAL
        chosen = _read(text)
        if named and "functions" not in chosen:
            fact = "--functions and --catalogue need the capability functions"
            raise Misused(fact, at="--capabilities")
        if (self.packages or self.allow_packages) and "compositions" not in chosen:
            fact = "--packages and --allow-packages need the capability compositions"
            raise Misused(fact, at="--capabilities")
        return chosen

    def _functions(self, show_traceback: bool) -> Functions:
        from polyver.functions.loading import load_functions

        named, listed_in = self.functions or (), self.catalogue or ()
        return load_functions(named, listed_in, show_traceback=show_traceback)

    def arguments(self) -> Iterator[str]:
        """Yield the options as arguments for another command."""
        chosen = self._chosen()
        if chosen != {_USUAL}:
            yield from ("--capabilities", ",".join(each for each in CAPABILITIES if each in chosen))
        for option, values in (("--functions", self.functions), ("--catalogue", self.catalogue)):
            for value in values or ():
                yield from (option, value)
        if self.allow_command:
            yield "--allow-command"
        if self.function_timeout != DEFAULT_TIMEOUT:
            yield from ("--function-timeout", self.function_timeout)
        if self.semver_gate != "refuse":
            yield from ("--semver-gate", self.semver_gate)
        yield from self._package_arguments()
        for value in self.feature or ():
            yield from ("--feature", value)

    def _package_arguments(self) -> Iterator[str]:
        if self.packages:
            yield from ("--packages", str(self.packages))
        if self.allow_packages:
            yield "--allow-packages"
        if self.package_memory is not None:
            yield from ("--package-memory", self.package_memory)


def _names(text: str) -> list[str]:
    return [each for each in text.split(",") if each]


def _read(text: str) -> frozenset[str]:
    names = frozenset(RENAMED.get(each, each) for each in _names(text))
    if unknown := names - {*CAPABILITIES}:
        fact = f"{listed(sorted(unknown))} is not a capability"
        raise Misused(fact, at="--capabilities", hint=f"known: {listed(CAPABILITIES)}")
    for name in ("definitions", "compositions"):
        if name in names and "apis" not in names:
            fact = f"the capability {name} needs the capability apis"
            raise Misused(fact, at="--capabilities", hint=f"write apis,{name}")
    return names


def _features(texts: Iterable[str]) -> dict[str, bool]:
    """Return every feature with True or False; they are on by default."""
    found = dict.fromkeys(FEATURES, True)
    for text in texts:
        name, _, value = text.partition("=")
        if name not in found or value not in ("true", "false"):
            hint = f"write NAME=true or NAME=false; known: {listed(FEATURES)}"
            raise Misused(f"{text!r} is not a feature setting", at="--feature", hint=hint)
        found[name] = value == "true"
    return found
