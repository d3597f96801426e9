"""Find the Kubernetes programs (etcd, kube-apiserver and others) that a LocalCluster runs.

They are in the folder KUBEBUILDER_ASSETS, or were built by `make kube`.
"""

from __future__ import annotations

import os
import platform
from pathlib import Path

from polyver.core import InvalidVersion, PolyverError, SemVer

PROGRAMS = ("etcd", "kube-apiserver", "kube-controller-manager", "kubectl")
COMPLETE = ".complete"


class NoAssets(PolyverError):
    """The Kubernetes programs were not found on this machine."""


def find_assets() -> Path:
    """Find the folder with the Kubernetes programs: KUBEBUILDER_ASSETS, or the newest build.

    Raise NoAssets if there is none.
    """
    return given_assets() or _newest_built()


def given_assets() -> Path | None:
    """Return the folder in KUBEBUILDER_ASSETS; None if the variable is not set.

    Raise an error if the folder lacks a program.
    """
    value = os.environ.get("KUBEBUILDER_ASSETS")
    if not value:
        return None
    missing = missing_programs(Path(value))
    if missing:
        # envtest's own assets have no kube-controller-manager.
        raise NoAssets(
            f"KUBEBUILDER_ASSETS lacks {', '.join(missing)}",
            at=value,
            hint="unset it to use what `make kube` builds",
        )
    return Path(value)


def missing_programs(folder: Path) -> list[str]:
    """Return the programs that a folder lacks."""
    return [name for name in PROGRAMS if not os.access(folder / name, os.X_OK)]


def cache_folder() -> Path:
    """Return the folder in which `make kube` builds; it has a folder for each build."""
    cache = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(cache) / "polyver" / "kube"


def platform_name() -> str:
    """Return the name that Go uses for this platform, such as linux-amd64."""
    machine = platform.machine().lower()
    names = {"x86_64": "amd64", "aarch64": "arm64"}
    return f"{platform.system().lower()}-{names.get(machine, machine)}"


def _newest_built() -> Path:
    built = {
        version: folder
        for folder in cache_folder().glob(f"*-{platform_name()}")
        if (folder / COMPLETE).is_file()
        and not missing_programs(folder)
        and (version := _version(folder)) is not None
    }
    if not built:
        raise NoAssets(
            "there is no kube-apiserver on this machine",
            at=str(cache_folder()),
            hint="`make kube` builds one, or set KUBEBUILDER_ASSETS",
        )
    return built[max(built)]


def _version(folder: Path) -> SemVer | None:
    try:
        return SemVer.parse(folder.name.removesuffix(f"-{platform_name()}"))
    except InvalidVersion:
        return None
