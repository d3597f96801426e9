"""The settings of the capability definitions, and their command-line options."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from cyclopts import Parameter

if TYPE_CHECKING:
    from polyver.definitions.publishing import GatePolicy

__all__ = ["DefinitionOptions", "DefinitionSettings"]


@dataclass(frozen=True, slots=True)
class DefinitionSettings:
    """Settings of the capability definitions."""

    gate: GatePolicy = "refuse"
    """The semver gate: `refuse` or `warn` about a version that breaks users without a new major
    version.
    """


@Parameter(name="*")
@dataclass(frozen=True, kw_only=True)
class DefinitionOptions:
    """The options for definitions.

    Attributes
    ----------
    semver_gate
        Whether to refuse, or only to warn about, a new version of a definition that breaks its
        users without being a new major version.
    """

    semver_gate: Literal["refuse", "warn"] = "refuse"

    given = ""

    def settings(self, *, enabled: bool, show_traceback: bool) -> DefinitionSettings:
        """Return the settings."""
        del enabled, show_traceback
        return DefinitionSettings(self.semver_gate)

    def arguments(self) -> Iterator[str]:
        """Yield the options as arguments for another command."""
        if self.semver_gate != "refuse":
            yield from ("--semver-gate", self.semver_gate)
