"""The objects that `polyver render` prints: the composite resource, then its composed resources.

The output has the same format as the output of Crossplane's command, so tools that compare such
outputs work with both commands.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from polyver.compositions.messages import Response, Severity
from polyver.compositions.pipeline import (
    ComposedResource,
    PipelineOutcome,
    PipelineRun,
    composite_conditions,
)
from polyver.core.plain import Object

__all__ = ["Included", "rendered"]

NOW: Final = "2024-01-01T00:00:00Z"
"""The value of `lastTransitionTime` in all conditions. It is constant, so runs can be compared."""
_VERSION = "render.crossplane.io/v1beta1"


@dataclass(frozen=True, slots=True)
class Included:
    """The optional parts that the output of `polyver render` includes."""

    results: bool = False
    full: bool = False
    context: bool = False


def rendered(
    run: PipelineRun, outcome: PipelineOutcome, answers: Mapping[str, Response], included: Included
) -> list[Object]:
    """Build all objects to print. The fields of each object are sorted by name."""
    composite = run.observed.composite.resource
    found = [_composite(composite, outcome, full=included.full)]
    found += [_composed(run, each) for each in outcome.apply]
    if included.results:
        found += _results(run, answers)
    if included.context:
        found.append(
            {"apiVersion": _VERSION, "kind": "Context", "fields": dict(outcome.context or {})}
        )
    return [_ordered(each) for each in found]


def _composite(obj: Object, outcome: PipelineOutcome, *, full: bool) -> Object:
    metadata = obj["metadata"]
    names = {key: metadata[key] for key in ("name", "namespace") if metadata.get(key)}
    conditions = composite_conditions({"metadata": metadata}, outcome, now=NOW)
    # Omit Synced. It is unknown whether the API server would accept the object, because no object
    # is applied.
    told = [each for each in conditions if each["type"] != "Synced"]
    if "generation" not in metadata:
        told = [{k: v for k, v in each.items() if k != "observedGeneration"} for each in told]
    made = {
        "apiVersion": obj["apiVersion"],
        "kind": obj["kind"],
        "metadata": metadata if full else names,
        "status": {**outcome.status, "conditions": told},
    }
    return made | ({"spec": obj["spec"]} if full and "spec" in obj else {})


def _composed(run: PipelineRun, composed: ComposedResource) -> Object:
    """Return a composed resource as the controller would apply it.

    If its name depends on the uid of the composite resource, which is unknown here, the object has
    `generateName` instead of a name.
    """
    about = run.observed.composite.resource["metadata"]
    metadata: Object = dict(composed.obj["metadata"])
    given = run.desired.resources[composed.name].resource.get("metadata") or {}
    there = run.observed.resources.get(composed.name) if composed.exists else None
    is_named = given.get("name") or (there is not None and there.resource["metadata"].get("name"))
    if not about.get("uid") and not is_named:
        del metadata["name"]
        metadata["generateName"] = given.get("generateName") or f"{about['name']}-"
    return {**composed.obj, "metadata": metadata}


def _results(run: PipelineRun, answers: Mapping[str, Response]) -> list[Object]:
    return [
        {
            "apiVersion": _VERSION,
            "kind": "Result",
            "step": step.name,
            "severity": f"SEVERITY_{Severity(result.severity).name}",
            "message": result.message,
            **({"reason": result.reason} if result.reason else {}),
        }
        for step in run.steps
        if step.name in answers
        for result in answers[step.name].results
    ]


def _ordered(value: Any) -> Any:
    """Sort mappings by key, because functions return keys in any order."""
    if isinstance(value, Mapping):
        return {key: _ordered(value[key]) for key in sorted(value)}
    return [_ordered(each) for each in value] if isinstance(value, list | tuple) else value
