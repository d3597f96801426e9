"""A pipeline driven to its end: whatever it wants next is done, and the result given back.

Who calls functions and who looks for resources is passed in, so that a controller and a command
that knows nothing but files run the same.
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
"""Calls the revision of a step; FunctionFailed if nothing comes of it."""
Look = Callable[[Requirements], Awaitable[FoundRequirements]]
"""Looks for what a function wants to see; Refusal if that cannot be looked for."""


async def drive(run: PipelineRun, ask: Ask, look: Look) -> PipelineRun:
    """The run when it is over, whether all went well or something failed."""
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
