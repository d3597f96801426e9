"""A pipeline is driven to its end by whoever calls functions and looks for resources."""

from __future__ import annotations

import asyncio

import pytest

from polyver.capability import Refusal
from polyver.compositions.calls import CallFailure, FunctionFailed
from polyver.compositions.controllers.composites import drive
from polyver.compositions.messages import (
    Request,
    Requirements,
    Resource,
    ResourceSelector,
    Response,
    State,
)
from polyver.compositions.pipeline import (
    FoundRequirements,
    PipelineRun,
    ResolvedStep,
    conclude,
    start,
)

WANTED = Requirements(resources={"them": ResourceSelector("v1", "ConfigMap", match_name="a")})
THERE = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a"}}


def begun(*steps: str) -> PipelineRun:
    xr = {"apiVersion": "ex.io/v1", "kind": "Shop", "metadata": {"name": "a", "uid": "u"}}
    named = [ResolvedStep(step, "resize", "resize-0123456789ab", "") for step in steps]
    return start(State(Resource(xr)), tuple(named))


async def nothing_there(wanted: Requirements) -> FoundRequirements:
    return FoundRequirements(dict.fromkeys(wanted.resources, ()))


def test_steps_are_called_in_order_and_see_what_the_one_before_wanted() -> None:
    async def ask(step: ResolvedStep, request: Request) -> Response:
        seen = {**(request.context or {}), step.name: len(request.context or {})}
        return Response(desired=request.desired, context=seen)

    run = asyncio.run(drive(begun("first", "second"), ask, nothing_there))
    assert conclude(run).context == {"first": 0, "second": 1}


def test_a_function_is_called_again_with_what_it_asked_for() -> None:
    async def ask(step: ResolvedStep, request: Request) -> Response:
        found = [each.resource["metadata"]["name"] for each in _found(request)]
        return Response(context={"found": found}, requirements=WANTED)

    async def look(wanted: Requirements) -> FoundRequirements:
        assert wanted == WANTED
        return FoundRequirements({"them": (Resource(THERE),)})

    run = asyncio.run(drive(begun("only"), ask, look))
    assert conclude(run).context == {"found": ["a"]}


def _found(request: Request) -> tuple[Resource, ...]:
    return request.required_resources.get("them", ())


@pytest.mark.parametrize("broken", ["call", "look"])
def test_what_fails_ends_the_run_with_the_step_and_the_reason(broken: str) -> None:
    async def ask(step: ResolvedStep, request: Request) -> Response:
        if broken == "call":
            raise FunctionFailed(CallFailure.DEADLINE, "is too slow", revision=step.revision)
        return Response(requirements=WANTED)

    async def look(wanted: Requirements) -> FoundRequirements:
        raise Refusal("NoSuchKind", "no such kind is served")

    failure = conclude(asyncio.run(drive(begun("only", "never"), ask, look))).failure
    assert failure is not None
    reason = {"call": "DeadlineExceeded", "look": "NoSuchKind"}[broken]
    assert failure.reason == reason
    assert 'pipeline step "only"' in failure.message
