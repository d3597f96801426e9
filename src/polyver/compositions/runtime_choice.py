"""Chooses the runtime of composition functions, and the folders that function processes use."""

from __future__ import annotations

import datetime
from pathlib import Path
from typing import TYPE_CHECKING

from polyver.compositions.settings import PackageSettings

if TYPE_CHECKING:
    from polyver.client import Client
    from polyver.compositions.calls import CertificateFolder
    from polyver.compositions.runtimes import Runtime
    from polyver.compositions.runtimes.process import ProcessRuntime
    from polyver.kube.http.logs import Log

__all__ = ["certificates_in", "logs_folder", "process_runtime", "runtime_for"]

_FOLDER = "packages"


def runtime_for(
    settings: PackageSettings, client: Client, *, folder: Path | None, namespace: str
) -> Runtime:
    """Return the runtime that serves function revisions.

    It is the runtime in the settings. If there is none, functions run as child processes, or as
    Deployments on a cluster.
    """
    if settings.runtime is not None:
        return settings.runtime
    if namespace and not settings.runs_processes:
        return _deployments(client, namespace)
    from polyver.cli.files import data_folder

    return _processes(folder or data_folder(), settings)


def _processes(folder: Path, settings: PackageSettings) -> Runtime:
    from polyver.compositions.calls import Trust
    from polyver.compositions.runtimes.external import ExternalRuntime
    from polyver.compositions.runtimes.routing import ChosenRuntime

    certificates = certificates_in(folder)

    async def trust(revision: str) -> Trust:
        return certificates.trust(revision, now=datetime.datetime.now(datetime.UTC))

    return ChosenRuntime(ExternalRuntime(trust), process_runtime(folder, settings))


def certificates_in(folder: Path) -> CertificateFolder:
    """Return the subfolder for the certificates of polyver and of functions."""
    from polyver.compositions.calls import CertificateFolder

    # Functions run in folders of their own, so a relative path would not lead there.
    return CertificateFolder(folder.absolute() / _FOLDER / "certificates")


def process_runtime(
    folder: Path, settings: PackageSettings, *, log: Log | None = None
) -> ProcessRuntime:
    """Return the runtime that runs the functions of allowed packages as child processes."""
    from polyver.compositions.runtimes.process import Packages, ProcessRuntime, read_packages

    named = read_packages(settings.file) if settings.file is not None else {}
    allowed = Packages(named, settings.allows_others)
    at, certificates = folder / _FOLDER, certificates_in(folder)
    return ProcessRuntime(at, allowed, certificates, memory=settings.memory, log=log)


def _deployments(client: Client, namespace: str) -> Runtime:
    from polyver.compositions.calls import Trust
    from polyver.compositions.runtimes.external import ExternalRuntime
    from polyver.compositions.runtimes.kubernetes import KubernetesRuntime
    from polyver.compositions.runtimes.routing import ChosenRuntime

    run = KubernetesRuntime(client, namespace)

    async def trust(revision: str) -> Trust:
        found = await run.reach(revision, "localhost:443")
        assert found.trust is not None
        return found.trust

    return ChosenRuntime(ExternalRuntime(trust), run)


def logs_folder(folder: Path) -> Path:
    """Return the subfolder for the output of functions that run as processes.

    Each revision has a file REVISION.log there.
    """
    return folder / _FOLDER / "logs"
