"""The capability revisions, wired: its kinds, its checks, its controllers, and what serves them.

All of it is loaded when it is wanted: its kinds take longer to load than everything around them.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from polyver.admission.chain import Admission
    from polyver.admission.configurations import Wanted
    from polyver.apis import Kind
    from polyver.client import Client
    from polyver.engine import Controller
    from polyver.engine.packages import Dependents, Users
    from polyver.engine.runtimes import Runtime
    from polyver.server.api import Api

__all__ = [
    "PackageSettings",
    "logs_folder",
    "package_controllers",
    "package_kinds",
    "package_links",
    "packages_wanted",
    "process_runtime",
    "serve_packages",
]

_FOLDER = "packages"


@dataclass(frozen=True, slots=True)
class PackageSettings:
    """What functions of compositions may be run, and how."""

    file: Path | None = None
    """A mapping from references to folders, wheels and requirements, which may be run."""
    allows_others: bool = False
    """Whether `file:` and `pypi:` references are run that it does not name."""
    several: bool = True
    """The switch FunctionRevisions: whether functions may have several active revisions."""
    runtime: Runtime | None = None
    """What serves revisions; without, processes beside this one."""


def package_kinds() -> tuple[Kind, ...]:
    """The kinds, which are served like those of users."""
    from polyver.capabilities.revisions.kinds import KINDS

    return KINDS


def packages_wanted() -> tuple[Wanted, ...]:
    """What API servers are to ask about."""
    from polyver.admission.packages import PACKAGES_WANTED

    return PACKAGES_WANTED


def serve_packages(
    api: Api, client: Client, settings: PackageSettings, folder: Path
) -> list[Controller[Any]]:
    """Have packages checked; the controllers that install and serve them are returned."""
    from polyver.engine.packages import Compositions, CompositionsOn

    runtime = settings.runtime or process_runtime(folder, settings)
    for link in package_links(client, CompositionsOn(client), several=settings.several):
        api.admission.add(link)
    return package_controllers(client, runtime, Compositions(), several=settings.several)


def package_links(client: Client, users: Users, *, several: bool) -> list[Admission]:
    """Those who have a say in writes."""
    from polyver.admission.packages import FunctionRevisionChecks, PackageChecks
    from polyver.engine.packages import InstalledOn

    installed = InstalledOn(client, users)
    return [PackageChecks(installed, several=several), FunctionRevisionChecks(installed)]


def package_controllers(
    client: Client, runtime: Runtime, dependents: Dependents, *, several: bool
) -> list[Controller[Any]]:
    """Those who make revisions and have them served; the runtime ends with them."""
    from polyver.engine.packages import FunctionController, FunctionRevisionController

    return [
        FunctionController(client, runtime, dependents=dependents, several=several),
        FunctionRevisionController(client, runtime),
    ]


def process_runtime(folder: Path, settings: PackageSettings) -> Runtime:
    """Processes beside this one, with all that they need in a folder; and others' addresses."""
    import datetime

    from polyver.calling import CertificateFolder, Trust
    from polyver.engine.runtimes.chosen import ChosenRuntime
    from polyver.engine.runtimes.external import ExternalRuntime
    from polyver.engine.runtimes.process import Packages, ProcessRuntime, read_packages

    named = read_packages(settings.file) if settings.file is not None else {}
    certificates = CertificateFolder(folder / _FOLDER / "certificates")

    async def trust(revision: str) -> Trust:
        return certificates.trust(revision, now=datetime.datetime.now(datetime.UTC))

    packages = Packages(named, settings.allows_others)
    run = ProcessRuntime(folder / _FOLDER, packages, certificates)
    return ChosenRuntime(ExternalRuntime(trust), run)


def logs_folder(folder: Path) -> Path:
    """Where processes of functions leave what they print: REVISION.log."""
    return folder / _FOLDER / "logs"
