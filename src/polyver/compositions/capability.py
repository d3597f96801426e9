"""The contribution of the capability compositions, and the choice of the functions' runtime."""

from __future__ import annotations

import datetime
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from polyver.capability.contributions import READ, Contribution, Right
from polyver.compositions.settings import PackageSettings

if TYPE_CHECKING:
    from collections.abc import Iterator

    from polyver.client import Client
    from polyver.compositions.calls import CertificateFolder
    from polyver.compositions.controllers.packages import Dependents, Users
    from polyver.compositions.runtimes import Runtime
    from polyver.compositions.runtimes.process import ProcessRuntime
    from polyver.controllers import Controller
    from polyver.kube.http.logs import Log
    from polyver.kube.server.admission import Admission
    from polyver.web.sources import PageSource

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
    """Return the contribution that installs functions and runs their revisions.

    Functions run as processes with their files in a folder, or as Deployments in a namespace.
    """
    from polyver.compositions.admission.compositions import COMPOSITIONS_WANTED
    from polyver.compositions.admission.packages import PACKAGES_WANTED
    from polyver.compositions.controllers.packages import Compositions, CompositionsOn
    from polyver.compositions.kinds import COMPOSITION_KINDS, KINDS

    several = settings.several
    runtime = partial(_runtime, settings, folder=folder, namespace=namespace)
    return Contribution(
        kinds=(*KINDS, *COMPOSITION_KINDS),
        links=lambda client: package_links(client, CompositionsOn(client), several=several),
        wanted=(*PACKAGES_WANTED, *COMPOSITIONS_WANTED),
        controllers=lambda client: package_controllers(
            client, runtime(client), Compositions(), several=several
        ),
        rights=(*_rights(), *_rights_of_compositions()),
        rights_inside=() if settings.runs_processes else tuple(_rights_inside()),
        source=_source,
    )


def _source() -> PageSource:
    from polyver.compositions.page.revisions import RevisionsSource

    return RevisionsSource()


def package_links(client: Client, users: Users, *, several: bool) -> list[Admission]:
    """Return the admission checks of this capability."""
    from polyver.compositions.admission.compositions import (
        CompositeDefinitionChecks,
        CompositionChecks,
        CompositionRevisionChecks,
    )
    from polyver.compositions.admission.packages import FunctionRevisionChecks, PackageChecks
    from polyver.compositions.controllers.compositions import ClientCompositionLookup
    from polyver.compositions.controllers.packages import ClientFunctionLookup

    installed, composed = ClientFunctionLookup(client, users), ClientCompositionLookup(client)
    return [
        PackageChecks(installed, several=several),
        FunctionRevisionChecks(installed),
        CompositeDefinitionChecks(composed),
        CompositionChecks(composed, several=several),
        CompositionRevisionChecks(composed, several=several),
    ]


def package_controllers(
    client: Client, runtime: Runtime, dependents: Dependents, *, several: bool
) -> list[Controller[Any]]:
    """Return the controllers of this capability; the runtime ends with them."""
    from polyver.compositions.controllers.composites import CompositeController
    from polyver.compositions.controllers.compositions import (
        CompositeDefinitionController,
        CompositionController,
    )
    from polyver.compositions.controllers.packages import (
        FunctionController,
        FunctionRevisionController,
    )

    return [
        FunctionController(client, runtime, dependents=dependents, several=several),
        FunctionRevisionController(client, runtime),
        CompositeDefinitionController(client),
        CompositionController(client, several=several),
        CompositeController(client, runtime, several=several),
    ]


def _runtime(
    settings: PackageSettings, client: Client, *, folder: Path | None, namespace: str
) -> Runtime:
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
    """Return the folder with the certificates of polyver and of functions."""
    from polyver.compositions.calls import CertificateFolder

    return CertificateFolder(folder / _FOLDER / "certificates")


def process_runtime(
    folder: Path, settings: PackageSettings, *, log: Log | None = None
) -> ProcessRuntime:
    """Return the runtime that runs functions as child processes; only allowed packages run."""
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
    """Return the folder in which processes of functions write their output: REVISION.log."""
    return folder / _FOLDER / "logs"


def _rights() -> Iterator[Right]:
    from polyver.compositions.kinds import FUNCTION_REVISIONS, FUNCTIONS, GROUP

    functions, revisions = FUNCTIONS.names.plural, FUNCTION_REVISIONS.names.plural
    yield Right(GROUP, functions, (*READ, "patch"))
    yield Right(GROUP, f"{functions}/status", ("update",))
    yield Right(GROUP, revisions, (*READ, "create", "patch", "delete"))
    yield Right(GROUP, f"{revisions}/status", ("update",))
    yield Right("", "events", ("create",))


def _rights_of_compositions() -> Iterator[Right]:
    from polyver.compositions.kinds import (
        COMPOSITION_GROUP,
        COMPOSITION_REVISIONS,
        COMPOSITIONS,
        DEFINITIONS,
    )

    definitions, crds = DEFINITIONS.names.plural, "customresourcedefinitions"
    yield Right(COMPOSITION_GROUP, definitions, (*READ, "patch"))
    yield Right(COMPOSITION_GROUP, f"{definitions}/status", ("update",))
    yield Right("apiextensions.k8s.io", crds, ("create", "delete"))
    yield Right("apiextensions.k8s.io", f"{crds}/status", ("patch",))
    yield Right(COMPOSITION_GROUP, COMPOSITIONS.names.plural, (*READ, "patch"))
    yield Right(COMPOSITION_GROUP, f"{COMPOSITIONS.names.plural}/status", ("update",))
    yield Right(COMPOSITION_GROUP, COMPOSITION_REVISIONS.names.plural, (*READ, "create", "patch"))


def _rights_inside() -> Iterator[Right]:
    """Rights for the Deployments, Services and Secrets of functions."""
    yield Right("apps", "deployments", (*READ, "create", "patch", "delete"))
    yield Right("", "services", ("get", "create", "patch", "delete"))
    yield Right("", "secrets", ("get", "create", "update", "patch", "delete"))
