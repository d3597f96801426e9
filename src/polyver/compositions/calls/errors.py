"""Errors of calls: a kind of failure for programs, a sentence for people.

Errors about messages have the path of the problem.
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
    """Kinds of failures, as metrics and conditions name them."""

    UNREACHABLE = "Unreachable"
    """No server answers at the address, or the connection broke."""
    DEADLINE = "DeadlineExceeded"
    """There was no response in time."""
    BUSY = "Busy"
    """Too many calls of this revision wait already."""
    TOO_LARGE = "TooLarge"
    """A request or a response is larger than allowed."""
    REFUSED = "Refused"
    """One side does not trust the other's certificate."""
    BROKEN = "BrokenReply"
    """The response violates the protocol."""
    UNSENDABLE = "Unsendable"
    """The request holds a value that the protocol cannot represent."""
    FAILED = "Failed"
    """The function responded with an error."""

    @property
    def passes(self) -> bool:
        """True if the same call may succeed later without any change."""
        return self in (CallFailure.UNREACHABLE, CallFailure.DEADLINE, CallFailure.BUSY)


class FunctionFailed(PolyverError):
    """A failed call of a function."""

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
        """True if the function may have received the request, and have failed because of it."""


class MessageError(Exception):
    """A problem in a message, and its path: field names, and keys or indices in brackets."""

    def __init__(self, problem: str, *way: str) -> None:
        super().__init__(problem)
        self.problem = problem
        self.way = list(way)

    def inside(self, *steps: str) -> MessageError:
        """Return the error with steps added in front of its path."""
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
    """Bytes that are not a valid message."""


class UnwritableMessage(MessageError):
    """A value that the protocol cannot represent exactly."""
