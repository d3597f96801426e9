"""The start of an ActionSet: reads its blueprints and objects, and creates the run."""

from __future__ import annotations

import asyncio
from dataclasses import replace

from polyver.client import Client, GroupVersionResource, find
from polyver.core import PolyverError
from polyver.core.plain import Object
from polyver.functions.actions import ActionSetRun, checked, refused, start, wanted_of
from polyver.functions.blueprints import Blueprint, blueprint_of
from polyver.functions.controllers._template_data import NotThere, read_workload
from polyver.functions.kinds import BLUEPRINTS, GROUP
from polyver.functions.registering import Functions
from polyver.kube.objects.status import ApiError

__all__ = ["begun", "is_final"]

_BLUEPRINTS = GroupVersionResource(GROUP, "v1alpha1", BLUEPRINTS.definition().names.plural)
_PASSING = (401, 408, 409, 429)


def is_final(error: PolyverError) -> bool:
    """Report whether a retry would fail again: the request is invalid, not merely delayed."""
    return not isinstance(error, ApiError) or (
        400 <= error.code < 500 and error.code not in _PASSING
    )


async def begun(
    client: Client, action_set: Object, functions: Functions, *, time: str
) -> ActionSetRun:
    """Return the run of an ActionSet that starts now, or one with a refusal."""
    namespace = action_set["metadata"].get("namespace", "")
    wanted = wanted_of(action_set)
    try:
        names = {each.blueprint for each in wanted if each.blueprint}
        found = {name: await _blueprint(client, name, namespace) for name in sorted(names)}
        # In a thread: a large blueprint takes time, and must not block the event loop.
        run = await asyncio.to_thread(start, wanted, found.get, functions, time=time)
        if run.refusal:
            return run
        run = await _with_workloads(client, run, namespace)
        return await asyncio.to_thread(checked, run, functions)
    except PolyverError as error:
        if not is_final(error):
            raise
        return refused(str(error))


async def _blueprint(client: Client, name: str, namespace: str) -> Blueprint | None:
    found = await find(client, _BLUEPRINTS, name, namespace)
    if found is None:
        return None
    blueprint, problems = await asyncio.to_thread(blueprint_of, found)
    if blueprint is None:
        raise NotThere(f"blueprint {name} cannot be read: {problems[-1].fact}")
    return blueprint


async def _with_workloads(client: Client, run: ActionSetRun, namespace: str) -> ActionSetRun:
    """Add a snapshot of the actions' objects, which is used until the end of the run."""
    for number, action in enumerate(run.actions):
        reference = action.snapshot["spec"].get("object")
        if reference:
            at = f"spec.actions[{number}].object"
            _, params = await read_workload(client, reference, namespace, at=at)
            snapshot = {**action.snapshot, "workload": params}
            run = run.with_action(number, replace(action, snapshot=snapshot))
    return run
