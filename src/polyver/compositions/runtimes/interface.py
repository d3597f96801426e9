"""The interface between the controller of revisions and the runtimes that serve them.

A controller calls a runtime with the desired state as often as it likes. The runtime brings it
about in its own time, and reports the status.
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
"""The state of a revision, as conditions show it; the reference documentation explains each."""


@dataclass(frozen=True, slots=True)
class DesiredRevision:
    """A revision to serve."""

    name: str
    """Name of the FunctionRevision."""
    package: str
    """The reference, as in `spec.image`."""
    digest: str
    """Digest of the content, which the served content must have."""
    address: str = ""
    """Address of an external server, from the annotation `polyver.dev/endpoint`."""
    uid: str = ""
    """The uid of the FunctionRevision, which owns the objects that a runtime creates for it."""


@dataclass(frozen=True, slots=True)
class ServingStatus:
    """The state of a desired revision."""

    endpoint: str = ""
    """HOST:PORT at which the revision answers, or http://HOST:PORT without TLS; else empty."""
    reason: Reason = "Starting"
    message: str = ""

    @property
    def healthy(self) -> bool:
        """True if it can be called now."""
        return bool(self.endpoint)


class Runtime(Protocol):
    """Serves revisions, each at its own endpoint."""

    async def digest(self, package: str, *, address: str = "") -> str:
        """Return the digest of a package's content; raise PolyverError if it is unavailable.

        An external function's package is not read: its digest is that of its reference.
        """

    async def serve(self, wanted: DesiredRevision) -> ServingStatus:
        """Start serving a revision if needed, and return its current status without waiting.

        Later calls return the new status, and start nothing twice.
        """

    async def end(self, name: str) -> None:
        """Stop serving a revision; calls in flight may finish."""

    async def reach(self, name: str, endpoint: str) -> Endpoint:
        """Return the endpoint to call a revision at, from `status.endpoint`."""

    def observe(self, changed: Callable[[str], None]) -> None:
        """Register a callback that gets the name of each revision whose status changes."""

    def figures(self) -> Iterable[Figures]:
        """Return the metrics of each desired revision."""

    async def close(self) -> None:
        """Stop everything and release all resources."""
