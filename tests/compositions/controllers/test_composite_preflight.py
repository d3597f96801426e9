"""Preflights of revisions of functions: what they report if a function does not answer."""

from __future__ import annotations

import socket

import pytest
from tests.compositions import composing
from tests.compositions.controllers.composing import BUCKETS, World, is_ready, run
from tests.compositions.running import passing

from polyver.capability.gates import gate_annotations
from polyver.compositions.controllers.composites import CompositeKey, TriedRevision, _preflight
from polyver.compositions.controllers.packages import FUNCTION_REVISIONS
from polyver.compositions.messages import Request, Response
from polyver.core import Gate

NUMBER = 24


def nothing(request: Request) -> Response:
    return passing(request)


async def closed(world: World, content: str, endpoint: str) -> str:
    """Create a revision that no composite resource may use yet; return its name."""
    made = composing.function_revision(content, 2)
    made.pop("status")
    made["metadata"]["annotations"] = gate_annotations(Gate("careful"))
    made = await world.client.create(FUNCTION_REVISIONS, made)
    await world.endpoint(made, endpoint)
    return str(made["metadata"]["name"])


@pytest.mark.parametrize("answers", [True, False])
def test_a_function_that_never_answers_is_not_awaited_for_each_composite_resource(
    answers: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    # One composite resource after the other would take longer than this test may take.
    monkeypatch.setattr(_preflight, "_LONGEST_SILENCE", 0.5)

    async def scenario(world: World) -> None:
        await world.define()
        await world.install("a", 1, nothing)
        await world.compose(composing.composition())
        names = [f"bucket-{number}" for number in range(NUMBER)]
        for name in names:
            obj = {**composing.bucket(), "metadata": {"name": name}}
            await world.client.create(BUCKETS, obj)
        for name in names:
            await world.until(is_ready, name)
        endpoint = await world.serve(nothing) if answers else nobody()
        tried = TriedRevision("Function", await closed(world, "b", endpoint))
        keys = [CompositeKey(composing.GROUP, composing.KIND, "", name) for name in names]
        report = await world.controller.preflight(tried, keys)
        while answers and report.counts.fails:  # the endpoint may not be known yet
            report = await world.controller.preflight(tried, keys)
        assert (report.counts.unchanged, report.counts.fails) == (
            (NUMBER, 0) if answers else (0, NUMBER)
        )

    run(scenario)


def nobody() -> str:
    """An address at which nothing listens."""
    with socket.create_server(("127.0.0.1", 0)) as free:
        return f"127.0.0.1:{free.getsockname()[1]}"
