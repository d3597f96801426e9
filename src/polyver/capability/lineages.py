"""The interface by which a capability offers its lineages."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from polyver.core import Lineage, Policy, PolyverError, Selector
from polyver.kube.objects import Document


class Refusal(PolyverError):
    """An error that refuses an object or a field of a user; `reason` is a condition's reason."""

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
    """A lineage from manifests, the policies for it, and its full name."""

    lineage: Lineage
    policies: tuple[Policy, ...]
    """The policies; the first one is the default."""
    path: str
    """The unique name of the lineage: `ComponentDefinition/vela-system/webservice`."""


@dataclass(frozen=True, slots=True)
class LineageReader:
    """Reads a capability's lineages from manifests, and its selectors."""

    policies: tuple[Policy, ...]
    lineages: Callable[[Sequence[Document]], Iterator[FoundLineage]]
    """Reads the lineages in manifests and ignores other objects."""
    selector: Callable[[str, Lineage], Selector]
    """Reads the selector after the `@` for one of its lineages."""
