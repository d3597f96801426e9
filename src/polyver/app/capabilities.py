"""The list of all capabilities of polyver, and the choice of capabilities for one control plane.

To add a capability, add its folder and one entry in this list. There is no other list.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from polyver.apis.capability import CAPABILITY as APIS
from polyver.capability.capability import Surroundings
from polyver.compositions.capability import CAPABILITY as COMPOSITIONS
from polyver.core import PolyverError, listed
from polyver.definitions.capability import CAPABILITY as DEFINITIONS
from polyver.functions.capability import CAPABILITY as FUNCTIONS
from polyver.rollouts.capability import CAPABILITY as ROLLOUTS

if TYPE_CHECKING:
    from polyver.capability.contributions import Contribution
    from polyver.controllers.egress import AllowedHttp

__all__ = ["BASE", "CAPABILITIES", "NAMES", "Choices", "UnknownCapability", "current_name"]

CAPABILITIES = (APIS, FUNCTIONS, DEFINITIONS, COMPOSITIONS, ROLLOUTS)
NAMES = tuple(each.name for each in CAPABILITIES)
BASE = APIS.name
"""The capability that every control plane has by default. `polyver run` requires it."""
_EARLIER = {each.earlier_name: each.name for each in CAPABILITIES if each.earlier_name}
_NOTHING = Surroundings()


class UnknownCapability(PolyverError):
    """A user gave a name that is not the name of a capability."""

    def __init__(self, name: str) -> None:
        super().__init__(f"{name!r} is not a capability", hint=f"known: {listed(NAMES)}")


def current_name(name: str) -> str:
    """Return the current name of a capability; `name` may be a name that it had earlier."""
    found = _EARLIER.get(name, name)
    if found not in NAMES:
        raise UnknownCapability(name)
    return found


@dataclass(frozen=True, slots=True)
class Choices:
    """The names of the capabilities that are enabled in a control plane, and their settings."""

    capabilities: frozenset[str] = frozenset({BASE})
    settings: Mapping[str, Any] = field(default_factory=dict)
    """Settings by the name of the capability. A capability without an entry uses its defaults."""
    http: AllowedHttp | None = None
    """The servers to which polyver may send requests on behalf of users; None if there are none."""

    def contributions(self, around: Surroundings = _NOTHING) -> tuple[Contribution, ...]:
        """Return what each enabled capability adds to a control plane, such as its controllers."""
        found: list[Contribution] = []
        around = replace(around, http=self.http, every=lambda: found)
        for each in CAPABILITIES:
            if each.name in self.capabilities or each.joins(found):
                settings = self.settings.get(each.name)
                found.append(each.contribution(settings, replace(around, others=tuple(found))))
        return tuple(found)
