"""Declares the capability `definitions`: its kinds, checks, controllers, commands and options."""

from __future__ import annotations

from typing import TYPE_CHECKING

from polyver.capability.capability import Capability, Surroundings
from polyver.capability.contributions import READ, Contribution, Right
from polyver.definitions.options import (
    DefinitionOptions,
    DefinitionPlanOptions,
    DefinitionSettings,
)

if TYPE_CHECKING:
    from collections.abc import Iterator

    from polyver.capability import LineageReader
    from polyver.capability.planning import Planner
    from polyver.capability.rollouts import RolloutTargets
    from polyver.capability.subjects import Subject
    from polyver.client import Client
    from polyver.definitions.publishing import GatePolicy
    from polyver.kube.server.admission import Admission
    from polyver.web.sources import PageSource

__all__ = ["CAPABILITY"]


def _contribution(settings: DefinitionSettings | None, around: Surroundings) -> Contribution:
    """Return the kinds, checks and controllers that this capability adds to a control plane."""
    del around
    from polyver.definitions.admission import DEFINITIONS_WANTED
    from polyver.definitions.controllers.applications import ApplicationController
    from polyver.definitions.controllers.definitions import DefinitionController
    from polyver.definitions.kinds import KINDS
    from polyver.definitions.names import SYSTEM_NAMESPACE
    from polyver.definitions.version_users import applications_with

    gate = (settings or DefinitionSettings()).gate
    return Contribution(
        kinds=KINDS,
        links=lambda client: _links(client, gate),
        wanted=DEFINITIONS_WANTED,
        controllers=lambda client: [
            DefinitionController(client, gate=gate),
            ApplicationController(client),
        ],
        rights=tuple(_rights()),
        namespaces=(SYSTEM_NAMESPACE,),
        rollout_targets=_rollout_targets,
        version_users=(applications_with,),
        source=_source,
    )


def _rollout_targets(client: Client) -> list[RolloutTargets]:
    from polyver.definitions.rollout_targets import DefinitionTargets

    return [DefinitionTargets(client)]


def _source() -> PageSource:
    from polyver.definitions.page import DefinitionsSource

    return DefinitionsSource()


def _links(client: Client, gate: GatePolicy) -> list[Admission]:
    from polyver.definitions.admission import ApplicationChecks, DefinitionChecks, RevisionChecks
    from polyver.definitions.controllers.definitions import ClientDefinitionLookup

    published = ClientDefinitionLookup(client)
    return [DefinitionChecks(published, gate=gate), RevisionChecks(published), ApplicationChecks()]


def _rights() -> Iterator[Right]:
    from polyver.definitions.kinds import (
        APPLICATION_REVISIONS,
        APPLICATIONS,
        DEFINITIONS,
        GROUP,
        REVISIONS,
    )

    for kind in DEFINITIONS:
        yield Right(GROUP, kind.names.plural, (*READ, "patch"))
        yield Right(GROUP, f"{kind.names.plural}/status", ("patch",))
    applications = APPLICATIONS.names.plural
    yield Right(GROUP, applications, (*READ, "patch"))
    yield Right(GROUP, f"{applications}/status", ("update",))
    records = REVISIONS.names.plural
    yield Right(GROUP, records, (*READ, "create", "patch", "delete"))
    records = APPLICATION_REVISIONS.names.plural
    yield Right(GROUP, records, (*READ, "create", "delete"))
    yield Right("", "events", ("create",))


def _reader() -> LineageReader:
    from polyver.definitions.lineages import READER

    return READER


def _subjects() -> tuple[Subject, ...]:
    from polyver.definitions.commands.subjects import SUBJECTS

    return SUBJECTS


def _planner() -> Planner:
    from polyver.definitions.commands.plan import PLANNER

    return PLANNER


CAPABILITY = Capability(
    name="definitions",
    contribution=_contribution,
    requires=("apis",),
    options=DefinitionOptions,
    commands={
        "app": "polyver.definitions.commands.app:app",
        "lock": "polyver.definitions.commands.lock:app",
        "verify": "polyver.definitions.commands.verify:app",
    },
    reader=_reader,
    subjects=_subjects,
    planner=_planner,
    plan_options=DefinitionPlanOptions,
)
