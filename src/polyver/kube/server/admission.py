"""The admission chain: checks and changes of a write, before the object is stored.

The embedded API server calls the chain directly. Other API servers call it through a webhook.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

from polyver.kube.objects.kinds import ResourceKind

__all__ = ["Admission", "AdmissionChain", "AdmissionRequest", "User"]

TIMEOUT = 10.0
"""The default timeout in seconds for one call of user code."""


@dataclass(frozen=True, slots=True)
class User:
    """The user who sent a request."""

    name: str
    groups: tuple[str, ...] = ()
    uid: str = ""
    extra: Mapping[str, tuple[str, ...]] = field(default_factory=dict)


@dataclass(slots=True)
class AdmissionRequest:
    """A write request, which each link of the admission chain may change and check."""

    operation: str
    """CREATE, UPDATE or DELETE."""
    kind: ResourceKind
    namespace: str
    name: str
    subresource: str
    object: dict[str, Any] | None
    """The new object; None for a deletion. `mutate` may change it in place."""
    old: dict[str, Any] | None
    user: User
    dry_run: bool
    applied: bool = False
    """True if the write is a server-side apply.

    If True, the write may also remove fields: those that its field manager applied before and does
    not apply now.
    """
    requested: str = ""
    """The version in which the client sent the write, if it is known.

    It differs from the version of `kind` if the API server converted the object for the review.
    """
    warnings: list[str] = field(default_factory=list)
    timeout: float = TIMEOUT


class Admission(Protocol):
    """One link of the admission chain. To refuse a write, a link raises an ApiError."""

    def handles(self, kind: ResourceKind, operation: str) -> bool: ...

    async def mutate(self, review: AdmissionRequest) -> None: ...

    async def validate(self, review: AdmissionRequest) -> None: ...


class AdmissionChain:
    """All links of the admission chain.

    For a write, `mutate` of every link is called first, and then `validate` of every link.
    """

    def __init__(self, links: Sequence[Admission] = ()) -> None:
        self._links = list(links)

    def add(self, link: Admission) -> None:
        self._links.append(link)

    def handles(self, kind: ResourceKind, operation: str) -> bool:
        """Report whether any link handles this kind and operation."""
        return any(link.handles(kind, operation) for link in self._links)

    async def mutate(self, review: AdmissionRequest) -> None:
        for link in self._links:
            if link.handles(review.kind, review.operation):
                await link.mutate(review)

    async def validate(self, review: AdmissionRequest) -> None:
        for link in self._links:
            if link.handles(review.kind, review.operation):
                await link.validate(review)
