"""What capabilities bring to a control plane, in one shape for all and for all places.

The embedded server, a replica on a cluster and what is installed there read the same of it. All
of it is loaded when it is wanted: kinds take longer to load than everything around them.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from polyver.admission.chain import Admission
    from polyver.admission.configurations import Wanted
    from polyver.apis import Kind
    from polyver.capabilities.definitions.publishing import GatePolicy
    from polyver.capabilities.functions.registering import Functions
    from polyver.client import Client
    from polyver.engine import Controller
    from polyver.engine.calls import Lend
    from polyver.engine.runtimes import Runtime
    from polyver.web.sources import Source

__all__ = ["CallSettings", "Choices", "Contribution", "PackageSettings", "Right"]

READ = ("get", "list", "watch")


@dataclass(frozen=True, slots=True)
class Right:
    """To do something with a kind of objects, or with one of that name."""

    group: str
    resource: str
    verbs: tuple[str, ...]
    name: str = ""

    @property
    def rule(self) -> dict[str, Any]:
        """The same as roles have it."""
        names = {"resourceNames": [self.name]} if self.name else {}
        groups, resources = [self.group], [self.resource]
        return {"apiGroups": groups, "resources": resources, **names, "verbs": [*self.verbs]}


@dataclass(frozen=True, slots=True, kw_only=True)
class Contribution:
    """What one capability brings to a control plane."""

    kinds: tuple[Kind, ...]
    """Its kinds, which are served as those of users are."""
    links: Callable[[Client], list[Admission]]
    """Those who have a say in writes."""
    wanted: tuple[Wanted, ...]
    """What API servers ask these about, beside what goes for every kind in Python."""
    controllers: Callable[[Client], list[Controller[Any]]]
    """Those who act."""
    rights: tuple[Right, ...]
    """What these need of a cluster."""
    rights_inside: tuple[Right, ...] = ()
    """What they need in the namespace of the installation."""
    namespaces: tuple[str, ...] = ()
    """Those that have to be there."""
    documents: Mapping[str, bytes] = field(default_factory=dict)
    """What can be read of it, in JSON, by the paths of the embedded server and of replicas."""
    source: Callable[[], Source] | None = None
    """What it shows on the page, made when somebody looks."""


@dataclass(frozen=True, slots=True)
class CallSettings:
    """What calls of functions may do and take."""

    seconds: float = 3600.0
    allows: frozenset[str] = frozenset()
    """`command`, if local processes may be run."""
    in_threads: bool = False
    """Whether calls are made in threads of this process: only for tests that define functions,
    which no other process can load."""


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


@dataclass(frozen=True, slots=True)
class Choices:
    """Which capabilities a control plane has, and what it was told about them."""

    capabilities: frozenset[str] = frozenset({"apis"})
    functions: Functions | None = None
    """What blueprints may call; without, what comes with polyver."""
    calls: CallSettings = field(default_factory=CallSettings)
    gate: GatePolicy = "refuse"
    """What is done about versions of definitions that break users of their neighbours."""
    packages: PackageSettings = field(default_factory=PackageSettings)

    def contributions(
        self, *, folder: Path | None = None, namespace: str = "", lend: Lend | None = None
    ) -> tuple[Contribution, ...]:
        """What each of the capabilities brings; conversions are there beside them.

        Where they run they have a folder, or else a namespace of a cluster. `lend` gives the
        worker process of a call its credentials; without it nothing can be called.
        """
        found = []
        if "definitions" in self.capabilities:
            from polyver.cli._definitions import definitions

            found.append(definitions(gate=self.gate))
        if "functions" in self.capabilities:
            from polyver.cli._actions import actions
            from polyver.cli._functions import built_in_functions

            functions = self.functions or built_in_functions()
            found.append(actions(functions, calls=self.calls, lend=lend))
        if "revisions" in self.capabilities:
            from polyver.cli._packages import packages

            found.append(packages(self.packages, folder=folder, namespace=namespace))
        return tuple(found)
