"""A Kubernetes cluster on the loopback address, for tests against kube-apiserver.

The cluster has etcd, kube-apiserver, and the controllers for namespaces and owner references. It
has no kubelet, so pods do not run. Every process of the cluster ends when the test process ends,
even if the test process is killed by SIGKILL.

    with LocalCluster() as cluster:
        subprocess.run([cluster.kubectl, "--kubeconfig", cluster.kubeconfig, "get", "namespaces"])
"""

from __future__ import annotations

import base64
import datetime
import http.client
import json
import os
import secrets
import select
import socket
import ssl
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from types import TracebackType
from typing import Self

from polyver.core import PolyverError
from polyver.kube.http.tls import Authority, Pair, key_pem, new_key
from polyver.testing._assets import find_assets

CONTROLLERS = (
    "garbage-collector-controller",
    "namespace-controller",
    "serviceaccount-controller",
    "serviceaccount-token-controller",
    "root-ca-certificate-publisher-controller",
    "storage-version-migrator-controller",
)
LOOPBACK = "127.0.0.1"
# The address of the service default/kubernetes, from a range that is reserved for documentation.
# kube-apiserver refuses a loopback address. Without an address, it uses an address of this machine,
# and fails if there is none.
ADVERTISED = "192.0.2.1"
SERVICES = "10.0.0.0/24"
ISSUER = "https://kubernetes.default.svc.cluster.local"
SERVER_NAMES = (
    LOOPBACK,
    "localhost",
    "10.0.0.1",
    "kubernetes",
    "kubernetes.default",
    "kubernetes.default.svc",
)
ADMIN, ADMINS = "kubernetes-admin", "system:masters"
DEFAULT_ACCOUNT = "/api/v1/namespaces/default/serviceaccounts/default"


class ClusterError(PolyverError):
    """The cluster did not start; the message names the process and has the end of its log."""


class LocalCluster:
    """A cluster as a context manager: it is ready in the `with` block and ends after the block.

    All files are in `folder`. If you pass a folder, it is kept after the test, with the logs. By
    default, a temporary folder is used. `flags` are additional flags for kube-apiserver.
    """

    url: str
    kubectl: Path
    folder: Path
    ca_file: Path
    client_cert_file: Path
    client_key_file: Path
    token: str
    kubeconfig: Path

    def __init__(
        self,
        assets: Path | None = None,
        *,
        folder: Path | None = None,
        controllers: Sequence[str] = CONTROLLERS,
        flags: Sequence[str] = (),
        patience: float = 300.0,
    ) -> None:
        self._assets = assets or find_assets()
        self.kubectl = self._assets / "kubectl"
        self._own_folder = folder
        self._controllers = controllers
        self._flags = flags
        self._patience = patience

    def __enter__(self) -> Self:
        with ExitStack() as undo:
            self._start(undo)
            self._undo = undo.pop_all()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._undo.close()

    def _start(self, undo: ExitStack) -> None:
        deadline = time.monotonic() + self._patience
        servers = undo.enter_context(_servers(self._assets, self._own_folder))
        self._servers = servers
        etcd_port, port = undo.enter_context(_reserved_port()), undo.enter_context(_reserved_port())
        self.folder = servers.folder
        self.url = f"https://{LOOPBACK}:{port}"
        self._write_files()
        servers.start("etcd", *self._etcd_flags(etcd_port))
        servers.start("kube-apiserver", *self._apiserver_flags(port, etcd_port))
        servers.wait_for("kube-apiserver", self._answers("/readyz"), deadline)
        servers.start("kube-controller-manager", *self._controller_flags())
        servers.wait_for("kube-controller-manager", self._answers(DEFAULT_ACCOUNT), deadline)

    def restart_controllers(self) -> None:
        """Restart the controllers, so that they find new kinds now.

        Without a restart, they find a new kind up to 30 s later.
        """
        self._servers.start("kube-controller-manager", *self._controller_flags())

    def _write_files(self) -> None:
        now = datetime.datetime.now(datetime.UTC)
        authority = Authority.create("polyver-local-cluster", now=now)
        server = authority.server(*SERVER_NAMES, now=now)
        admin = authority.client(ADMIN, ADMINS, now=now)
        self.token = secrets.token_urlsafe(24)
        self.ca_file = self._write("ca.crt", authority.pem)
        self._write("server.crt", server.certificate)
        self._write("server.key", server.key)
        self._write("accounts.key", key_pem(new_key()))
        self._write("tokens.csv", f'{self.token},{ADMIN},{ADMIN},"{ADMINS}"\n'.encode())
        self.client_cert_file = self._write("admin.crt", admin.certificate)
        self.client_key_file = self._write("admin.key", admin.key)
        self.kubeconfig = self._write("kubeconfig", _kubeconfig(self.url, authority.pem, admin))

    def _write(self, name: str, content: bytes) -> Path:
        path = self.folder / name
        path.unlink(missing_ok=True)
        with open(path, "xb", opener=lambda file, flags: os.open(file, flags, 0o600)) as file:
            file.write(content)
        return path

    def _etcd_flags(self, port: int) -> Iterator[str]:
        yield f"--data-dir={self.folder / 'etcd'}"
        yield f"--listen-client-urls=http://{LOOPBACK}:{port}"
        yield f"--advertise-client-urls=http://{LOOPBACK}:{port}"
        yield f"--listen-peer-urls=http://{LOOPBACK}:0"
        yield "--socket-reuse-port"
        yield "--unsafe-no-fsync"
        yield "--log-level=warn"

    def _apiserver_flags(self, port: int, etcd_port: int) -> Iterator[str]:
        yield f"--etcd-servers=http://{LOOPBACK}:{etcd_port}"
        yield f"--bind-address={LOOPBACK}"
        yield f"--advertise-address={ADVERTISED}"
        yield f"--secure-port={port}"
        yield "--permit-port-sharing"
        yield f"--tls-cert-file={self.folder / 'server.crt'}"
        yield f"--tls-private-key-file={self.folder / 'server.key'}"
        yield f"--client-ca-file={self.ca_file}"
        yield f"--token-auth-file={self.folder / 'tokens.csv'}"
        yield "--authorization-mode=RBAC"
        yield f"--service-account-issuer={ISSUER}"
        yield f"--service-account-key-file={self.folder / 'accounts.key'}"
        yield f"--service-account-signing-key-file={self.folder / 'accounts.key'}"
        yield f"--service-cluster-ip-range={SERVICES}"
        yield "--allow-privileged"
        yield from self._flags

    def _controller_flags(self) -> Iterator[str]:
        yield f"--kubeconfig={self.kubeconfig}"
        yield f"--controllers={','.join(self._controllers)}"
        yield f"--root-ca-file={self.ca_file}"
        yield f"--service-account-private-key-file={self.folder / 'accounts.key'}"
        yield "--leader-elect=false"
        yield "--secure-port=0"

    def _answers(self, path: str) -> Callable[[], bool]:
        context = ssl.create_default_context(cafile=self.ca_file)
        context.load_cert_chain(self.client_cert_file, self.client_key_file)
        host = self.url.removeprefix("https://")

        def answers() -> bool:
            # kube-apiserver accepts connections long before it responds. Without a timeout, the
            # probe would hang, and would not find out that etcd has ended meanwhile.
            connection = http.client.HTTPSConnection(host, context=context, timeout=2)
            try:
                connection.request("GET", path)
                return connection.getresponse().status == http.HTTPStatus.OK
            except (OSError, http.client.HTTPException):
                return False
            finally:
                connection.close()

        return answers


