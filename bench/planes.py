"""Two control planes to be measured side by side: `polyver up`, and kube-apiserver with etcd.

Both are started as their users run them, on empty folders, and both write durably: etcd flushes to
the disk as it does by default.
"""

from __future__ import annotations

import datetime
import http.client
import os
import re
import socket
import ssl
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path

import yaml

from polyver.core import PolyverError
from polyver.kube.http.tls import Authority, key_pem, new_key
from polyver.testing._assets import find_assets

__all__ = ["Plane", "Start", "kubernetes", "polyver"]

LOOPBACK = "127.0.0.1"
TOKEN = "an-administrator-of-this-measurement"
PATIENCE = 120.0


@dataclass(frozen=True)
class Plane:
    """A control plane that answers, and the processes that it consists of."""

    name: str
    port: int
    token: str
    processes: Sequence[subprocess.Popen[bytes]]
    ready_wall: float
    """Seconds from the start of its first process to the first good answer of /readyz."""
    ready_cpu: float
    """What its processes had used by then."""

    def cpu(self) -> float:
        """The seconds that all its processes have used so far."""
        # What clock_getcpuclockid(3) gives for a process.
        clocks = [(~each.pid << 3) | 2 for each in self.processes]
        return sum(map(time.clock_gettime, clocks))

    def memory(self) -> float:
        """Megabytes that are resident, of all its processes together."""
        return sum(_resident(each.pid) for each in self.processes) / 1e6

    def rest(self) -> None:
        """Wait until it has done what it does after a start or a load."""
        end = time.monotonic() + 20
        before = self.cpu()
        while time.monotonic() < end:
            time.sleep(1)
            after = self.cpu()
            if after - before < 0.1:
                return
            before = after


Start = Callable[[Path], AbstractContextManager[Plane]]


def _resident(pid: int) -> int:
    found = re.search(r"VmRSS:\s+(\d+)", Path(f"/proc/{pid}/status").read_text())
    return int(found[1]) * 1024 if found else 0


@contextmanager
def polyver(folder: Path, *options: str) -> Iterator[Plane]:
    """`polyver up`, its data in a folder."""
    port = _free_port()
    command = [sys.executable, "-m", "polyver", "up", "--port", str(port)]
    command += ["--data", str(folder), "--page-port", "0", *options]
    with ExitStack() as undo:
        folder.mkdir(exist_ok=True)
        began = time.monotonic()
        process = _started(undo, command, folder / "log")
        waited = _until_ready(port, [process], folder)
        cpu = time.clock_gettime((~process.pid << 3) | 2)
        users = yaml.safe_load((folder / "kubeconfig").read_text())["users"]
        token = next(each["user"]["token"] for each in users if "token" in each["user"])
        yield Plane("polyver", port, token, [process], waited - began, cpu)


@contextmanager
def kubernetes(folder: Path) -> Iterator[Plane]:
    """kube-apiserver and etcd, their data in a folder."""
    try:
        assets = find_assets()
    except PolyverError as error:
        sys.exit(f"{error}; NOTHING was compared")
    port, etcd, peers = _free_port(), _free_port(), _free_port()
    _write_files(folder)
    with ExitStack() as undo:
        began = time.monotonic()
        store = [str(assets / "etcd"), *_etcd_flags(folder, etcd, peers)]
        server = [str(assets / "kube-apiserver"), *_apiserver_flags(folder, port, etcd)]
        processes = [
            _started(undo, store, folder / "etcd.log"),
            _started(undo, server, folder / "apiserver.log"),
        ]
        waited = _until_ready(port, processes, folder)
        cpu = sum(time.clock_gettime((~each.pid << 3) | 2) for each in processes)
        yield Plane("kube-apiserver + etcd", port, TOKEN, processes, waited - began, cpu)


def _started(undo: ExitStack, command: Sequence[str], log: Path) -> subprocess.Popen[bytes]:
    with log.open("ab") as file:
        process = subprocess.Popen(command, stdout=file, stderr=file, env=_environment())
    undo.callback(process.wait)
    undo.callback(process.terminate)
    return process


def _environment() -> dict[str, str]:
    """That of this process, but code is kept compiled, as it is where something is installed."""
    return {key: each for key, each in os.environ.items() if key != "PYTHONDONTWRITEBYTECODE"}


def _until_ready(port: int, processes: Sequence[subprocess.Popen[bytes]], folder: Path) -> float:
    context = ssl._create_unverified_context()
    end = time.monotonic() + PATIENCE
    while time.monotonic() < end:
        if ended := [each.args for each in processes if each.poll() is not None]:
            sys.exit(f"{ended} has ended; what it said is in {folder}")
        connection = http.client.HTTPSConnection(LOOPBACK, port, context=context, timeout=2)
        try:
            connection.request("GET", "/readyz")
            if connection.getresponse().status == 200:
                return time.monotonic()
        except (OSError, http.client.HTTPException):
            pass
        finally:
            connection.close()
        time.sleep(0.01)
    sys.exit(f"nobody is ready at {port}; what was said is in {folder}")


def _free_port() -> int:
    with socket.socket() as found:
        found.bind((LOOPBACK, 0))
        port: int = found.getsockname()[1]
        return port


# What kube-apiserver needs.


def _write_files(folder: Path) -> None:
    folder.mkdir(mode=0o700, exist_ok=True)
    if (folder / "server.crt").exists():
        return
    now = datetime.datetime.now(datetime.UTC)
    authority = Authority.create("bench", now=now)
    pair = authority.server(LOOPBACK, "localhost", now=now)
    (folder / "ca.crt").write_bytes(authority.pem)
    (folder / "server.crt").write_bytes(pair.certificate)
    (folder / "server.key").write_bytes(pair.key)
    (folder / "accounts.key").write_bytes(key_pem(new_key()))
    (folder / "tokens.csv").write_text(f'{TOKEN},admin,admin,"system:masters"\n')


def _etcd_flags(folder: Path, port: int, peers: int) -> Iterator[str]:
    yield f"--data-dir={folder / 'etcd'}"
    yield f"--listen-client-urls=http://{LOOPBACK}:{port}"
    yield f"--advertise-client-urls=http://{LOOPBACK}:{port}"
    yield f"--listen-peer-urls=http://{LOOPBACK}:{peers}"
    yield f"--initial-advertise-peer-urls=http://{LOOPBACK}:{peers}"
    yield f"--initial-cluster=default=http://{LOOPBACK}:{peers}"
    yield "--log-level=warn"


def _apiserver_flags(folder: Path, port: int, etcd: int) -> Iterator[str]:
    yield f"--etcd-servers=http://{LOOPBACK}:{etcd}"
    yield f"--bind-address={LOOPBACK}"
    yield "--advertise-address=192.0.2.1"
    yield f"--secure-port={port}"
    yield f"--tls-cert-file={folder / 'server.crt'}"
    yield f"--tls-private-key-file={folder / 'server.key'}"
    yield f"--client-ca-file={folder / 'ca.crt'}"
    yield f"--token-auth-file={folder / 'tokens.csv'}"
    yield "--authorization-mode=RBAC"
    yield "--service-account-issuer=https://kubernetes.default.svc.cluster.local"
    yield f"--service-account-key-file={folder / 'accounts.key'}"
    yield f"--service-account-signing-key-file={folder / 'accounts.key'}"
    yield "--service-cluster-ip-range=10.0.0.0/24"
