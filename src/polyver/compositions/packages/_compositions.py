"""What compositions ask of functions: the steps of their revisions, as far as somebody needs them.

A CompositionRevision counts if a composite resource uses it, or if it is the newest of its
composition, which the next one would use.
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
    """A CompositionRevision as it was read; what makes no sense in it asks for nothing."""
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
    """The CompositionRevision that a composite resource uses, in either place it may be written."""
    spec = mapping(composite.get("spec"))
    inside = mapping(spec.get("crossplane"))
    return named(spec.get("compositionRevisionRef")) or named(inside.get("compositionRevisionRef"))


def uses_in(
    pipelines: Iterable[CompositionPipeline], used: Collection[str]
) -> list[StepFunctionUse]:
    """All steps of the revisions that count; `used` are those that composite resources use."""
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
