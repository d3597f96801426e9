"""Count the writes that API servers send to polyver for review, by version and user."""

from __future__ import annotations

from collections.abc import Callable

from polyver.kube.objects.kinds import ResourceKind
from polyver.kube.server.admission import AdmissionRequest
from polyver.kube.server.request_counts import RequestCounts

__all__ = ["CountedWrites"]


class CountedWrites:
    """A link of the admission chain that counts writes, and refuses none.

    An API server sends each write to at most one validating webhook of polyver, so only validation
    counts. The review does not contain the user agent of the client.
    """

    def __init__(self, counts: RequestCounts, known: Callable[[str], bool]) -> None:
        """Create the link. `known` reports whether polyver reviews the objects of a CRD."""
        self._counts = counts
        self._known = known

    def handles(self, kind: ResourceKind, operation: str) -> bool:
        return kind.custom and operation in ("CREATE", "UPDATE") and self._known(kind.resource)

    async def mutate(self, review: AdmissionRequest) -> None:
        pass

    async def validate(self, review: AdmissionRequest) -> None:
        version = review.requested or review.kind.version
        self._counts.count(review.kind.resource, version, review.user.name)
