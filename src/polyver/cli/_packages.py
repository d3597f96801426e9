"""The capability revisions, as it is contributed to a control plane, and what serves revisions."""

from __future__ import annotations

import datetime
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from polyver.cli._contributions import READ, Contribution, PackageSettings, Right

if TYPE_CHECKING:
    from collections.abc import Iterator

    from polyver.admission.chain import Admission
    from polyver.calling import CertificateFolder
    from polyver.client import Client
    from polyver.engine import Controller
    from polyver.engine.packages import Dependents, Users
    from polyver.engine.runtimes import Runtime
    from polyver.engine.runtimes.process import ProcessRuntime
    from polyver.serving.logs import Log
    from polyver.web.sources import Source

__all__ = [
    "certificates_in",
    "logs_folder",
    "package_controllers",
    "package_links",
    "packages",
    "process_runtime",
]

_FOLDER = "packages"


def packages(
    settings: PackageSettings, *, folder: Path | None = None, namespace: str = ""
) -> Contribution:
    """What installs functions and has their revisions served.

    By processes that have all they need in a folder, or by Deployments in a namespace.
    """
    from polyver.admission.packages import PACKAGES_WANTED, STEPS_WANTED
    from polyver.capabilities.revisions.kinds import KINDS
    from polyver.engine.packages import Compositions, CompositionsOn

    several = settings.several
    runtime = partial(_runtime, settings, folder=folder, namespace=namespace)
    return Contribution(
        kinds=KINDS,
        links=lambda client: package_links(client, CompositionsOn(client), several=several),
        wanted=PACKAGES_WANTED if several else (*PACKAGES_WANTED, *STEPS_WANTED),
        controllers=lambda client: package_controllers(
            client, runtime(client), Compositions(), several=several
        ),
        rights=tuple(_rights()),
        rights_inside=() if settings.runs_processes else tuple(_rights_inside()),
        source=_source,
    )


def _source() -> Source:
    from polyver.web.sources.revisions import RevisionsSource

    return RevisionsSource()


def package_links(client: Client, users: Users, *, several: bool) -> list[Admission]:
    """Those who have a say in writes."""
    from polyver.admission.packages import FunctionRevisionChecks, PackageChecks, StepChecks
    from polyver.engine.packages import InstalledOn

    installed = InstalledOn(client, users)
    own: list[Admission] = [
        PackageChecks(installed, several=several),
        FunctionRevisionChecks(installed),
    ]
    return own if several else [*own, StepChecks()]


def package_controllers(
    client: Client, runtime: Runtime, dependents: Dependents, *, several: bool
) -> list[Controller[Any]]:
    """Those who make revisions and have them served; the runtime ends with them."""
    from polyver.engine.packages import FunctionController, FunctionRevisionController

    return [
        FunctionController(client, runtime, dependents=dependents, several=several),
        FunctionRevisionController(client, runtime),
    ]


def _runtime(
    settings: PackageSettings, client: Client, *, folder: Path | None, namespace: str
) -> Runtime:
    if settings.runtime is not None:
        return settings.runtime
    if namespace and not settings.runs_processes:
        return _deployments(client, namespace)
    from polyver.cli._files import data_folder

    return _processes(folder or data_folder(), settings)


def _processes(folder: Path, settings: PackageSettings) -> Runtime:
    from polyver.calling import Trust
    from polyver.engine.runtimes.chosen import ChosenRuntime
    from polyver.engine.runtimes.external import ExternalRuntime

    certificates = certificates_in(folder)

    async def trust(revision: str) -> Trust:
        return certificates.trust(revision, now=datetime.datetime.now(datetime.UTC))

    return ChosenRuntime(ExternalRuntime(trust), process_runtime(folder, settings))


def certificates_in(folder: Path) -> CertificateFolder:
    """What polyver and functions show each other."""
    from polyver.calling import CertificateFolder

    return CertificateFolder(folder / _FOLDER / "certificates")


def process_runtime(
    folder: Path, settings: PackageSettings, *, log: Log | None = None
) -> ProcessRuntime:
    """What runs functions beside this process; only those that somebody allowed."""
    from polyver.engine.runtimes.process import Packages, ProcessRuntime, read_packages

    named = read_packages(settings.file) if settings.file is not None else {}
    allowed = Packages(named, settings.allows_others)
    at, certificates = folder / _FOLDER, certificates_in(folder)
    return ProcessRuntime(at, allowed, certificates, memory=settings.memory, log=log)


def _deployments(client: Client, namespace: str) -> Runtime:
    from polyver.calling import Trust
    from polyver.engine.runtimes.chosen import ChosenRuntime
    from polyver.engine.runtimes.external import ExternalRuntime
    from polyver.engine.runtimes.kubernetes import KubernetesRuntime

    run = KubernetesRuntime(client, namespace)

    async def trust(revision: str) -> Trust:
        found = await run.reach(revision, "localhost:443")
        assert found.trust is not None
        return found.trust

    return ChosenRuntime(ExternalRuntime(trust), run)


def logs_folder(folder: Path) -> Path:
    """Where processes of functions leave what they print: REVISION.log."""
    return folder / _FOLDER / "logs"


def _rights() -> Iterator[Right]:
    from polyver.capabilities.revisions.kinds import FUNCTION_REVISIONS, FUNCTIONS, GROUP

    functions, revisions = FUNCTIONS.names.plural, FUNCTION_REVISIONS.names.plural
    yield Right(GROUP, functions, (*READ, "patch"))
    yield Right(GROUP, f"{functions}/status", ("update",))
    yield Right(GROUP, revisions, (*READ, "create", "patch", "delete"))
    yield Right(GROUP, f"{revisions}/status", ("update",))
    yield Right("apiextensions.crossplane.io", "compositionrevisions", ("list", "watch"))
    yield Right("", "events", ("create",))


def _rights_inside() -> Iterator[Right]:
    """What Deployments take, and Services and Secrets beside them."""
    yield Right("apps", "deployments", (*READ, "create", "patch", "delete"))
    yield Right("", "services", ("get", "create", "patch", "delete"))
    yield Right("", "secrets", ("get", "create", "update", "patch", "delete"))
