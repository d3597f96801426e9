"""Who has a say in a write before it is stored: one chain, whoever asks it.

The embedded server asks it in process; other API servers ask it through a webhook.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

from polyver.kube.objects.kinds import ResourceKind

__all__ = ["Admission", "AdmissionChain", "AdmissionRequest", "User"]

PATIENCE = 10.0
"""How many seconds one call of user code may take, if nobody says."""


@dataclass(frozen=True, slots=True)
class User:
    """Who asks."""

    name: str
    groups: tuple[str, ...] = ()
    uid: str = ""
    extra: Mapping[str, tuple[str, ...]] = field(default_factory=dict)


@dataclass(slots=True)
class AdmissionRequest:
    """A write that is about to happen."""

    operation: str
    """CREATE, UPDATE or DELETE."""
    kind: ResourceKind
    namespace: str
    name: str
    subresource: str
    object: dict[str, Any] | None
    """As it will be stored; whoever mutates changes it in place."""
    old: dict[str, Any] | None
    user: User
    dry_run: bool
    applied: bool = False
    """By server-side apply, which takes out on purpose what somebody applies no longer."""
    warnings: list[str] = field(default_factory=list)
    patience: float = PATIENCE


class Admission(Protocol):
    """One link of the chain; refuses by raising an ApiError."""

    def handles(self, kind: ResourceKind, operation: str) -> bool: ...

    async def mutate(self, review: AdmissionRequest) -> None: ...

    async def validate(self, review: AdmissionRequest) -> None: ...


class AdmissionChain:
    """All links: first every one may change the object, then every one may refuse it."""

    def __init__(self, links: Sequence[Admission] = ()) -> None:
        self._links = list(links)

    def add(self, link: Admission) -> None:
        self._links.append(link)

    def handles(self, kind: ResourceKind, operation: str) -> bool:
        """Whether anyone wants to be asked."""
        return any(link.handles(kind, operation) for link in self._links)

    async def mutate(self, review: AdmissionRequest) -> None:
        for link in self._links:
            if link.handles(review.kind, review.operation):
                await link.mutate(review)

    async def validate(self, review: AdmissionRequest) -> None:
        for link in self._links:
            if link.handles(review.kind, review.operation):
                await link.validate(review)
