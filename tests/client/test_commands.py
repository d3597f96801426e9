"""Commands in pods, as API servers send what they print: frames, channels, and how they end.

What answers here speaks the protocol and runs nothing; that a node runs it, only a cluster shows.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager, suppress
from urllib.parse import parse_qsl, urlsplit

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.deadlines import HANG

from polyver.client import Executed
from polyver.client.client import BadAnswer
from polyver.client.cluster import ClusterAccess, ClusterClient
from polyver.client.cluster._access import KubeconfigCluster, KubeconfigUser
from polyver.client.cluster._websocket import PING, PONG, Frames, accepted, frame
from polyver.kube.objects.status import ApiError

SUCCESS = b"\x03" + json.dumps({"status": "Success"}).encode()


def failure(reason: str, message: str, code: str = "") -> bytes:
    causes = [{"reason": "ExitCode", "message": code}] if code else []
    status = {"status": "Failure", "reason": reason, "message": message}
    return b"\x03" + json.dumps(status | {"details": {"causes": causes}}).encode()


def binary(payload: bytes) -> bytes:
    return frame(2, payload)


@given(
    st.lists(st.binary(max_size=300), max_size=5),
    st.lists(st.integers(1, 40), min_size=1, max_size=40),
)
def test_messages_are_the_same_however_their_bytes_come(
    messages: list[bytes], cuts: list[int]
) -> None:
    stream = b"".join(map(binary, messages))
    frames, found = Frames(largest=1000), []
    place = 0
    while place < len(stream):
        step = cuts[place % len(cuts)]
        found += [payload for _, payload in frames.feed(stream[place : place + step])]
        place += step
    assert found == messages


def test_large_messages_and_fragments_are_put_together() -> None:
    large = b"x" * 70_000
    first, last = bytearray(binary(b"ab")), bytearray(frame(0, b"cd"))
    first[0] &= 0x7F
    stream = binary(large) + bytes(first) + frame(PING, b"?") + bytes(last)
    assert list(Frames(largest=100_000).feed(stream)) == [(2, large), (PING, b"?"), (2, b"abcd")]


class Pods:
    """A server of the channel protocol that sends what it is told."""

    def __init__(self, pieces: Sequence[bytes], *, refuses: bytes = b"") -> None:
        self.pieces = pieces
        self.refuses = refuses
        self.target = ""
        self.headers: dict[str, str] = {}
        self.heard = b""
        self.over = asyncio.Event()

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with suppress(ConnectionError, asyncio.IncompleteReadError):
            head = (await reader.readuntil(b"\r\n\r\n")).decode().split("\r\n")
            self.target = head[0].split(" ")[1]
            self.headers = {
                name.lower(): value for name, _, value in (x.partition(": ") for x in head[1:])
            }
            writer.write(self.refuses or self._upgrade())
            for piece in () if self.refuses else self.pieces:
                writer.write(piece)
                await writer.drain()
                await asyncio.sleep(0)
            self.heard = await reader.read(1000)
        writer.transport.abort()
        self.over.set()

    def _upgrade(self) -> bytes:
        lines = [
            "HTTP/1.1 101 Switching Protocols",
            "Upgrade: websocket",
            "Connection: Upgrade",
            f"Sec-WebSocket-Accept: {accepted(self.headers['sec-websocket-key'])}",
            "Sec-WebSocket-Protocol: v5.channel.k8s.io",
        ]
        return "\r\n".join([*lines, "", ""]).encode()


@asynccontextmanager
async def client_of(pods: Pods) -> AsyncIterator[ClusterClient]:
    server = await asyncio.start_server(pods.serve, "127.0.0.1", 0)
    port = server.sockets[0].getsockname()[1]
    access = ClusterAccess(
        KubeconfigCluster(server=f"http://127.0.0.1:{port}"), KubeconfigUser(token="t"), "a test"
    )
    async with server:
        try:
            async with ClusterClient(access) as client:
                yield client
        finally:
            await pods.over.wait()


def executed(pods: Pods, limit: int = 1 << 20) -> Executed:
    async def run() -> Executed:
        async with asyncio.timeout(HANG), client_of(pods) as client:
            command = ["sh", "-c", "echo a&b"]
            return await client.execute("p", "a", container="c", command=command, limit=limit)

    return asyncio.run(run())


def test_a_command_is_sent_and_what_it_prints_comes_back_apart() -> None:
    pods = Pods([binary(b"\x01out"), binary(b"\x02err") + binary(b"\x01!"), binary(SUCCESS)])
    assert executed(pods) == Executed(0, b"out!", b"err", b"outerr!")
    target = urlsplit(pods.target)
    assert target.path == "/api/v1/namespaces/a/pods/p/exec"
    assert parse_qsl(target.query) == [
        ("stdout", "true"),
        ("stderr", "true"),
        ("container", "c"),
        ("command", "sh"),
        ("command", "-c"),
        ("command", "echo a&b"),
    ]
    assert pods.headers["authorization"] == "Bearer t"
    assert pods.headers["sec-websocket-protocol"] == "v5.channel.k8s.io, v4.channel.k8s.io"


def test_pings_are_answered_and_exit_codes_told() -> None:
    ended = binary(failure("NonZeroExitCode", "command terminated with exit code 3", "3"))
    pods = Pods([frame(PING, b"there?"), binary(b"\x02no"), ended])
    assert executed(pods) == Executed(3, b"", b"no", b"no")
    opcode, size = pods.heard[0] & 0x0F, pods.heard[1] & 0x7F
    assert (opcode, size) == (PONG, len(b"there?"))


@pytest.mark.parametrize(
    ("pieces", "told"),
    [
        ([binary(b"\x01half"), frame(8, b"\x03\xe8gone")], "closed the connection .*: gone"),
        ([binary(failure("InternalError", "no such container"))], "no such container"),
        ([binary(b"\x03{")], "the exit status of the command cannot be read"),
        ([binary(b"\x01" + b"x" * 600), binary(b"\x01" + b"x" * 600)], "prints more than"),
        ([binary(b"x" * 2000)], "a frame has 2000 bytes"),
        ([b"\xff\xff\xff\xff"], "received frame is invalid"),
    ],
)
def test_what_goes_wrong_is_told(pieces: list[bytes], told: str) -> None:
    with pytest.raises(BadAnswer, match=told):
        executed(Pods(pieces), limit=1000)


def test_a_refusal_is_an_api_error() -> None:
    body = json.dumps(
        {
            "kind": "Status",
            "status": "Failure",
            "reason": "NotFound",
            "message": "no pod",
            "code": 404,
        }
    )
    head = f"HTTP/1.1 404 Not Found\r\ncontent-length: {len(body)}\r\n\r\n"
    with pytest.raises(ApiError, match="no pod"):
        executed(Pods([], refuses=f"{head}{body}".encode()))
