"""Declares the capability `compositions`: its kinds, checks, controllers, commands and options."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

from polyver.capability.capability import Capability, Surroundings
from polyver.capability.contributions import READ, Contribution, Right
from polyver.compositions.options import CompositionOptions, CompositionPlanOptions
from polyver.compositions.settings import PackageSettings

if TYPE_CHECKING:
    from collections.abc import Iterator

    from polyver.capability import LineageReader
    from polyver.capability.planning import Planner
    from polyver.capability.subjects import Subject
    from polyver.client import Client
    from polyver.compositions.controllers.packages import Dependents, Users
    from polyver.compositions.rollout_targets import LiveController
    from polyver.compositions.runtimes import Runtime
    from polyver.controllers import Controller
    from polyver.kube.server.admission import Admission
    from polyver.web.sources import PageSource

__all__ = ["CAPABILITY", "package_controllers", "package_links"]


def _contribution(settings: PackageSettings | None, around: Surroundings) -> Contribution:
    """Return the kinds, checks and controllers that the capability adds to a control plane.

    `around` contains the folder for functions that run as processes, and the namespace for
    functions that run as Deployments.
    """
    from polyver.compositions.admission.compositions import COMPOSITIONS_WANTED
    from polyver.compositions.admission.packages import PACKAGES_WANTED
    from polyver.compositions.controllers.packages import Compositions, CompositionsOn
    from polyver.compositions.kinds import COMPOSITION_KINDS, KINDS
    from polyver.compositions.rollout_targets import LiveController, rollout_targets
    from polyver.compositions.runtime_choice import runtime_for
    from polyver.compositions.version_users import compositions_for

    live = LiveController()
    settings = settings or PackageSettings()
    several = settings.several
    runtime = partial(runtime_for, settings, folder=around.folder, namespace=around.namespace)
    return Contribution(
        kinds=(*KINDS, *COMPOSITION_KINDS),
        links=lambda client: package_links(client, CompositionsOn(client), several=several),
        wanted=(*PACKAGES_WANTED, *COMPOSITIONS_WANTED),
        controllers=lambda client: package_controllers(
            client, runtime(client), Compositions(), several=several, live=live
        ),
        rollout_targets=lambda client: rollout_targets(client, live),
        version_users=(compositions_for,),
        rights=(*_rights(), *_rights_of_compositions()),
        rights_inside=() if settings.runs_processes else tuple(_rights_inside()),
        source=_source,
    )


def _source() -> PageSource:
    from polyver.compositions.page.revisions import RevisionsSource

    return RevisionsSource()


def package_links(client: Client, users: Users, *, several: bool) -> list[Admission]:
    """Return the admission checks of the capability `compositions`."""
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
    client: Client,
    runtime: Runtime,
    dependents: Dependents,
    *,
    several: bool,
    live: LiveController | None = None,
) -> list[Controller[Any]]:
    """Return the controllers of the capability `compositions`.

    They close `runtime` when they end. `live.controller` is set to the controller of composite
    resources.
    """
    from polyver.compositions.controllers.composites import CompositeController
    from polyver.compositions.controllers.compositions import (
        CompositeDefinitionController,
        CompositionController,
    )
    from polyver.compositions.controllers.packages import (
        FunctionController,
        FunctionRevisionController,
    )

    composites = CompositeController(client, runtime, several=several)
    if live is not None:
        live.controller = composites
    return [
        FunctionController(client, runtime, dependents=dependents, several=several),
        FunctionRevisionController(client, runtime),
        CompositeDefinitionController(client),
        CompositionController(client, several=several),
        composites,
    ]


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
    """Yield the permissions for the Deployments, Services and Secrets of functions."""
    yield Right("apps", "deployments", (*READ, "create", "patch", "delete"))
    yield Right("", "services", ("get", "create", "patch", "delete"))
    yield Right("", "secrets", ("get", "create", "update", "patch", "delete"))


def _reader() -> LineageReader:
    from polyver.compositions.lineages import READER

    return READER


def _subjects() -> tuple[Subject, ...]:
    from polyver.compositions.commands.subjects import SUBJECTS

    return SUBJECTS


def _planner() -> Planner:
    from polyver.compositions.commands.plan import PLANNER

    return PLANNER


CAPABILITY = Capability(
    name="compositions",
    contribution=_contribution,
    earlier_name="revisions",
    requires=("apis",),
    options=CompositionOptions,
    commands={
        "packages": "polyver.compositions.commands.packages:app",
        "render": "polyver.compositions.commands.render:app",
    },
    reader=_reader,
    subjects=_subjects,
    planner=_planner,
    plan_options=CompositionPlanOptions,
)
