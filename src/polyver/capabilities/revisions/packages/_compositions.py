"""What compositions ask of functions: the steps of their revisions, as far as somebody needs them.

A CompositionRevision counts if a composite resource uses it, or if it is the newest of its
composition, which the next one would use.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final

from polyver.capabilities import Refusal
from polyver.capabilities.revisions.packages._uses import Use
from polyver.core import UNSPECIFIED, Dependent, Exact, Labels, Selector, Serial

__all__ = [
    "COMPOSITION",
    "Pipeline",
    "check_pipeline",
    "pipeline_of",
    "revision_used",
    "uses_in",
]

Object = Mapping[str, Any]
COMPOSITION: Final = "crossplane.io/composition-name"
"""The label by which the revisions of a composition are found."""


@dataclass(frozen=True, slots=True)
class Pipeline:
    """The steps of a CompositionRevision that call functions."""

    name: str
    composition: str
    number: int
    uses: tuple[Use, ...]

    @property
    def functions(self) -> set[str]:
        return {use.function for use in self.uses}


def pipeline_of(obj: Object) -> Pipeline:
    """A CompositionRevision as it was read; what makes no sense in it asks for nothing."""
    metadata, spec = obj["metadata"], _mapping(obj.get("spec"))
    composition = _mapping(metadata.get("labels")).get(COMPOSITION) or metadata["name"]
    number = spec.get("revision")
    number = number if isinstance(number, int) and number > 0 else 1
    return Pipeline(metadata["name"], composition, number, tuple(_uses(obj)))


def _uses(obj: Object) -> Iterator[Use]:
    metadata = obj["metadata"]
    steps = _mapping(obj.get("spec")).get("pipeline")
    for place, step in enumerate(steps if isinstance(steps, list) else ()):
        function = _named(_mapping(step).get("functionRef"))
        if function:
            dependent = Dependent(
                f"CompositionRevision {metadata['name']}",
                f"spec.pipeline[{place}]",
                metadata.get("uid", ""),
            )
            yield Use(dependent, function, _selector(_mapping(step)))


def _selector(step: Object) -> Selector:
    """What a step asks for; a name wins over labels."""
    name = _named(step.get("functionRevisionRef"))
    if name:
        return Exact(name)
    labels = _mapping(_mapping(step.get("functionRevisionSelector")).get("matchLabels"))
    return (
        Labels.of({str(key): str(text) for key, text in labels.items()}) if labels else UNSPECIFIED
    )


def check_pipeline(obj: Object) -> list[Refusal]:
    """What a Composition asks for that there is not without the feature FunctionRevisions."""
    steps = _mapping(obj.get("spec")).get("pipeline")
    return [
        Refusal(
            "FeatureOff",
            f"{field} needs the feature FunctionRevisions, which is off",
            at=f"spec.pipeline[{place}].{field}",
            hint="leave it out, or switch it on",
        )
        for place, step in enumerate(steps if isinstance(steps, list) else ())
        for field in ("functionRevisionRef", "functionRevisionSelector")
        if field in _mapping(step)
    ]


def revision_used(composite: Object) -> str:
    """The CompositionRevision that a composite resource uses, in either place it may be written."""
    spec = _mapping(composite.get("spec"))
    inside = _mapping(spec.get("crossplane"))
    return _named(spec.get("compositionRevisionRef")) or _named(
        inside.get("compositionRevisionRef")
    )


def uses_in(pipelines: Iterable[Pipeline], used: Collection[str]) -> list[Use]:
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


def _mapping(value: object) -> Object:
    return value if isinstance(value, Mapping) else {}


def _named(reference: object) -> str:
    name = _mapping(reference).get("name")
    return name if isinstance(name, str) else ""
