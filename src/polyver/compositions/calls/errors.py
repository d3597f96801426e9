"""The errors of function calls.

Each error has a kind of failure for programs, and a message for people. An error about the content
of a message also has the path of the problem.
"""

from __future__ import annotations

from enum import StrEnum

from polyver.core import PolyverError

__all__ = [
    "CallFailure",
    "FunctionFailed",
    "MessageError",
    "UnreadableMessage",
    "UnwritableMessage",
]


class CallFailure(StrEnum):
    """The kinds of failures of a call. Metrics and conditions show these names."""

    UNREACHABLE = "Unreachable"
    """No server answers at the address, or the connection was lost."""
    DEADLINE = "DeadlineExceeded"
    """No response arrived in time."""
    BUSY = "Busy"
    """Too many other calls of this function revision wait for a concurrency slot."""
    TOO_LARGE = "TooLarge"
    """The request or the response is larger than allowed."""
    REFUSED = "Refused"
    """The TLS handshake failed, for example because a certificate is not trusted."""
    BROKEN = "BrokenReply"
    """The response violates the protocol."""
    UNSENDABLE = "Unsendable"
    """The request contains a value that the protocol cannot represent."""
    FAILED = "Failed"
    """The function responded with an error."""

    @property
    def passes(self) -> bool:
        """True if a call with this failure may succeed later although nobody changes anything."""
        return self in (CallFailure.UNREACHABLE, CallFailure.DEADLINE, CallFailure.BUSY)


class FunctionFailed(PolyverError):
    """A call of a function failed."""

    def __init__(
        self,
        failure: CallFailure,
        fact: str,
        *,
        revision: str,
        address: str = "",
        hint: str = "",
        sent: bool = False,
    ) -> None:
        super().__init__(f"{revision} {fact}", at=address, hint=hint)
        self.failure = failure
        self.revision = revision
        self.address = address
        self.sent = sent
        """True if the function may have received the request.

        The request itself may then have caused the error.
        """


class MessageError(Exception):
    """A problem in a message. Its path has field names, and keys or indexes in brackets."""

    def __init__(self, problem: str, *way: str) -> None:
        super().__init__(problem)
        self.problem = problem
        self.way = list(way)

    def inside(self, *steps: str) -> MessageError:
        """Add path segments at the beginning of this error's path, and return the error."""
        self.way[:0] = steps
        return self

    @property
    def at(self) -> str:
        """The path as a string.

        >>> MessageError("odd", "spec", "[a.b]", "[0]", "name").at
        'spec[a.b][0].name'
        """
        steps = (step if step.startswith("[") else f".{step}" for step in self.way)
        return "".join(steps).removeprefix(".")


class UnreadableMessage(MessageError):
    """The bytes are not a valid protobuf message."""


class UnwritableMessage(MessageError):
    """The message contains a value that the protocol cannot represent exactly."""
