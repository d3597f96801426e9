"""Decisions about the pipeline of functions that composes resources, on plain data.

>>> from polyver.compositions.messages import Resource, Response, State
>>> xr = {"apiVersion": "ex.io/v1", "kind": "Shop", "metadata": {"name": "a"}}
>>> step = ResolvedStep("run", "resize", "resize-0123456789ab", "")
>>> run = start(State(Resource(xr)), (step,))
>>> call = decide(run)
>>> run = answered(run, call.number, Response())
>>> decide(run), conclude(run).ready
(Done(), True)
"""

from polyver.compositions.decisions import ResolvedStep
from polyver.compositions.pipeline._outcome import (
    NOT_SERVED,
    QUARANTINED,
    WOULD_DELETE,
    FailedCompositeMove,
    PipelineOutcome,
    allows_deletion,
    composite_conditions,
    conclude,
    deleting_conditions,
    failed_move_in,
    joined,
    lost_objects,
    paused_conditions,
    published_details,
    published_to,
    refused,
    stayed_conditions,
    updated_fact,
    without,
    would_delete,
)
from polyver.compositions.pipeline._resources import (
    ComposedResource,
    RemovedResource,
    check_distinct,
    connection_secret,
    observe,
    reference_to,
    shown,
)
from polyver.compositions.pipeline._run import (
    MOST_ROUNDS,
    CallStep,
    Done,
    Effect,
    Fetch,
    FoundRequirements,
    PipelineEvent,
    PipelineFailure,
    PipelineRun,
    answered,
    decide,
    failed,
    fetched,
    found_among,
    secrets_of,
    start,
)

__all__ = [
    "MOST_ROUNDS",
    "NOT_SERVED",
    "QUARANTINED",
    "WOULD_DELETE",
    "CallStep",
    "ComposedResource",
    "Done",
    "Effect",
    "FailedCompositeMove",
    "Fetch",
    "FoundRequirements",
    "PipelineEvent",
    "PipelineFailure",
    "PipelineOutcome",
    "PipelineRun",
    "RemovedResource",
    "ResolvedStep",
    "allows_deletion",
    "answered",
    "check_distinct",
    "composite_conditions",
    "conclude",
    "connection_secret",
    "decide",
    "deleting_conditions",
    "failed",
    "failed_move_in",
    "fetched",
    "found_among",
    "joined",
    "lost_objects",
    "observe",
    "paused_conditions",
    "published_details",
    "published_to",
    "reference_to",
    "refused",
    "secrets_of",
    "shown",
    "start",
    "stayed_conditions",
    "updated_fact",
    "without",
    "would_delete",
]
