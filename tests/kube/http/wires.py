"""Requests of all kinds, and a connection that is given them in exactly these pieces."""

from __future__ import annotations

import asyncio
import zlib
from collections.abc import Callable
from typing import Any

from polyver.kube.http.connections import Connection, ServerState
from polyver.kube.http.http import EncodedResponse, Quick, Receive, RequestHeaders, Scope, Send

__all__ = [
    "FIRST",
    "KINDS",
    "LENGTH",
    "ODD",
    "PLAIN",
    "House",
    "Lines",
    "Wire",
    "body",
    "lines",
    "settled",
]


def told(who: str, method: str, path: str, query: bytes, body: bytes | bytearray) -> bytes:
    return f"{who} {method} {path} {query!r} {len(body)} {zlib.crc32(body)}".encode()


class House:
    """Says who answered, and all that it was told."""

    def __init__(self) -> None:
        self.at_once_answered = 0

    def at_once(self, head: RequestHeaders) -> Quick | None:
        if not head.path.startswith("/quick"):
            return None

        def quick(body: bytes | bytearray) -> EncodedResponse | None:
            if body.startswith(b"slow"):
                return None
            self.at_once_answered += 1
            said = told("at once", head.method, head.path, head.query, body)
            return EncodedResponse(200, b"content-type: text/plain\r\n", said)

        return quick

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        body, more = b"", True
        while more:
            message = await receive()
            if message["type"] == "http.disconnect":
                return
            body, more = body + message["body"], message["more_body"]
        said = told("app", scope["method"], scope["path"], scope["query_string"], body)
        said += f" {scope['http_version']} {scope['raw_path']!r} {scope['headers']}".encode()
        length = (b"content-length", b"%d" % len(said))
        await send({"type": "http.response.start", "status": 200, "headers": [length]})
        await send({"type": "http.response.body", "body": said})


class Wire(asyncio.Transport):
    """What a connection is given bytes by, in exactly these pieces, and gives its answers to."""

    def __init__(self, server_state: ServerState) -> None:
        super().__init__()
        self.written = bytearray()
        self.closed = self.aborted = False
        self._reading = True
        self._waiting = bytearray()
        self.connection = Connection(server_state)
        self.connection.connection_made(self)

    def send(self, piece: bytes) -> None:
        self._waiting += piece
        while self._waiting and self._reading and not self.closed:
            self._read()

    def send_late(self, piece: bytes) -> None:
        """Send as TLS does, which gives what it has while it says goodbye."""
        self._waiting += piece
        self._read()

    def _read(self) -> None:
        room = self.connection.get_buffer(-1)
        size = min(len(room), len(self._waiting))
        room[:size] = self._waiting[:size]
        del self._waiting[:size]
        self.connection.buffer_updated(size)

    def lose(self) -> None:
        self.closed = True
        self.connection.connection_lost(None)

    # For the connection.

    def write(self, data: bytes | bytearray | memoryview) -> None:
        if not self.closed:
            self.written += data

    def writelines(self, list_of_data: Any) -> None:
        self.write(b"".join(list_of_data))

    def pause_reading(self) -> None:
        self._reading = False

    def resume_reading(self) -> None:
        self._reading = True
        asyncio.get_running_loop().call_soon(self.send, b"")

    def is_closing(self) -> bool:
        return self.closed

    def close(self) -> None:
        self.closed = True

    def abort(self) -> None:
        self.closed = self.aborted = True


async def settled(server_state: ServerState) -> None:
    """Let all run that can."""
    for _ in range(12):
        await asyncio.sleep(0)
    assert len(server_state.tasks) <= len(server_state.connections)


# What is sent: a head is its bytes for a body of some size.

Lines = Callable[[int], bytes]


def lines(*after: bytes, line: bytes = b"POST /quick HTTP/1.1", ends: bytes = b"\r\n") -> Lines:
    """A head of these lines, in which %d is the length of the body."""
    head = ends.join([line, b"Host: x", *after, b"", b""])
    return lambda size: head.replace(b"%d", b"%d" % size)


