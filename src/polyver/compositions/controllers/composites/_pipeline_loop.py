"""Runs a pipeline to its end: performs each requested effect, and passes the result back.

The caller passes in the functions that call and look up, so that the controller and `polyver
render`, which has only files, share this code.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable

from polyver.capability import Refusal
from polyver.compositions.calls import FunctionFailed
from polyver.compositions.messages import Request, Requirements, Response
from polyver.compositions.pipeline import (
    CallStep,
    Done,
    Fetch,
    FoundRequirements,
    PipelineRun,
    ResolvedStep,
    answered,
    decide,
    failed,
    fetched,
)

__all__ = ["Ask", "Look", "drive"]

Ask = Callable[[ResolvedStep, Request], Awaitable[Response]]
"""Calls the revision of a step; raises FunctionFailed if the call fails."""
Look = Callable[[Requirements], Awaitable[FoundRequirements]]
"""Looks up the resources that a function requires; raises Refusal if that is impossible."""


async def drive(run: PipelineRun, ask: Ask, look: Look) -> PipelineRun:
    """Return the run after its end, successful or failed."""
    while True:
        effect = decide(run)
        match effect:
            case Done():
                return run
            case CallStep():
                run = await _called(run, effect, ask)
            case Fetch():
                run = await _looked(run, effect, look)


async def _called(run: PipelineRun, call: CallStep, ask: Ask) -> PipelineRun:
    try:
        return answered(run, call.number, await ask(call.step, call.request))
    except FunctionFailed as error:
        return failed(run, call.number, error.failure, str(error))


async def _looked(run: PipelineRun, fetch: Fetch, look: Look) -> PipelineRun:
    try:
        return fetched(run, fetch.number, await look(fetch.requirements))
    except Refusal as refusal:
        return failed(run, fetch.number, refusal.reason, str(refusal))
