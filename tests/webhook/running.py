"""Starting a webhook for a test, and asking it."""

from __future__ import annotations

import http.client
import json
import os
import ssl
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from tests.deadlines import HANG
from tests.webhook.converters import asked

ROOT = Path(__file__).parents[2]
PATIENCE = HANG


class Running:
    """A webhook that has said that it is ready."""

    def __init__(
        self, kinds: Path, where: str, ca: Path, *, linger: float, group: str | None
    ) -> None:
        command = [sys.executable, "-m", "tests.webhook.process", str(kinds), where, str(linger)]
        path = os.pathsep.join([str(ROOT / "src"), str(ROOT)])
        self.process = subprocess.Popen(
            [*command, *([group] if group else [])],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            cwd=ROOT,
            env={**os.environ, "PYTHONPATH": path},
        )
        assert self.process.stdout
        self.ready = self.process.stdout.readline().strip()
        assert self.ready, self.process.communicate()
        self.kinds = kinds
        self.ca = ca
        self.url = self.ready.split(" at ")[1].partition(";")[0]
        self.address = self.url.removeprefix("https://").removesuffix("/convert")
        self.said: list[str] = []
        self._reading = threading.Thread(target=self._read, daemon=True)
        self._reading.start()

    def _read(self) -> None:
        assert self.process.stderr
        self.said.extend(self.process.stderr)

    @contextmanager
    def connected(self) -> Iterator[http.client.HTTPSConnection]:
        context = ssl.create_default_context(cafile=self.ca)
        connection = http.client.HTTPSConnection(self.address, context=context, timeout=PATIENCE)
        connection.connect()
        try:
            yield connection
        finally:
            connection.close()

    def get(self, path: str) -> tuple[int, str]:
        with self.connected() as connection:
            return get(connection, path)

    def convert(self, *objects: Any, version: str = "v2") -> Any:
        with self.connected() as connection:
            return convert(connection, asked(*objects, version=version))

    def is_converting(self) -> bool:
        return "polyver_webhook_reviews_in_flight 1.0" in self.get("/metrics")[1]

    def says(self, text: str) -> bool:
        return any(text in line for line in list(self.said))

    def end(self, number: int) -> int:
        """The exit code, once all is said."""
        self.process.send_signal(number)
        return self.ended()

    def ended(self) -> int:
        code = self.process.wait(PATIENCE)
        self._reading.join(PATIENCE)
        return code


def get(connection: http.client.HTTPSConnection, path: str) -> tuple[int, str]:
    connection.request("GET", path)
    response = connection.getresponse()
    return response.status, response.read().decode()


def convert(connection: http.client.HTTPSConnection, body: bytes) -> Any:
    connection.request("POST", "/convert?timeout=30s", body, {"Content-Type": "application/json"})
    response = connection.getresponse()
    assert response.status == 200
    found = json.loads(response.read())["response"]
    assert found["result"] == {"status": "Success"}, found
    return found["convertedObjects"]


@contextmanager
def running(
    folder: Path,
    *,
    files: tuple[Path, Path, Path] | None = None,
    linger: float = 0,
    kinds: tuple[str, ...] = ("Host",),
    group: str | None = None,
) -> Iterator[Running]:
    """A webhook with its own certificates, or with those in files: certificate, key, authority."""
    listed = folder / "kinds.json"
    listed.write_text(json.dumps(kinds))
    where, ca = str(folder / "own"), folder / "own" / "ca.crt"
    if files:
        where, ca = f"{files[0]},{files[1]}", files[2]
    found = Running(listed, where, ca, linger=linger, group=group)
    try:
        yield found
    finally:
        found.process.kill()
        found.ended()
        assert found.process.stdout
        found.process.stdout.close()
        assert found.process.stderr
        found.process.stderr.close()


def eventually(holds: Callable[[], bool]) -> None:
    deadline = time.monotonic() + PATIENCE
    while not holds():
        assert time.monotonic() < deadline, "it did not come to pass"
        time.sleep(0.05)