LENGTH = b"Content-Length: %d"
JSON = b"Content-Type: application/json"
PLAIN = [
    lines(LENGTH),
    lines(b"Accept: */*", LENGTH, JSON, line=b"POST /quick?timeout=30s HTTP/1.1"),
    lines(b"Connection: keep-alive", LENGTH, line=b"GET /quick/%41 HTTP/1.1"),
    lines(LENGTH, line=b"PUT /slow HTTP/1.1"),
]
FIRST = PLAIN[0](0)
ODD: dict[str, Lines] = {
    "no length": lines(),
    "twice the same": lines(LENGTH, LENGTH),
    "another": lines(LENGTH, b"Content-Length: 3"),
    "another, spelt differently": lines(b"content-length: 3", LENGTH),
    "spelt differently": lines(b"content-length: %d"),
    "no space": lines(b"Content-Length:%d"),
    "spaces": lines(b"Content-Length:  %d"),
    "tab": lines(b"Content-Length: \t%d"),
    "space behind": lines(LENGTH + b" "),
    "space before the colon": lines(b"Content-Length : %d"),
    "plus": lines(b"Content-Length: +%d"),
    "minus": lines(b"Content-Length: -%d"),
    "underscore": lines(b"Content-Length: 1_%d"),
    "hexadecimal": lines(b"Content-Length: 0x%d"),
    "other digits": lines("Content-Length: ٣".encode()),
    "superscript": lines(b"Content-Length: \xb2"),
    "list": lines(LENGTH + b", 3"),
    "empty": lines(b"Content-Length: "),
    "zeros": lines(b"Content-Length: 000%d"),
    "many zeros": lines(b"Content-Length: 000000000000%d"),
    "more zeros than Python reads": lines(b"Content-Length: " + b"0" * 5000 + b"%d"),
    "nine digits": lines(b"Content-Length: 123456789"),
    "twenty digits": lines(b"Content-Length: 99999999999999999999"),
    "folded length": lines(b"Content-Length:\r\n %d"),
    "fold behind the length": lines(LENGTH, b" 1"),
    "fold": lines(b"A: b", b"\tc", LENGTH),
    "length in a fold": lines(b"A: b", b" Content-Length: 1", LENGTH),
    "bare newlines": lines(LENGTH, ends=b"\n"),
    "bare newline": lines(b"A: b\nB: c", LENGTH),
    "newline behind": lines(LENGTH, b"A: b\n"),
    "newlines within": lines(b"A: b\n\n", LENGTH),
    "bare return": lines(b"A: b\rB: c", LENGTH),
    "return behind": lines(LENGTH, b"A: b\r"),
    "nul": lines(b"A: b\0", LENGTH),
    "nul in a name": lines(b"A\0: b", LENGTH),
    "bytes": lines(b"A: \xff\x80", LENGTH),
    "no colon": lines(b"A", LENGTH),
    "no name": lines(b": a", LENGTH),
    "empty value": lines(b"A: ", b"B:", LENGTH),
    "chunked": lines(b"Transfer-Encoding: chunked"),
    "chunked and a length": lines(b"Transfer-Encoding: chunked", LENGTH),
    "a length and chunked": lines(LENGTH, b"Transfer-Encoding: chunked"),
    "other encoding": lines(b"Transfer-Encoding: identity", LENGTH),
    "expects": lines(LENGTH, b"Expect: 100-continue"),
    "expects something": lines(LENGTH, b"Expect: the best"),
    "closes": lines(b"Connection: close", LENGTH),
    "closes among others": lines(LENGTH, b"Connection: a, Close"),
    "old": lines(LENGTH, line=b"POST /quick HTTP/1.0"),
    "old and lasting": lines(LENGTH, b"Connection: keep-alive", line=b"POST /quick HTTP/1.0"),
    "older": lines(LENGTH, line=b"POST /quick HTTP/0.9"),
    "newer": lines(b"Accept: a", LENGTH, line=b"POST /quick HTTP/2.0"),
    "head": lines(LENGTH, line=b"HEAD /quick HTTP/1.1"),
    "upgrade": lines(LENGTH, b"Connection: Upgrade", b"Upgrade: websocket"),
    "upgrade alone": lines(LENGTH, b"Upgrade: websocket"),
    "connect": lines(LENGTH, line=b"CONNECT quick:1 HTTP/1.1"),
    "empty line before": lines(LENGTH, line=b"\r\nPOST /quick HTTP/1.1"),
    "newlines before": lines(LENGTH, line=b"\n\n\nPOST /quick HTTP/1.1"),
    "whole address": lines(LENGTH, line=b"POST http://x/quick HTTP/1.1"),
    "empty query": lines(LENGTH, line=b"POST /quick? HTTP/1.1"),
    "fragment": lines(LENGTH, line=b"POST /quick#a HTTP/1.1"),
    "two spaces": lines(LENGTH, line=b"POST  /quick  HTTP/1.1"),
    "no method": lines(LENGTH, line=b"/quick HTTP/1.1"),
    "lower case": lines(LENGTH, line=b"post /quick http/1.1"),
    "no line": lines(LENGTH, line=b""),
    "nothing but a length": lines(LENGTH, line=b"\r\nContent-Length: 1"),
    "many": lines(*[b"A-%04d: b" % each for each in range(500)], LENGTH),
    "one byte more": lambda size: PLAIN[0](size)[:-1],
}

KINDS = [b"", b"slow", PLAIN[0](3), b"\r\n\r\n", b"0\r\n\r\n"]
FILLING = bytes(zlib.crc32(b"%d" % each) % 251 for each in range(5000))


def body(kind: bytes, size: int) -> bytes:
    """Bytes of which none can be at another's place without notice."""
    return (kind + FILLING * (size // len(FILLING) + 1))[:size]
