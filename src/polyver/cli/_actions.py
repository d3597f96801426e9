"""The capability functions, as it is contributed to a control plane."""

from __future__ import annotations

from typing import TYPE_CHECKING

from polyver.cli._call_settings import CallSettings
from polyver.cli._contributions import READ, Contribution, Right

if TYPE_CHECKING:
    from polyver.capabilities.functions.registering import Functions
    from polyver.client import Client
    from polyver.engine.actions import CallLimits
    from polyver.engine.calls import Calls, Lend
    from polyver.web.sources import Source

__all__ = ["actions"]

_PATH = "/functions"


def actions(functions: Functions, *, calls: CallSettings, lend: Lend | None = None) -> Contribution:
    """What checks blueprints, tells which functions there are, and runs actions."""
    from polyver.admission.blueprints import (
        BLUEPRINTS_WANTED,
        ActionSetChecks,
        BlueprintChecks,
    )
    from polyver.capabilities.functions.kinds import ACTION_SETS, BLUEPRINTS
    from polyver.capabilities.functions.registering import functions_data
    from polyver.engine.actions import ActionSetController, CallLimits
    from polyver.objects import encode_json
    from polyver.serving.logs import Log

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
) -> Calls:
    from polyver.cli._worker import COMMAND
    from polyver.engine.calls import ThreadCalls, WorkerCalls

    if settings.in_threads:
        return ThreadCalls(client, limits)
    assert functions.origin is not None, "these functions can only be called in threads"
    assert lend is not None, "calls need credentials"
    return WorkerCalls(functions.origin, lend, COMMAND, limits)


def _source(functions: Functions) -> Source:
    from polyver.web.sources.functions import FunctionsSource

    return FunctionsSource(functions)
