"""WebSocket frames, as far as API servers use them for commands in pods.

This module does no I/O, so tests can split a stream of bytes at every position.
"""

from __future__ import annotations

import base64
import hashlib
import os
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Final

from polyver.core import PolyverError

__all__ = ["CLOSE", "PING", "PONG", "BadFrame", "Frames", "accepted", "frame", "new_key"]

_GUID: Final = "258EAFA5-E914-47DA-95CA-C5AB0DC85B11"
_MORE, _TEXT, _BINARY, CLOSE, PING, PONG = 0, 1, 2, 8, 9, 10
_KNOWN = (_MORE, _TEXT, _BINARY, CLOSE, PING, PONG)


class BadFrame(PolyverError):
    """Data that is not valid WebSocket."""


def new_key() -> str:
    """Return a random key for the request that opens a WebSocket.

    The server must respond with the value that `accepted` returns for this key.
    """
    return base64.b64encode(os.urandom(16)).decode()


def accepted(key: str) -> str:
    """Return the value with which a server that supports WebSocket responds to a key.

    >>> accepted("dGhlIHNhbXBsZSBub25jZQ==")
    's3pPLMBiTxaQ9kYGzzhZRbK+xOo='
    """
    digest = hashlib.sha1(f"{key}{_GUID}".encode(), usedforsecurity=False).digest()
    return base64.b64encode(digest).decode()


def frame(opcode: int, payload: bytes = b"", *, mask: bytes | None = None) -> bytes:
    """Build a complete frame; a client must mask its frames."""
    size, masked = len(payload), 0x80 if mask else 0
    if size < 126:
        head = bytes([0x80 | opcode, masked | size])
    elif size < 1 << 16:
        head = bytes([0x80 | opcode, masked | 126]) + size.to_bytes(2, "big")
    else:
        head = bytes([0x80 | opcode, masked | 127]) + size.to_bytes(8, "big")
    return head + (mask + _masked(payload, mask) if mask else payload)


def _masked(payload: bytes, mask: bytes) -> bytes:
    return bytes(each ^ mask[place % 4] for place, each in enumerate(payload))


@dataclass(slots=True)
class Frames:
    """Parses received bytes to messages (opcode, payload), and joins the fragments of a message."""

    largest: int
    _held: bytearray = field(default_factory=bytearray)
    _begun: bytearray | None = None
    """The first fragments of a message that is not complete yet; None if there are none."""

    def feed(self, data: bytes) -> Iterator[tuple[int, bytes]]:
        """Add data, and yield every message that is complete now."""
        self._held += data
        while (found := self._frame()) is not None:
            is_last, opcode, payload = found
            if opcode >= CLOSE:
                yield opcode, payload
            elif (whole := self._joined(is_last, opcode, payload)) is not None:
                yield _BINARY, whole

    def _joined(self, is_last: bool, opcode: int, payload: bytes) -> bytes | None:
        if (opcode == _MORE) != (self._begun is not None):
            raise BadFrame("fragments of messages arrive out of order")
        begun = (self._begun or bytearray()) + payload
        if len(begun) > self.largest:
            raise BadFrame(f"a message has more than {self.largest} bytes")
        self._begun = None if is_last else begun
        return bytes(begun) if is_last else None

    def _frame(self) -> tuple[bool, int, bytes] | None:
        held = self._held
        if len(held) < 2:
            return None
        opcode, masked, size, start = held[0] & 0x0F, held[1] & 0x80, held[1] & 0x7F, 2
        if held[0] & 0x70 or masked or opcode not in _KNOWN:
            raise BadFrame("a received frame is invalid")
        if size >= 126:
            start = 4 if size == 126 else 10
            if len(held) < start:
                return None
            size = int.from_bytes(held[2:start], "big")
        if size > self.largest:
            raise BadFrame(f"a frame has {size} bytes, more than {self.largest}")
        if len(held) < start + size:
            return None
        is_last, payload = bool(held[0] & 0x80), bytes(held[start : start + size])
        del held[: start + size]
        return is_last, opcode, payload
