"""Control planes that compose, with functions in real processes: polyver's own, or a cluster."""

from __future__ import annotations

import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from bench.composites import function_folder
from tests.editing import edited
from tests.walks.replicas import NAMESPACE, Balancer, replicas
from tests.walks.support import PATIENCE, eventually, request

from polyver import apis
from polyver.apis.conversion_kind import CONVERSIONS
from polyver.compositions.kinds import COMPOSITION_KINDS, KINDS
from polyver.kube.objects import dump_yaml
from polyver.testing import EmbeddedServer, LocalCluster
from polyver.testing._requests import ask

Object = dict[str, Any]
ROOT = Path(__file__).parents[2]
ROLLOUT = ROOT / "examples" / "rollout"
PACKAGES = "/apis/pkg.crossplane.io/v1"
COMPOSITIONS = "/apis/apiextensions.crossplane.io/v1"
CRDS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"


class Platform:
    """A control plane, asked as its administrator."""

    def __init__(self, server: EmbeddedServer | LocalCluster) -> None:
        self.server = server

    def request(self, method: str, path: str, body: object = None) -> Any:
        return ask(self.server, method, path, body)

    def items(self, path: str) -> dict[str, Object]:
        """All objects, by their names."""
        found = self.request("GET", path)["items"]
        return {each["metadata"]["name"]: each for each in found}

    def write(self, path: str, obj: Object) -> None:
        """Create an object, or replace what it says."""
        name = obj["metadata"]["name"]
        if request(self.server, "GET", f"{path}/{name}") is None:
            self.request("POST", path, obj)
            return

        def change(there: Object) -> None:
            there |= {**obj, "metadata": {**there["metadata"], **obj["metadata"]}}

        edited(self.request, f"{path}/{name}", change)

    def revisions(self, function: str) -> list[Object]:
        """Those of a function, by their numbers."""
        found = self.items(f"{PACKAGES}/functionrevisions").values()
        label = "pkg.crossplane.io/package"
        mine = [each for each in found if each["metadata"]["labels"][label] == function]
        return sorted(mine, key=lambda each: int(each["spec"]["revision"]))

    def settled(self, function: str, *states: str) -> list[Object]:
        """The revisions of a function, as soon as these are their states, and the active answer."""

        def found() -> list[Object] | None:
            there = self.revisions(function)
            if [each["spec"]["desiredState"] for each in there] != [*states]:
                return None
            active = [each for each in there if each["spec"]["desiredState"] == "Active"]
            return there if all((e.get("status") or {}).get("endpoint") for e in active) else None

        return eventually(found, every=0.1)


def condition(obj: Object, kind: str) -> Object:
    conditions = (obj.get("status") or {}).get("conditions") or ()
    return next((each for each in conditions if each["type"] == kind), {})


def stamping(folder: Path, packages: dict[str, str]) -> Path:
    """Functions that stamp what they compose, and the file that says where they are."""
    for package, stamp in packages.items():
        function_folder(folder / _folder(package), STEP="compose", STAMP=stamp)
    file = folder / "packages.yaml"
    file.write_text(dump_yaml({package: f"./{_folder(package)}" for package in packages}))
    return file


def _folder(package: str) -> str:
    return package.rpartition("/")[2].replace(":", "-")


@contextmanager
def composing(packages: Path) -> Iterator[Platform]:
    """polyver's own control plane."""
    with EmbeddedServer(capabilities=("apis", "compositions"), packages=packages) as server:
        yield Platform(server)


@contextmanager
def composing_on_kubernetes(folder: Path, *options: str) -> Iterator[Platform]:
    """A real API server, which knows polyver's kinds, and a replica of `polyver run`."""
    balancer = Balancer()
    with pytest.MonkeyPatch.context() as patch, LocalCluster() as server:
        patch.setenv("XDG_DATA_HOME", str(folder))
        request(server, "POST", "/api/v1/namespaces", {"metadata": {"name": NAMESPACE}})
        for kind in (CONVERSIONS, *KINDS, *COMPOSITION_KINDS):
            request(server, "POST", CRDS, apis.crd_of(kind.definition()))
        with replicas(server, balancer, 1, "--capabilities", "apis,compositions", *options):
            eventually(lambda: _is_registered(server))
            yield Platform(server)
    balancer.close()


def _is_registered(server: LocalCluster) -> bool:
    hooks = "/apis/admissionregistration.k8s.io/v1/validatingwebhookconfigurations/polyver"
    found = request(server, "GET", hooks)
    names = [each["name"] for each in (found or {}).get("webhooks") or ()]
    return "checks.functions.pkg.crossplane.io" in names


@contextmanager
def serving(folder: Path) -> Iterator[str]:
    """The address of a function in a folder that somebody else runs, without TLS."""
    with socket.create_server(("127.0.0.1", 0)) as free:
        address = f"127.0.0.1:{free.getsockname()[1]}"
    command = [sys.executable, "serve.py", "--address", address, "--insecure"]
    process = subprocess.Popen(command, cwd=folder)
    try:
        yield address
    finally:
        process.terminate()
        process.wait(PATIENCE)
