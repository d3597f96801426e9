"""The capabilities that a control plane has, with their settings."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from polyver.compositions.settings import PackageSettings
from polyver.functions.settings import CallSettings

if TYPE_CHECKING:
    from polyver.capability.contributions import Contribution
    from polyver.definitions.publishing import GatePolicy
    from polyver.functions.controllers.workers import Lend
    from polyver.functions.registering import Functions

__all__ = ["CAPABILITIES", "RENAMED", "Choices"]

CAPABILITIES = ("apis", "functions", "definitions", "compositions")
RENAMED = {"revisions": "compositions"}
"""Earlier names of capabilities, which are still accepted with a warning."""


@dataclass(frozen=True, slots=True)
class Choices:
    """The capabilities of a control plane, and their settings."""

    capabilities: frozenset[str] = frozenset({"apis"})
    functions: Functions | None = None
    """The functions that blueprints may call; by default those that come with polyver."""
    calls: CallSettings = field(default_factory=CallSettings)
    gate: GatePolicy = "refuse"
    """The policy for versions of definitions that break users of neighbouring versions."""
    packages: PackageSettings = field(default_factory=PackageSettings)

    def contributions(
        self, *, folder: Path | None = None, namespace: str = "", lend: Lend | None = None
    ) -> tuple[Contribution, ...]:
        """Return the contributions of the capabilities, except apis.

        `folder` is for the embedded server, `namespace` for a cluster. `lend` gives the worker
        process of a call its credentials; without it nothing can be called.
        """
        found = []
        if "definitions" in self.capabilities:
            from polyver.definitions.capability import definitions

            found.append(definitions(gate=self.gate))
        if "functions" in self.capabilities:
            from polyver.functions.capability import actions
            from polyver.functions.loading import built_in_functions

            functions = self.functions or built_in_functions()
            found.append(actions(functions, calls=self.calls, lend=lend))
        if "compositions" in self.capabilities:
            from polyver.compositions.capability import packages

            found.append(packages(self.packages, folder=folder, namespace=namespace))
        return tuple(found)
