"""The capabilities that a control plane has, with their settings."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from polyver.cli._call_settings import CallSettings
from polyver.cli._package_settings import PackageSettings

if TYPE_CHECKING:
    from polyver.capabilities.definitions.publishing import GatePolicy
    from polyver.capabilities.functions.registering import Functions
    from polyver.cli._contributions import Contribution
    from polyver.engine.calls import Lend

__all__ = ["Choices"]


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
