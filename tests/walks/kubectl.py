"""Every kubectl that this machine has, from the oldest that is served to the newest."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

import pytest
from tests.kube.build import old_kubectl
from tests.walks.support import PATIENCE, Walk

from polyver.testing import NoAssets, find_assets


def newest() -> Path | None:
    try:
        return find_assets() / "kubectl"
    except NoAssets:
        return None


def on_path() -> Path | None:
    found = shutil.which("kubectl")
    return Path(found) if found else None


def oldest() -> Path | None:
    return old_kubectl() if old_kubectl().is_file() else None


KUBECTLS = {"newest": newest(), "path": on_path(), "oldest": oldest()}
HOW = {
    "newest": "`make kube` builds one",
    "path": "there is none on PATH",
    "oldest": "`make kube-old` builds one",
}


def kubectls() -> list[Any]:
    """The parameters of a test that is to hold for each of them; a skip that says why if none."""
    found = [pytest.param(path, id=name) for name, path in KUBECTLS.items() if path]
    reason = "there is no kubectl on this machine, so NO walk with kubectl was taken: `make kube`"
    return found or [pytest.param(None, id="none", marks=pytest.mark.skip(reason=reason))]


def typed(kubeconfig: Path, *arguments: str, given: object = None, code: int = 0) -> str:
    """All that the newest kubectl prints; `given` is its standard input, as data."""
    # kubectl keeps what it discovered by address, and a port may be that of an earlier server.
    cache = kubeconfig.parent / "kubectl-cache"
    options = ["--kubeconfig", str(kubeconfig), "--cache-dir", str(cache)]
    ended = subprocess.run(
        [str(newest() or on_path()), *options, *arguments],
        input=None if given is None else json.dumps(given),
        capture_output=True,
        text=True,
        check=False,
        timeout=PATIENCE,
    )
    assert ended.returncode == code, (arguments, ended)
    return ended.stdout + ended.stderr


@dataclass(frozen=True)
class Done:
    """What a command said, and how it ended."""

    code: int
    out: str
    err: str

    def json(self) -> Any:
        return json.loads(self.out)

    def lines(self) -> list[str]:
        return self.out.splitlines()


@dataclass(frozen=True)
class Kubectl:
    """kubectl as someone at a prompt has it, in one namespace, with a home of its own."""

    program: Path
    walk: Walk
    home: Path

    def __call__(self, *arguments: str, given: object = None, code: int = 0, **env: str) -> Done:
        """Run it; `given` is its standard input, as text or as data."""
        text = given if isinstance(given, str) or given is None else json.dumps(given)
        ended = subprocess.run(
            [self.program, *arguments],
            input=text,
            capture_output=True,
            text=True,
            check=False,
            timeout=PATIENCE,
            env=self._environment() | env,
        )
        done = Done(ended.returncode, ended.stdout, ended.stderr)
        assert done.code == code, f"kubectl {' '.join(arguments)}: {done}"
        return done

    def get(self, *arguments: str) -> Any:
        return self("get", *arguments, "-o", "json").json()

    @contextmanager
    def going(self, *arguments: str) -> Iterator[IO[str]]:
        """Run it beside the test; yields what it prints as it comes, its log included."""
        process = subprocess.Popen(
            [self.program, *arguments],
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            env=self._environment(),
        )
        # A line that never comes must not hold up the whole test run.
        stop = threading.Timer(PATIENCE, process.kill)
        stop.start()
        with process:
            try:
                assert process.stdout
                yield process.stdout
            finally:
                stop.cancel()
                process.kill()

    def _environment(self) -> dict[str, str]:
        return os.environ | {
            "HOME": str(self.home),
            "KUBECACHEDIR": f"{self.home}/cache",
            "KUBECONFIG": f"{self.home}/config",
        }


def installed(program: Path, walk: Walk, home: Path) -> Kubectl:
    """kubectl with a kubeconfig whose namespace is the walk's."""
    (home / "config").write_bytes(walk.kubeconfig.read_bytes())
    kubectl = Kubectl(program, walk, home)
    kubectl("config", "set-context", "--current", "--namespace", walk.namespace)
    return kubectl
