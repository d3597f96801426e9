"""The settings of the capability definitions, and their command-line options."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from cyclopts import Parameter

if TYPE_CHECKING:
    from polyver.definitions.publishing import GatePolicy

__all__ = ["DefinitionOptions", "DefinitionPlanOptions", "DefinitionSettings"]


@dataclass(frozen=True, slots=True)
class DefinitionSettings:
    """Settings of the capability definitions."""

    gate: GatePolicy = "refuse"
    """The reaction to an incompatible version without a new major version: `refuse` or `warn`."""


@Parameter(name="*")
@dataclass(frozen=True, kw_only=True)
class DefinitionOptions:
    """The options for definitions.

    Attributes
    ----------
    semver_gate
        An incompatible change of a definition's parameters needs a new major version; in 0.x, it
        needs a new minor version. This option states what polyver does with a new version that
        breaks this rule: refuse it, or accept it and warn.
    """

    semver_gate: Literal["refuse", "warn"] = "refuse"

    given = ""

    def settings(self, *, enabled: bool, show_traceback: bool) -> DefinitionSettings:
        """Return the settings that these options express."""
        del enabled, show_traceback
        return DefinitionSettings(self.semver_gate)

    def arguments(self) -> Iterator[str]:
        """Yield the options as arguments for another command: `--semver-gate`, `warn`.

        Options with their default value are left out.
        """
        if self.semver_gate != "refuse":
            yield from ("--semver-gate", self.semver_gate)


@Parameter(name="*")
@dataclass(frozen=True, kw_only=True)
class DefinitionPlanOptions:
    """The options of `polyver plan` for definitions.

    Attributes
    ----------
    semver_gate
        An incompatible change of a definition's parameters needs a new major version; in 0.x, it
        needs a new minor version. Set this option to the value of the control plane's
        --semver-gate, which decides what the control plane does with a new version that breaks this
        rule: refuse it, or accept it and warn.
    """

    semver_gate: Literal["refuse", "warn"] = "refuse"
