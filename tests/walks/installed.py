"""polyver installed on a real API server, and run there with the rights that it was given.

Every request of its account is in the audit log of the server, so that the rights can be compared
with what they are used for.
"""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tests.deadlines import HANG
from tests.rights import Asked
from tests.walks.support import eventually, request

from polyver.testing import LocalCluster

KINDS = str(Path(__file__).with_name("installed_kinds.py"))
CAPABILITIES = "apis,functions,definitions"
ACCOUNT = "system:serviceaccount:polyver-system:polyver"
POLYVER = (sys.executable, "-c", "import sys; from polyver.app import main; sys.exit(main())")
MAKES = "kites-make"
"""The ClusterRole of the kinds' author: what the controller applies."""
_POLICY = {
    "apiVersion": "audit.k8s.io/v1",
    "kind": "Policy",
    "omitStages": ["RequestReceived"],
    "rules": [{"level": "Metadata", "users": [ACCOUNT]}, {"level": "None"}],
}


@dataclass
class Installed:
    """A cluster with polyver on it."""

    cluster: LocalCluster
    folder: Path
    audit: Path
    read: int = 0
    asked: dict[Asked, str] = field(default_factory=dict)
    """What was asked, and in which step of a walk first."""
    forbidden: dict[Asked, str] = field(default_factory=dict)

    def request(self, method: str, path: str, body: object = None) -> Any:
        return request(self.cluster, method, path, body)

    def polyver(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        """A command as the administrator types it."""
        environment = os.environ | {"KUBECONFIG": str(self.cluster.kubeconfig)}
        return subprocess.run(
            [*POLYVER, *arguments],
            env=environment,
            capture_output=True,
            text=True,
            timeout=HANG,
            check=False,
        )

    def install(self, *more: str) -> str:
        chosen = ["--kinds", KINDS, "--capabilities", CAPABILITIES, "--role", MAKES]
        ran = self.polyver("install", "--image", "a:1", *chosen, *more)
        assert (ran.returncode, ran.stderr) == (0, "")
        return ran.stdout

    def kubeconfig(self) -> Path:
        """How a pod with the account of the installation would reach the server."""
        path = "/api/v1/namespaces/polyver-system/serviceaccounts/polyver/token"
        review = {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": {}}
        token = self.request("POST", path, review)["status"]["token"]
        config = json.loads(self.cluster.kubeconfig.read_text())
        config["users"][0]["user"] = {"token": token}
        file = self.folder / "account"
        file.write_text(json.dumps(config))
        return file

    @contextmanager
    def running(self, *more: str) -> Iterator[Process]:
        """`polyver run` with the rights of the account, reached by its URL."""
        port = free_port()
        arguments = ["--kubeconfig", str(self.kubeconfig()), "--namespace", "polyver-system"]
        arguments += ["--kinds", KINDS, "--capabilities", CAPABILITIES]
        arguments += ["--host", "127.0.0.1", "--port", str(port)]
        arguments += ["--webhook-url", f"https://127.0.0.1:{port}", "--linger", "0", *more]
        log = self.folder / f"run-{port}.log"
        with log.open("wb") as file:
            process = subprocess.Popen([*POLYVER, "run", *arguments], stdout=file, stderr=file)
        found = Process(process, log, port)
        try:
            yield found
        finally:
            process.send_signal(signal.SIGTERM)
            try:
                process.wait(HANG)
            finally:
                process.kill()

    def note(self, step: str) -> None:
        """Keep what the account has asked for since the last time."""
        with self.audit.open() as file:
            file.seek(self.read)
            lines = file.readlines()
            self.read = file.tell()
        for line in lines:
            for asked, code in _read(json.loads(line)):
                (self.forbidden if code == 403 else self.asked).setdefault(asked, step)

    def may(self, asked: Asked) -> bool:
        """Whether the account may, by the word of the server."""
        groups = ["system:serviceaccounts", "system:authenticated"]
        spec = {"user": ACCOUNT, "groups": groups, "resourceAttributes": asked.attributes}
        path = "/apis/authorization.k8s.io/v1/subjectaccessreviews"
        body = {"apiVersion": "authorization.k8s.io/v1", "kind": "SubjectAccessReview"}
        return bool(self.request("POST", path, {**body, "spec": spec})["status"]["allowed"])


@dataclass(frozen=True)
class Process:
    """One replica."""

    process: subprocess.Popen[bytes]
    log: Path
    port: int

    @property
    def text(self) -> str:
        return self.log.read_text()

    def says(self, *words: str) -> str:
        """A line of its log with all of these words, once it is there."""

        def found() -> str | None:
            for line in self.text.splitlines():
                if all(word in line for word in words):
                    return line
            assert self.process.poll() is None, self.text
            return None

        return eventually(found)


def _read(event: dict[str, Any]) -> Iterator[tuple[Asked, int]]:
    about = event.get("objectRef")
    if not about or event["verb"] not in _VERBS:
        return
    part = f"/{about['subresource']}" if about.get("subresource") else ""
    resource = f"{about['resource']}{part}"
    rest = about.get("apiGroup", ""), resource, about.get("namespace", ""), about.get("name", "")
    code = event.get("responseStatus", {}).get("code", 0)
    # A POST is decided about before anybody looks at the name inside of it.
    rest = (*rest[:3], "") if event["verb"] == "create" else rest
    yield Asked(event["verb"], *rest), code
    if (event["verb"], code) == ("patch", 201):
        # An apply that creates has to be allowed to, under that name.
        yield Asked("create", *rest), code


_VERBS = ("get", "list", "watch", "create", "update", "patch", "delete", "deletecollection")


@contextmanager
def installed(folder: Path) -> Iterator[Installed]:
    """A cluster with an audit log, polyver installed on it, and what it was told to bind."""
    (policy := folder / "policy.json").write_text(json.dumps(_POLICY))
    (audit := folder / "audit.log").touch()
    flags = [f"--audit-policy-file={policy}", f"--audit-log-path={audit}"]
    with LocalCluster(flags=flags) as cluster:
        made = Installed(cluster, folder, audit)
        # Not every ConfigMap: polyver reads one of its own by a right of its own.
        own = {"resourceNames": ["tail", "made"]}
        rules = [
            _rule("", "configmaps", ["get", "patch", "delete"]) | own,
            _rule("", "configmaps", ["list", "watch", "create"]),
            # polyver rewrites the objects of a kind of which it retires a version.
            _rule("boats.example.com", "boats", ["list", "patch"]),
        ]
        role = {"metadata": {"name": MAKES}, "rules": rules}
        made.request("POST", "/apis/rbac.authorization.k8s.io/v1/clusterroles", role)
        yield made


def _rule(group: str, resource: str, verbs: Sequence[str]) -> dict[str, Any]:
    return {"apiGroups": [group], "resources": [resource], "verbs": [*verbs]}


def free_port() -> int:
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        port: int = found.getsockname()[1]
        return port
