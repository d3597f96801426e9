"""One connection to one endpoint, shared by concurrent calls."""

from __future__ import annotations

from polyver.compositions.calls._channels import Code, RpcError, answered, open_channel
from polyver.compositions.calls.endpoints import Endpoint
from polyver.compositions.calls.protocol import METHODS

__all__ = ["FunctionConnection"]


class FunctionConnection:
    """A connection that is opened with the first call, and again after it is lost."""

    def __init__(self, endpoint: Endpoint, *, most_sent: int, most_received: int) -> None:
        self.endpoint = endpoint
        self.calls = 0
        """Calls in flight, including those that wait for their next try."""
        self._channel = open_channel(endpoint, most_sent=most_sent, most_received=most_received)
        self._methods = METHODS

    async def ask(self, request: bytes, *, within: float) -> bytes:
        """Return the bytes of a response; raise RpcError if there is none.

        If the function implements only the other version of the protocol, this call and all later
        calls use that version.
        """
        known, other = self._methods
        try:
            return await answered(self._channel, known, request, within=within)
        except RpcError as error:
            if error.code() is not Code.UNIMPLEMENTED:
                raise
        answer = await answered(self._channel, other, request, within=within)
        self._methods = (other, known)
        return answer

    async def close(self) -> None:
        """Close the connection; calls in flight fail."""
        await self._channel.close(None)
