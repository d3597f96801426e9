"""What every capability offers to whoever asks about its lineages."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from polyver.core import Lineage, Policy, PolyverError, Selector
from polyver.kube.objects import Document


class Refusal(PolyverError):
    """Why something that somebody wrote is not done; `reason` is one word for conditions."""

    def __init__(self, reason: str, fact: str, *, at: str = "", hint: str = "") -> None:
        super().__init__(fact, at=at, hint=hint)
        self.reason = reason


def condition_reason(error: PolyverError, *, default: str) -> str:
    """Return the reason of a condition that reports an error.

    Errors name their reason themselves: it is a part of the API, and the name of a class is not.
    """
    return str(getattr(error, "reason", "") or default)


@dataclass(frozen=True, slots=True)
class FoundLineage:
    """A lineage that was found in manifests, the policies that fit it, and its full name."""

    lineage: Lineage
    policies: tuple[Policy, ...]
    """The first is how to choose when nobody says."""
    path: str
    """What tells it from others of its name: `ComponentDefinition/vela-system/webservice`."""


@dataclass(frozen=True, slots=True)
class LineageReader:
    """How a capability's manifests and selectors are read."""

    policies: tuple[Policy, ...]
    lineages: Callable[[Sequence[Document]], Iterator[FoundLineage]]
    """Reads what it knows in manifests and passes over the rest."""
    selector: Callable[[str, Lineage], Selector]
    """Reads what a user wrote behind the `@` for one of its lineages."""
