"""One connection to one endpoint, over which calls go side by side."""

from __future__ import annotations

from polyver.compositions.calls._channels import Code, RpcError, answered, open_channel
from polyver.compositions.calls.endpoints import Endpoint
from polyver.compositions.calls.protocol import METHODS

__all__ = ["FunctionConnection"]


class FunctionConnection:
    """Made with the first call, and again when it is lost."""

    def __init__(self, endpoint: Endpoint, *, most_sent: int, most_received: int) -> None:
        self.endpoint = endpoint
        self.calls = 0
        """How many are under way, or are about to be tried again."""
        self._channel = open_channel(endpoint, most_sent=most_sent, most_received=most_received)
        self._methods = METHODS

    async def ask(self, request: bytes, *, within: float) -> bytes:
        """The bytes of an answer; RpcError if there is none."""
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
        """End, with every call that is under way."""
        await self._channel.close(None)