class _Servers:
    """The servers that one supervisor process runs, each with its log file in the folder."""

    LOOK_EVERY = 0.02
    LOG_LINES = 15

    def __init__(self, assets: Path, folder: Path, supervisor: subprocess.Popen[bytes]) -> None:
        self.folder = folder
        self._assets = assets
        self._supervisor = supervisor

    def start(self, name: str, *flags: str) -> None:
        program = self._assets / name
        if not os.access(program, os.X_OK):
            raise ClusterError(f"there is no program {program}", hint="`make kube` builds it")
        order = {"name": name, "argv": [str(program), *flags], "log": str(self._log(name))}
        assert self._supervisor.stdin
        self._supervisor.stdin.write(json.dumps(order).encode() + b"\n")
        self._supervisor.stdin.flush()

    def wait_for(self, name: str, probe: Callable[[], bool], deadline: float) -> None:
        while not probe():
            self._refuse_ended()
            if time.monotonic() > deadline:
                raise ClusterError(f"{name} is not ready in time{self._end_of_log(name)}")
            time.sleep(self.LOOK_EVERY)

    def _refuse_ended(self) -> None:
        report = self._supervisor.stdout
        assert report
        if select.select([report], [], [], 0)[0]:
            name, _, code = report.readline().decode().strip().partition(" ")
            name = name or "supervisor"
            ended = f"{name} ended by itself (code {code or '?'}) while starting"
            raise ClusterError(f"{ended}{self._end_of_log(name)}")

    def _end_of_log(self, name: str) -> str:
        log = self._log(name)
        lines = log.read_text(errors="replace").splitlines() if log.exists() else []
        return "\n  ".join([f"; the end of {log}:", *lines[-self.LOG_LINES :]])

    def _log(self, name: str) -> Path:
        return self.folder / f"{name}.log"


@contextmanager
def _servers(assets: Path, own_folder: Path | None) -> Iterator[_Servers]:
    folder = own_folder or Path(tempfile.mkdtemp(prefix="polyver-kube-"))
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    # The supervisor removes a temporary folder, so that no data stays after a kill -9.
    arguments = [str(os.getpid()), *([] if own_folder else [str(folder)])]
    with (folder / "supervisor.log").open("wb") as log:
        supervisor = subprocess.Popen(
            [
                sys.executable,
                "-I",
                "-S",
                str(Path(__file__).with_name("_supervisor.py")),
                *arguments,
            ],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=log,
            env={},
            start_new_session=True,
        )
    # At the end of the block, Popen closes stdin of the supervisor, and waits until the supervisor
    # has ended the servers and itself.
    with supervisor:
        yield _Servers(assets, folder, supervisor)


@contextmanager
def _reserved_port() -> Iterator[int]:
    """Yield a free port that no other process can take: it is reserved with SO_REUSEPORT.

    The server must bind it with the same option.
    """
    with socket.socket() as holder:
        holder.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
        holder.bind((LOOPBACK, 0))
        yield holder.getsockname()[1]


def _kubeconfig(url: str, authority: bytes, admin: Pair) -> bytes:
    def text(pem: bytes) -> str:
        return base64.b64encode(pem).decode()

    cluster = {"server": url, "certificate-authority-data": text(authority)}
    user = {"client-certificate-data": text(admin.certificate), "client-key-data": text(admin.key)}
    config = {
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [{"name": "local", "cluster": cluster}],
        "users": [{"name": ADMIN, "user": user}],
        "contexts": [{"name": "local", "context": {"cluster": "local", "user": ADMIN}}],
        "current-context": "local",
    }
    # JSON is YAML.
    return json.dumps(config, indent=2).encode()
