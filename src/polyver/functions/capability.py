"""The contribution of the capability functions."""

from __future__ import annotations

from typing import TYPE_CHECKING

from polyver.capability.contributions import READ, Contribution, Right
from polyver.functions.settings import CallSettings

if TYPE_CHECKING:
    from polyver.client import Client
    from polyver.functions.controllers.actions import CallLimits
    from polyver.functions.controllers.calls import FunctionCaller
    from polyver.functions.controllers.workers import Lend
    from polyver.functions.registering import Functions
    from polyver.web.sources import PageSource

__all__ = ["actions"]

_PATH = "/functions"


def actions(functions: Functions, *, calls: CallSettings, lend: Lend | None = None) -> Contribution:
    """Return the contribution that checks blueprints, lists functions and runs actions."""
    from polyver.functions.admission import BLUEPRINTS_WANTED, ActionSetChecks, BlueprintChecks
    from polyver.functions.controllers.actions import ActionSetController, CallLimits
    from polyver.functions.kinds import ACTION_SETS, BLUEPRINTS
    from polyver.functions.registering import functions_data
    from polyver.kube.http.logs import Log
    from polyver.kube.objects import encode_json

    limits, log = CallLimits(seconds=calls.seconds), Log(verbose=True)
    sets = ACTION_SETS.names.plural
    return Contribution(
        kinds=(BLUEPRINTS, ACTION_SETS),
        links=lambda _: [BlueprintChecks(functions), ActionSetChecks()],
        wanted=BLUEPRINTS_WANTED,
        controllers=lambda client: [
            ActionSetController(
                client,
                functions,
                calls=_calls(client, functions, calls, limits, lend),
                limits=limits,
                allows=calls.allows,
                log=log,
            )
        ],
        rights=(
            Right(BLUEPRINTS.group, BLUEPRINTS.names.plural, ("get",)),
            Right(ACTION_SETS.group, sets, (*READ, "patch")),
            Right(ACTION_SETS.group, f"{sets}/status", ("update",)),
            Right("", "events", ("create",)),
        ),
        documents={_PATH: encode_json(functions_data(functions))},
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
