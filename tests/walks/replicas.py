"""Replicas of `polyver run` in processes of their own, and what stands for their Service."""

from __future__ import annotations

import contextlib
import os
import select
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

from tests.walks.support import PATIENCE, Server

ROOT = Path(__file__).parents[2]
NAMESPACE = "polyver-system"


class Balancer:
    """One address for whatever replicas there are, as a Service is: it asks the next that answers.

    A connection that is open stays with its replica.
    """

    def __init__(self) -> None:
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.url = f"https://127.0.0.1:{self._listener.getsockname()[1]}"
        self.ports: list[int] = []
        self._turn = 0
        threading.Thread(target=self._accept, daemon=True).start()

    def close(self) -> None:
        self._listener.close()

    def _accept(self) -> None:
        with contextlib.suppress(OSError):
            while True:
                client, _ = self._listener.accept()
                threading.Thread(target=self._serve, args=(client,), daemon=True).start()

    def _serve(self, client: socket.socket) -> None:
        with client:
            replica = self._connected()
            if replica is not None:
                with replica, contextlib.suppress(OSError):
                    _forward(client, replica)

    def _connected(self) -> socket.socket | None:
        for _ in range(len(self.ports)):
            self._turn += 1
            port = self.ports[self._turn % len(self.ports)]
            with contextlib.suppress(OSError):
                return socket.create_connection(("127.0.0.1", port), timeout=PATIENCE)
        return None


def _forward(one: socket.socket, other: socket.socket) -> None:
    to = {one: other, other: one}
    while True:
        for ready in select.select([one, other], [], [])[0]:
            data = ready.recv(65536)
            if not data:
                return
            to[ready].sendall(data)


class Replica:
    """One process, which has said that it runs."""

    def __init__(self, server: Server, balancer: Balancer, *options: str) -> None:
        where = ["--kubeconfig", str(server.kubeconfig), "--namespace", NAMESPACE]
        at = ["--webhook-url", balancer.url, "--host", "127.0.0.1", "--port", "0"]
        path = os.pathsep.join([str(ROOT / "src"), str(ROOT)])
        self.process = subprocess.Popen(
            [sys.executable, "-m", "polyver", "run", *where, *at, "--linger", "0", *options],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            cwd=ROOT,
            env={**os.environ, "PYTHONPATH": path},
        )
        assert self.process.stdout
        said = self.process.stdout.readline()
        assert said, self.process.communicate()
        self.identity = said.split(" as ")[1].partition(",")[0]
        self.port = int(self.process.stdout.readline().split("/convert")[0].rpartition(":")[2])
        self._balancer = balancer
        self.said: list[str] = []
        self._reading = threading.Thread(target=self._read, daemon=True)
        self._reading.start()
        balancer.ports.append(self.port)

    def _read(self) -> None:
        assert self.process.stderr
        self.said.extend(self.process.stderr)

    def end(self, number: int = signal.SIGTERM) -> int:
        if self.port in self._balancer.ports:
            self._balancer.ports.remove(self.port)
        if self.process.poll() is None:
            self.process.send_signal(number)
        code = self.process.wait(PATIENCE)
        self._reading.join(PATIENCE)
        for stream in (self.process.stdout, self.process.stderr):
            assert stream
            stream.close()
        return code


@contextlib.contextmanager
def replicas(
    server: Server, balancer: Balancer, count: int, *options: str
) -> Iterator[list[Replica]]:
    """So many replicas behind one address; those that were ended are left out."""
    running: list[Replica] = []
    try:
        while len(running) < count:
            running.append(Replica(server, balancer, *options))
        yield running
    finally:
        for each in running:
            if each.process.poll() is None:
                each.end()
