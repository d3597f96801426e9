"""The interface by which a capability offers its lineages."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from polyver.core import Lineage, Policy, PolyverError, Selector
from polyver.kube.objects import Document


class Refusal(PolyverError):
    """polyver refuses an object that a user wrote, or one of its fields.

    `reason` is the reason of the condition that reports this error.
    """

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
    """A lineage that was read from manifests, with the policies for resolving its selectors."""

    lineage: Lineage
    policies: tuple[Policy, ...]
    """The resolution policies from which a user can choose; the first one is the default."""
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
