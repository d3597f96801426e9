"""The interface between the controller of FunctionRevisions and the runtimes that serve them.

In each reconcile, the controller passes the desired state to the runtime, and the runtime reports
the status. In between, the runtime works in the background until the actual state is the desired
state.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Literal, Protocol

from polyver.compositions.calls import Endpoint
from polyver.compositions.names import ENDPOINT
from polyver.compositions.runtimes.metrics import Figures

__all__ = ["ENDPOINT", "DesiredRevision", "FunctionReach", "Reason", "Runtime", "ServingStatus"]

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
"""The reasons that conditions show for the state of a revision.

The reference page about packages explains each of them.
"""


@dataclass(frozen=True, slots=True)
class DesiredRevision:
    """A function revision that a runtime has to serve."""

    name: str
    """Name of the FunctionRevision."""
    package: str
    """The package reference, from `spec.image`."""
    digest: str
    """Digest of the package content. The runtime must serve exactly this content."""
    address: str = ""
    """Address of an external server, from the annotation `polyver.dev/endpoint`."""
    uid: str = ""
    """The uid of the FunctionRevision. It owns the objects that a runtime creates."""


@dataclass(frozen=True, slots=True)
class ServingStatus:
    """The status of a function revision, as its runtime reports it."""

    endpoint: str = ""
    """The address at which the revision answers: HOST:PORT or, without TLS, http://HOST:PORT.

    Empty if it does not answer.
    """
    reason: Reason = "Starting"
    message: str = ""

    @property
    def healthy(self) -> bool:
        """True if polyver can call the revision now."""
        return bool(self.endpoint)


class FunctionReach(Protocol):
    """Knows how to call the function revisions that are served."""

    async def reach(self, name: str, endpoint: str) -> Endpoint:
        """Build the endpoint for calls of a FunctionRevision from its `status.endpoint`."""


class Runtime(FunctionReach, Protocol):
    """Serves function revisions, each at its own endpoint."""

    async def digest(self, package: str, *, address: str = "") -> str:
        """Return the digest of a package's content. Raise PolyverError if it is unavailable.

        If `address` is set, an external server serves the function. Then the package is not read,
        and the digest is derived from the package reference.
        """

    async def serve(self, wanted: DesiredRevision) -> ServingStatus:
        """Start to serve a revision, unless it is served already. Return its status immediately.

        The revision may still be starting at that time. Call this function again to get a later
        status.
        """

    async def end(self, name: str) -> None:
        """Stop serving a revision, but let calls in progress finish."""

    def observe(self, changed: Callable[[str], None]) -> None:
        """Call `changed` with the name of a revision each time its status changes."""

    def figures(self) -> Iterable[Figures]:
        """Return the metrics of each revision that the runtime has to serve."""

    async def close(self) -> None:
        """Stop the runtime, and release its resources."""
