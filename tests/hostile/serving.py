"""A `polyver up` in a process of its own, and the delay that other clients see while it works.

The delay of a request is the smaller of two values: the time until the answer, and the CPU time
that the server used meanwhile. On an idle machine both are the same while the server is busy. On a
busy machine the first also holds the time in which other processes ran, for which the server is not
to blame.
"""

from __future__ import annotations

import http.client
import json
import re
import ssl
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Self

HANGS = 600.0
"""Seconds after which a request is taken for one that never ends."""
CONFIG_MAPS = "/api/v1/namespaces/default/configmaps"
PROBED = ("/readyz", f"{CONFIG_MAPS}/probed")
JSON = "application/json"
_READY = re.compile(r"ready at (https://\S+) after")


def compact(value: object) -> bytes:
    return json.dumps(value, separators=(",", ":")).encode()


@dataclass(frozen=True)
class Answer:
    status: int
    headers: list[tuple[str, str]]
    body: bytes

    @property
    def data(self) -> Any:
        return json.loads(self.body)


@dataclass
class Client:
    """One connection to the server, opened again when it was closed."""

    host: str
    port: int
    token: str
    context: ssl.SSLContext
    _connection: http.client.HTTPSConnection | None = None

    def ask(
        self,
        method: str,
        path: str,
        body: bytes | None = None,
        media: str = JSON,
        **headers: str,
    ) -> Answer:
        about = {"Authorization": f"Bearer {self.token}"} | headers
        about |= {"Content-Type": media} if body is not None else {}
        connection = self._connection or http.client.HTTPSConnection(
            self.host, self.port, timeout=HANGS, context=self.context
        )
        self._connection = connection
        try:
            connection.request(method, path, body, about)
            response = connection.getresponse()
            answer = Answer(response.status, response.getheaders(), response.read())
        except BaseException:
            self.close()
            raise
        if response.will_close:
            self.close()
        return answer

    def send(self, method: str, path: str, value: object, media: str = JSON) -> Answer:
        return self.ask(method, path, compact(value), media)

    def close(self) -> None:
        if self._connection is not None:
            self._connection.close()
        self._connection = None


@dataclass(frozen=True)
class Delay:
    """How long one request of another client took."""

    seconds: float
    """Until the answer."""
    busy: float
    """CPU time of the server meanwhile."""

    @property
    def counted(self) -> float:
        return min(self.seconds, self.busy)


@dataclass
class Prober:
    """Asks for something small again and again, as other clients do."""

    server: Server
    delays: list[Delay] = field(default_factory=list)

    def __post_init__(self) -> None:
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)

    def __enter__(self) -> Self:
        self._client = self.server.client()
        self._client.ask("GET", PROBED[0])
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._ended.set()
        self._thread.join()
        self._client.close()

    def _run(self) -> None:
        while not self._ended.wait(0.003):
            for path in PROBED:
                began, used = time.perf_counter(), self.server.cpu()
                assert self._client.ask("GET", path).status == http.HTTPStatus.OK
                busy = self.server.cpu() - used
                self.delays.append(Delay(time.perf_counter() - began, busy))

    @property
    def worst(self) -> Delay:
        return max(self.delays, key=lambda each: each.counted)

    def percentile(self, share: float) -> float:
        counted = sorted(each.counted for each in self.delays)
        return counted[min(len(counted) - 1, int(len(counted) * share))]


@dataclass
class Server:
    """A running `polyver up`."""

    pid: int
    url: str
    token: str
    ca_file: Path
    log: Path

    def client(self) -> Client:
        host, _, port = self.url.removeprefix("https://").rpartition(":")
        context = ssl.create_default_context(cafile=self.ca_file)
        return Client(host, int(port), self.token, context)

    def cpu(self) -> float:
        """The CPU time that the process has used, all of its threads."""
        # How Linux names the CPU clock of another process: see clock_getcpuclockid(3).
        return time.clock_gettime((~self.pid << 3) | 2)


@contextmanager
def running(folder: Path) -> Iterator[Server]:
    """A server on a free port, with its data in the folder."""
    data, log = folder / "data", folder / "log"
    command = [sys.executable, "-m", "polyver", "up", "--port", "0", "--no-page"]
    with log.open("wb") as output:
        process = subprocess.Popen(
            [*command, "--data", str(data), "--capabilities", "apis"],
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=output,
        )
    try:
        yield _described(process, data, log)
    finally:
        process.terminate()
        process.wait()


def _described(process: subprocess.Popen[bytes], data: Path, log: Path) -> Server:
    while not (found := _READY.search(log.read_text())):
        assert process.poll() is None, log.read_text()
        time.sleep(0.05)
    kept = data / "credentials"
    return Server(
        process.pid, found[1], (kept / "admin.token").read_text().strip(), kept / "ca.crt", log
    )
