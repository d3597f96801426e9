"""Commands in pods: read the output and the exit status from the channels of a WebSocket."""

from __future__ import annotations

import os
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import msgspec

from polyver.client.client import BadAnswer
from polyver.client.cluster._websocket import CLOSE, PING, PONG, Frames, frame
from polyver.client.types import Executed

if TYPE_CHECKING:
    import httpcore2

__all__ = ["PROTOCOLS", "Channels", "executed"]

PROTOCOLS = ("v5.channel.k8s.io", "v4.channel.k8s.io")
_OUT, _ERR, _STATUS = 1, 2, 3


@dataclass(slots=True)
class Channels:
    """The output of a command so far. `ended` is set when the exit status has arrived."""

    what: str
    limit: int
    _out: bytearray = field(default_factory=bytearray)
    _err: bytearray = field(default_factory=bytearray)
    _both: bytearray = field(default_factory=bytearray)
    ended: Executed | None = None

    def take(self, message: bytes) -> None:
        """Process one message: the number of its channel, and the content."""
        channel, content = message[:1], message[1:]
        if channel == bytes([_STATUS]):
            code = self._code(content)
            self.ended = Executed(code, bytes(self._out), bytes(self._err), bytes(self._both))
        elif channel in (bytes([_OUT]), bytes([_ERR])):
            own = self._out if channel == bytes([_OUT]) else self._err
            own += content
            self._both += content
            if len(self._both) > self.limit:
                fact = f"the command prints more than {self.limit >> 20} MiB"
                raise BadAnswer(fact, at=self.what, hint="write the output to a file")

    def _code(self, content: bytes) -> int:
        try:
            status: Any = msgspec.json.decode(content)
        except msgspec.MsgspecError:
            raise BadAnswer("the exit status of the command cannot be read", at=self.what) from None
        if status.get("status") == "Success":
            return 0
        causes = (status.get("details") or {}).get("causes") or ()
        codes = [each.get("message") for each in causes if each.get("reason") == "ExitCode"]
        if status.get("reason") != "NonZeroExitCode" or not codes:
            raise BadAnswer(status.get("message") or "the command could not be run", at=self.what)
        return int(codes[0])


async def executed(stream: httpcore2.AsyncNetworkStream, channels: Channels) -> Executed:
    """Read the output of a command until its exit status arrives."""
    import httpcore2

    frames = Frames(largest=channels.limit)
    try:
        while channels.ended is None:
            data = await stream.read(65536)
            if not data:
                raise BadAnswer("the connection ended before the command", at=channels.what)
            for opcode, payload in frames.feed(data):
                if opcode == PING:
                    await stream.write(frame(PONG, payload, mask=os.urandom(4)))
                else:
                    _take(channels, opcode, payload)
    except (httpcore2.NetworkError, httpcore2.TimeoutException) as error:
        raise BadAnswer(f"the connection was lost: {error}", at=channels.what) from None
    return channels.ended


def _take(channels: Channels, opcode: int, payload: bytes) -> None:
    if opcode == CLOSE and channels.ended is None:
        said = payload[2:].decode(errors="replace")
        fact = f"the server closed the connection before the command ended: {said}"
        raise BadAnswer(fact, at=channels.what)
    if opcode not in (CLOSE, PONG) and payload:
        channels.take(payload)
