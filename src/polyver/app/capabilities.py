"""The capabilities of polyver, and those that a control plane has with their settings.

This is the only list of capabilities: a new one is added by its folder and one entry here.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from polyver.apis.capability import CAPABILITY as APIS
from polyver.capability.capability import Surroundings
from polyver.compositions.capability import CAPABILITY as COMPOSITIONS
from polyver.core import PolyverError, listed
from polyver.definitions.capability import CAPABILITY as DEFINITIONS
from polyver.functions.capability import CAPABILITY as FUNCTIONS

if TYPE_CHECKING:
    from polyver.capability.contributions import Contribution

__all__ = ["BASE", "CAPABILITIES", "NAMES", "Choices", "UnknownCapability", "current_name"]

CAPABILITIES = (APIS, FUNCTIONS, DEFINITIONS, COMPOSITIONS)
NAMES = tuple(each.name for each in CAPABILITIES)
BASE = APIS.name
"""The capability that every control plane has by default; replicas on a cluster need it."""
_EARLIER = {each.earlier_name: each.name for each in CAPABILITIES if each.earlier_name}
_NOTHING = Surroundings()


class UnknownCapability(PolyverError):
    """A name that is not the name of a capability."""

    def __init__(self, name: str) -> None:
        super().__init__(f"{name!r} is not a capability", hint=f"known: {listed(NAMES)}")


def current_name(name: str) -> str:
    """Return the name of a capability, given this name or an earlier one."""
    found = _EARLIER.get(name, name)
    if found not in NAMES:
        raise UnknownCapability(name)
    return found


@dataclass(frozen=True, slots=True)
class Choices:
    """The names of the capabilities of a control plane, and their settings."""

    capabilities: frozenset[str] = frozenset({BASE})
    settings: Mapping[str, Any] = field(default_factory=dict)
    """The settings of capabilities by their names; the defaults for all others."""

    def contributions(self, around: Surroundings = _NOTHING) -> tuple[Contribution, ...]:
        """Return the contributions of the capabilities to a control plane."""
        return tuple(self._contributions(around))

    def _contributions(self, around: Surroundings) -> Iterator[Contribution]:
        for each in CAPABILITIES:
            if each.name in self.capabilities:
                yield each.contribution(self.settings.get(each.name), around)
