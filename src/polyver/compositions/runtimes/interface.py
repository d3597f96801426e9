"""The port between the controller of revisions and whatever serves them.

A controller says what is wanted, as often as it likes; a runtime brings it about in its own time
and tells what has become of it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Literal, Protocol

from polyver.compositions.calls import Endpoint
from polyver.compositions.names import ENDPOINT
from polyver.compositions.runtimes.metrics import Figures

__all__ = ["ENDPOINT", "DesiredRevision", "Reason", "Runtime", "ServingStatus"]

Reason = Literal[
    "Building",
    "BuildFailed",
    "Changed",
    "Crashed",
    "Ending",
    "Failed",
    "InvalidEndpoint",
    "InvalidName",
    "NotAllowed",
    "NotAnswering",
    "NotApplied",
    "NotOurs",
    "NotServed",
    "NotStarting",
    "NotUsable",
    "Serving",
    "Starting",
]
"""One word for what has become of a revision, as conditions have it; the reference explains it."""


@dataclass(frozen=True, slots=True)
class DesiredRevision:
    """A revision that is to be served."""

    name: str
    """Of the FunctionRevision."""
    package: str
    """The reference, as `spec.image` has it."""
    digest: str
    """Of the content: what is served has to have it."""
    address: str = ""
    """Where somebody else serves it: what its annotation ENDPOINT says."""
    uid: str = ""
    """Of the FunctionRevision, which owns what is made for it on a cluster."""


@dataclass(frozen=True, slots=True)
class ServingStatus:
    """What has become of a revision that is wanted."""

    endpoint: str = ""
    """HOST:PORT, as soon as it answers there, and as long as it does; http://HOST:PORT without
    TLS."""
    reason: Reason = "Starting"
    message: str = ""

    @property
    def healthy(self) -> bool:
        """Whether it can be called now."""
        return bool(self.endpoint)


class Runtime(Protocol):
    """Whatever serves revisions, each at an endpoint of its own."""

    async def digest(self, package: str, *, address: str = "") -> str:
        """The digest of a package's content; a PolyverError if it cannot be had.

        What somebody else serves is not looked into: its digest is that of its reference.
        """

    async def serve(self, wanted: DesiredRevision) -> ServingStatus:
        """Have a revision served, and tell what has become of it so far: it does not wait.

        Whoever asks again gets news, and nothing is done twice.
        """

    async def end(self, name: str) -> None:
        """Serve a revision no longer; calls under way may finish."""

    async def reach(self, name: str, endpoint: str) -> Endpoint:
        """How a revision is called at the endpoint that its status tells: whom to believe there."""

    def observe(self, changed: Callable[[str], None]) -> None:
        """Have somebody called with the name of each revision about which there is news."""

    def figures(self) -> Iterable[Figures]:
        """How each revision that is wanted does."""

    async def close(self) -> None:
        """Let go of everything, in an orderly way."""
