"""Commands in pods: the channels that an API server sends what they print and how they end in."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import msgspec

from polyver.client.port import Executed
from polyver.client.rest import BadAnswer

__all__ = ["PROTOCOLS", "Channels"]

PROTOCOLS = ("v5.channel.k8s.io", "v4.channel.k8s.io")
_OUT, _ERR, _STATUS = 1, 2, 3


@dataclass(slots=True)
class Channels:
    """What came so far; `ended` is set when it is known how the command ended."""

    what: str
    limit: int
    _out: bytearray = field(default_factory=bytearray)
    _err: bytearray = field(default_factory=bytearray)
    _both: bytearray = field(default_factory=bytearray)
    ended: Executed | None = None

    def take(self, message: bytes) -> None:
        """One message: the number of its channel, and what is in it."""
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
                raise BadAnswer(fact, at=self.what, hint="let it write to a file")

    def _code(self, content: bytes) -> int:
        try:
            status: Any = msgspec.json.decode(content)
        except msgspec.MsgspecError:
            raise BadAnswer("how the command ended cannot be read", at=self.what) from None
        if status.get("status") == "Success":
            return 0
        causes = (status.get("details") or {}).get("causes") or ()
        codes = [each.get("message") for each in causes if each.get("reason") == "ExitCode"]
        if status.get("reason") != "NonZeroExitCode" or not codes:
            raise BadAnswer(status.get("message") or "the command could not be run", at=self.what)
        return int(codes[0])
