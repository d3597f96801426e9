"""Who has a say in a write before it is stored: one chain, in process."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Protocol

from polyver.objects.kinds import Kind
from polyver.server._http import User
from polyver.server.rules import Object

__all__ = ["Admission", "Chain", "Review"]


@dataclass(slots=True)
class Review:
    """A write that is about to happen."""

    operation: str
    """CREATE, UPDATE or DELETE."""
    kind: Kind
    namespace: str
    name: str
    subresource: str
    object: Object | None
    """As it will be stored; whoever mutates changes it in place."""
    old: Object | None
    user: User
    dry_run: bool
    applied: bool = False
    """By server-side apply, which takes out on purpose what somebody applies no longer."""
    warnings: list[str] = field(default_factory=list)


class Admission(Protocol):
    """One link of the chain; refuses by raising an ApiError."""

    def handles(self, kind: Kind, operation: str) -> bool: ...

    async def mutate(self, review: Review) -> None: ...

    async def validate(self, review: Review) -> None: ...


class Chain:
    """All links: first every one may change the object, then every one may refuse it."""

    def __init__(self, links: Sequence[Admission] = ()) -> None:
        self._links = list(links)

    def add(self, link: Admission) -> None:
        self._links.append(link)

    async def mutate(self, review: Review) -> None:
        for link in self._links:
            if link.handles(review.kind, review.operation):
                await link.mutate(review)

    async def validate(self, review: Review) -> None:
        for link in self._links:
            if link.handles(review.kind, review.operation):
                await link.validate(review)
