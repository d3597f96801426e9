"""The capability functions in the embedded control plane: its kinds, its checks, what there is."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from polyver.capabilities.functions.registering import Functions
    from polyver.engine import Controller
    from polyver.server._http import Request
    from polyver.server.api import Api
    from polyver.serving.http import Response

__all__ = ["CallSettings", "serve_functions"]

_PATH = "/functions"


@dataclass(frozen=True, slots=True)
class CallSettings:
    """What calls of functions may do and take."""

    seconds: float = 3600.0
    allows: frozenset[str] = frozenset()
    """`command`, if local processes may be run."""


async def serve_functions(
    api: Api, functions: Functions, *, calls: CallSettings
) -> list[Controller[Any]]:
    """Have Blueprints and ActionSets defined and checked, and functions discovered.

    What runs them is returned.
    """
    from polyver.admission.blueprints import ActionSetChecks, BlueprintChecks
    from polyver.apis import crd_of
    from polyver.capabilities.functions.kinds import ACTION_SETS, BLUEPRINTS
    from polyver.capabilities.functions.registering import functions_data
    from polyver.cli._loading import apply_definition
    from polyver.engine.actions import ActionSetController, CallLimits
    from polyver.objects import encode_json
    from polyver.server.direct import DirectClient
    from polyver.server.identity import ADMIN
    from polyver.serving.logs import Log

    client = DirectClient(api, ADMIN, agent="polyver")
    api.catalogue.subscribe(client.kinds_changed)
    api.admission.add(BlueprintChecks(functions))
    api.admission.add(ActionSetChecks())
    for kind in (BLUEPRINTS, ACTION_SETS):
        await apply_definition(client, crd_of(kind.definition()))
    api.pages[_PATH] = partial(_answer, encode_json(functions_data(functions)))
    limits = CallLimits(seconds=calls.seconds)
    log = Log(verbose=True)
    allows = calls.allows
    return [ActionSetController(client, functions, limits=limits, allows=allows, log=log)]


async def _answer(body: bytes, request: Request) -> Response:
    from polyver.serving.http import Response

    del request
    return Response(200, [("content-type", "application/json")], body)
