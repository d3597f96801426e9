"""Masking of secrets in the messages that a composite resource reports.

Functions get credentials and connection details, and may quote them in a result, a condition or an
error; an API server may quote them in a refusal. Status fields that functions compose are not
masked: they are desired content, not messages.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any

from polyver.compositions.messages import Resource
from polyver.compositions.pipeline import FoundRequirements, PipelineOutcome, PipelineRun
from polyver.kube.objects.masking import Masks
from polyver.kube.objects.status import ApiError

__all__ = ["hide_found", "hide_run", "masked_error", "masked_outcome"]


def hide_run(masks: Masks, run: PipelineRun) -> None:
    """Mask the credentials, connection details and Secrets of a run from now on."""
    for step in run.credentials.values():
        for data in step.values():
            _hide_data(masks, data)
    for state in (run.observed, run.desired):
        _hide(masks, [state.composite, *state.resources.values()])


def hide_found(masks: Masks, found: FoundRequirements) -> None:
    """Mask the Secrets among the resources that a function required."""
    for given in (found.resources, found.extra_resources):
        for each in given.values():
            _hide(masks, each)


def _hide(masks: Masks, resources: Iterable[Resource]) -> None:
    for each in resources:
        _hide_data(masks, each.connection_details)
        obj: Mapping[str, Any] = each.resource or {}
        if (obj.get("apiVersion"), obj.get("kind")) == ("v1", "Secret"):
            masks.add_secret(obj)


def _hide_data(masks: Masks, data: Mapping[str, bytes]) -> None:
    for content in data.values():
        masks.add_bytes(content)


def masked_outcome(outcome: PipelineOutcome, masks: Masks) -> PipelineOutcome:
    """Return an outcome whose messages show no secret."""
    if not masks:
        return outcome
    failure = outcome.failure
    return replace(
        outcome,
        events=tuple(replace(each, message=masks.mask(each.message)) for each in outcome.events),
        conditions=tuple(
            each._replace(message=masks.mask(each.message)) for each in outcome.conditions
        ),
        failure=failure and replace(failure, message=masks.mask(failure.message)),
    )


def masked_error(error: ApiError, masks: Masks) -> ApiError:
    """Return a refusal whose message shows no secret, for the log."""
    return ApiError(error.code, error.reason, masks.mask(error.message), headers=error.headers)
