"""The admission chain, which may change or refuse a write before it is stored.

The embedded server calls it in process; other API servers call it through a webhook.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

from polyver.kube.objects.kinds import ResourceKind

__all__ = ["Admission", "AdmissionChain", "AdmissionRequest", "User"]

PATIENCE = 10.0
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
    """A write that admission checks before it is stored."""

    operation: str
    """CREATE, UPDATE or DELETE."""
    kind: ResourceKind
    namespace: str
    name: str
    subresource: str
    object: dict[str, Any] | None
    """The object as it will be stored; mutating links change it in place."""
    old: dict[str, Any] | None
    user: User
    dry_run: bool
    applied: bool = False
    """True for server-side apply, which removes fields that the manager no longer applies."""
    warnings: list[str] = field(default_factory=list)
    patience: float = PATIENCE


class Admission(Protocol):
    """One link of the chain; refuses a write by raising an ApiError."""

    def handles(self, kind: ResourceKind, operation: str) -> bool: ...

    async def mutate(self, review: AdmissionRequest) -> None: ...

    async def validate(self, review: AdmissionRequest) -> None: ...


class AdmissionChain:
    """All links: first each one may change the object, then each one may refuse it."""

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
