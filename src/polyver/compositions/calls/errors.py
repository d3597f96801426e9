"""The errors of function calls.

Each error has a kind of failure for programs, and a message for people.

Errors about the content of a message have the path of the problem.
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
    """The kinds of failures of a call. Metrics and conditions use these names."""

    UNREACHABLE = "Unreachable"
    """No server answers at the address, or the connection was lost."""
    DEADLINE = "DeadlineExceeded"
    """There was no response in time."""
    BUSY = "Busy"
    """Too many calls of this function revision are waiting already."""
    TOO_LARGE = "TooLarge"
    """A request or a response is larger than allowed."""
    REFUSED = "Refused"
    """polyver does not trust the function's certificate, or the function does not trust polyver's.
    """
    BROKEN = "BrokenReply"
    """The response violates the protocol."""
    UNSENDABLE = "Unsendable"
    """The request contains a value that the protocol cannot represent."""
    FAILED = "Failed"
    """The function responded with an error."""

    @property
    def passes(self) -> bool:
        """True if a call with this failure may succeed later although nothing is changed."""
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
        """True if the function may have received the request. The request itself may then be the
        cause of the error.
        """


class MessageError(Exception):
    """A problem in a message, and its path: field names, and keys or indices in brackets."""

    def __init__(self, problem: str, *way: str) -> None:
        super().__init__(problem)
        self.problem = problem
        self.way = list(way)

    def inside(self, *steps: str) -> MessageError:
        """Put path segments in front of the path of this error. Return the error."""
        self.way[:0] = steps
        return self

    @property
    def at(self) -> str:
        """Return the path as a string.

        >>> MessageError("odd", "spec", "[a.b]", "[0]", "name").at
        'spec[a.b][0].name'
        """
        steps = (step if step.startswith("[") else f".{step}" for step in self.way)
        return "".join(steps).removeprefix(".")


class UnreadableMessage(MessageError):
    """The bytes are not a valid message."""


class UnwritableMessage(MessageError):
    """The message contains a value that the protocol cannot represent exactly."""
