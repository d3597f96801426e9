"""Why a call of a function came to nothing: a kind for programs, a sentence for people."""

from __future__ import annotations

from enum import StrEnum

from polyver.core import PolyverError

__all__ = ["CallFailure", "FunctionFailed"]


class CallFailure(StrEnum):
    """What went wrong, as metrics and conditions name it."""

    UNREACHABLE = "Unreachable"
    """Nobody answers there, or the connection broke."""
    DEADLINE = "DeadlineExceeded"
    """There was no answer in time."""
    BUSY = "Busy"
    """Too many calls of this revision were waiting already."""
    TOO_LARGE = "TooLarge"
    """A request or an answer is larger than is allowed."""
    REFUSED = "Refused"
    """One side does not believe the other's certificate."""
    BROKEN = "BrokenReply"
    """The answer is not what the protocol says."""
    UNSENDABLE = "Unsendable"
    """The request holds what the protocol cannot carry."""
    FAILED = "Failed"
    """The function answered that it failed."""

    @property
    def passes(self) -> bool:
        """Whether the same call may go well later without anyone doing anything."""
        return self in (CallFailure.UNREACHABLE, CallFailure.DEADLINE, CallFailure.BUSY)


class FunctionFailed(PolyverError):
    """A call that came to nothing."""

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
        """Whether the function may have seen the request, and have failed because of it."""
