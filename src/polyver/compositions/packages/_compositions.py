"""The functions that compositions use, by the steps of relevant revisions.

A CompositionRevision is relevant if a composite resource uses it, or if it is the newest of its
composition, which a new composite resource would use.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass

from polyver.compositions._function_references import mapping, named, step_selector
from polyver.compositions.names import COMPOSITION
from polyver.compositions.packages._uses import StepFunctionUse
from polyver.core import Dependent, Serial
from polyver.core.plain import ReadOnlyObject

__all__ = ["CompositionPipeline", "pipeline_of", "revision_used", "uses_in"]


@dataclass(frozen=True, slots=True)
class CompositionPipeline:
    """The steps of a CompositionRevision that call functions."""

    name: str
    composition: str
    number: int
    uses: tuple[StepFunctionUse, ...]

    @property
    def functions(self) -> set[str]:
        return {use.function for use in self.uses}


def pipeline_of(obj: ReadOnlyObject) -> CompositionPipeline:
    """Parse a CompositionRevision leniently: an invalid step selects nothing."""
    metadata, spec = obj["metadata"], mapping(obj.get("spec"))
    composition = mapping(metadata.get("labels")).get(COMPOSITION) or metadata["name"]
    number = spec.get("revision")
    number = number if isinstance(number, int) and number > 0 else 1
    return CompositionPipeline(metadata["name"], composition, number, tuple(_uses(obj)))


def _uses(obj: ReadOnlyObject) -> Iterator[StepFunctionUse]:
    metadata = obj["metadata"]
    steps = mapping(obj.get("spec")).get("pipeline")
    for place, step in enumerate(steps if isinstance(steps, list) else ()):
        function = named(mapping(step).get("functionRef"))
        if function:
            dependent = Dependent(
                f"CompositionRevision {metadata['name']}",
                f"spec.pipeline[{place}]",
                metadata.get("uid", ""),
            )
            yield StepFunctionUse(dependent, function, step_selector(step))


def revision_used(composite: ReadOnlyObject) -> str:
    """Return the CompositionRevision that a composite resource uses, from either spec field."""
    spec = mapping(composite.get("spec"))
    inside = mapping(spec.get("crossplane"))
    return named(spec.get("compositionRevisionRef")) or named(inside.get("compositionRevisionRef"))


def uses_in(
    pipelines: Iterable[CompositionPipeline], used: Collection[str]
) -> list[StepFunctionUse]:
    """Return all steps of the relevant revisions; `used` are the revisions in use."""
    there = [*pipelines]
    newest: dict[str, Serial] = {}
    for each in there:
        known = newest.get(each.composition)
        newest[each.composition] = max(filter(None, (known, Serial(each.number))))
    return [
        use
        for each in there
        if each.name in used or newest[each.composition] == Serial(each.number)
        for use in each.uses
    ]
