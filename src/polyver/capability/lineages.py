"""The interface by which a capability offers its lineages."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from polyver.core import Lineage, Policy, PolyverError, Selector
from polyver.kube.objects import Document


class Refusal(PolyverError):
    """An error that refuses an object or a field of a user; `reason` is for conditions."""

    def __init__(self, reason: str, fact: str, *, at: str = "", hint: str = "") -> None:
        super().__init__(fact, at=at, hint=hint)
        self.reason = reason


def condition_reason(error: PolyverError, *, default: str) -> str:
    """Return the reason for a condition that reports an error.

    An error states its reason in an attribute. The name of its class is not used, because reasons
    are a part of the API and class names are not.
    """
    return str(getattr(error, "reason", "") or default)


@dataclass(frozen=True, slots=True)
class FoundLineage:
    """A lineage from manifests, the policies for it, and its full name."""

    lineage: Lineage
    policies: tuple[Policy, ...]
    """The policies that users can choose; the first policy is the default."""
    path: str
    """The unique name of the lineage: `ComponentDefinition/vela-system/webservice`."""


@dataclass(frozen=True, slots=True)
class LineageReader:
    """Reads the lineages of a capability from manifests, and selectors from strings."""

    policies: tuple[Policy, ...]
    lineages: Callable[[Sequence[Document]], Iterator[FoundLineage]]
    """Reads the lineages in manifests and ignores other objects."""
    selector: Callable[[str, Lineage], Selector]
    """Parses a selector for a lineage, such as the part after the `@` in NAME@VERSION."""
