"""Declares the capability `functions`: its kinds, checks, controllers, commands and options."""

from __future__ import annotations

from typing import TYPE_CHECKING

from polyver.capability.capability import Capability, Surroundings
from polyver.capability.contributions import READ, Contribution, Right
from polyver.functions.options import FunctionOptions
from polyver.functions.settings import CallSettings, FunctionSettings

if TYPE_CHECKING:
    from polyver.capability import LineageReader
    from polyver.capability.subjects import Subject
    from polyver.client import Client
    from polyver.functions.controllers.actions import CallLimits
    from polyver.functions.controllers.calls import FunctionCaller
    from polyver.functions.controllers.workers import Lend
    from polyver.functions.registering import Functions
    from polyver.web.sources import PageSource

__all__ = ["CAPABILITY"]

_PATH = "/functions"


def _contribution(settings: FunctionSettings | None, around: Surroundings) -> Contribution:
    """Return the kinds, checks and controllers that this capability adds to a control plane."""
    from polyver.capability.gates import SYSTEM_NAMESPACE
    from polyver.functions.admission import BLUEPRINTS_WANTED, ActionSetChecks, BlueprintChecks
    from polyver.functions.controllers.actions import ActionSetController, CallLimits
    from polyver.functions.controllers.gates import FunctionGates
    from polyver.functions.gates import RECORD
    from polyver.functions.kinds import ACTION_SETS, BLUEPRINTS
    from polyver.functions.loading import built_in_functions
    from polyver.functions.registering import functions_data
    from polyver.functions.rollout_targets import FunctionTargets
    from polyver.kube.http.logs import Log
    from polyver.kube.objects import encode_json

    settings = settings or FunctionSettings()
    functions, calls = settings.functions or built_in_functions(), settings.calls
    limits, log = CallLimits(seconds=calls.seconds), Log(verbose=True)
    sets = ACTION_SETS.names.plural
    # Roles cannot restrict the creation of objects to a name.
    create, is_inside = Right("", "configmaps", ("create",)), around.namespace == SYSTEM_NAMESPACE

    async def served(client: Client) -> bytes:
        return encode_json(functions_data(await FunctionGates(client, functions).functions()))

    return Contribution(
        kinds=(BLUEPRINTS, ACTION_SETS),
        links=lambda client: [
            BlueprintChecks(FunctionGates(client, functions)),
            ActionSetChecks(),
        ],
        wanted=BLUEPRINTS_WANTED,
        controllers=lambda client: [
            ActionSetController(
                client,
                functions,
                calls=_calls(client, functions, calls, limits, around.lend),
                limits=limits,
                allows=calls.allows,
                log=log,
            )
        ],
        rights=(
            Right(BLUEPRINTS.group, BLUEPRINTS.names.plural, READ),
            Right(ACTION_SETS.group, sets, (*READ, "patch")),
            Right(ACTION_SETS.group, f"{sets}/status", ("update",)),
            Right("", "events", ("create",)),
            Right("", "configmaps", ("get", "update"), RECORD),
            *(() if is_inside else (create,)),
        ),
        rights_inside=(create,) if is_inside else (),
        namespaces=(SYSTEM_NAMESPACE,),
        documents={_PATH: served},
        rollout_targets=lambda client: (FunctionTargets(client, functions),),
        source=lambda: _source(functions),
    )


def _calls(
    client: Client,
    functions: Functions,
    settings: CallSettings,
    limits: CallLimits,
    lend: Lend | None,
) -> FunctionCaller:
    from polyver.functions.controllers.calls import ThreadCalls
    from polyver.functions.controllers.workers import WorkerCalls
    from polyver.functions.worker_process import COMMAND

    if settings.in_threads:
        return ThreadCalls(client, limits)
    assert functions.origin is not None, "these functions can only be called in threads"
    assert lend is not None, "calls need credentials"
    return WorkerCalls(functions.origin, lend, COMMAND, limits)


def _source(functions: Functions) -> PageSource:
    from polyver.functions.page import FunctionsSource

    return FunctionsSource(functions)


def _reader() -> LineageReader:
    from polyver.functions.lineages import READER

    return READER


def _subjects() -> tuple[Subject, ...]:
    from polyver.functions.commands.subjects import SUBJECTS

    return SUBJECTS


CAPABILITY = Capability(
    name="functions",
    contribution=_contribution,
    options=FunctionOptions,
    enabled_by_options=True,
    commands={
        "blueprint": "polyver.functions.commands.blueprint:app",
        "catalogue": "polyver.functions.commands.catalogue:app",
        "functions": "polyver.functions.commands.functions:app",
    },
    reader=_reader,
    subjects=_subjects,
)
