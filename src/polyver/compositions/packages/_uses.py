"""The users of functions: steps of relevant CompositionRevisions, and composite resources.

A CompositionRevision is relevant if a composite resource uses it. It is also relevant if it is the
newest revision of its Composition, because new composite resources would use this revision. A
composite resource uses the function revisions with which it was last composed.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import NamedTuple

from polyver.compositions._function_references import mapping, named, step_selector
from polyver.compositions._revision_rules import REVISIONS
from polyver.compositions.names import COMPOSITION
from polyver.core import Dependent, Gate, Index, Lineage, Pin, Selector, Serial, Stage, affected
from polyver.core.plain import ReadOnlyObject

__all__ = [
    "CompositionPipeline",
    "FunctionPin",
    "StepCall",
    "StepFunctionUse",
    "calls_in",
    "pins_in",
    "pipeline_of",
    "revision_used",
    "selected_in",
    "uses_in",
]


@dataclass(frozen=True, slots=True)
class StepFunctionUse:
    """A step of a CompositionRevision that calls a function, and its selector."""

    dependent: Dependent
    """The name `CompositionRevision NAME`, and the path of the step."""
    function: str
    selector: Selector
    step: str = ""
    """The name of the step."""


def selected_in(uses: Iterable[StepFunctionUse], lineage: Lineage) -> Mapping[str, tuple[str, ...]]:
    """Return, for each revision of a function, the steps that select it.

    During a rollout, a step selects two revisions: the one that the rollout brings to some
    composite resources, and the one that the others use.

    If no active revision matches a step, the step counts as a user of the inactive revision that it
    would select. Otherwise polyver could delete a revision that a step needs.
    """
    index = Index.of(
        # Remove the pin: a step is resolved again in each run, so it does not keep its last
        # revision.
        (replace(use.dependent, pin=None), lineage.name, use.selector, REVISIONS)
        for use in uses
        if use.function == lineage.name
    )
    if not len(index):
        return {}
    found: dict[str, set[str]] = {}
    for each in _with_and_without_rollouts(lineage):
        for name, steps in _selected(index, each).items():
            found.setdefault(name, set()).update(steps)
    return {name: tuple(sorted(steps)) for name, steps in found.items()}


def _with_and_without_rollouts(lineage: Lineage) -> Iterator[Lineage]:
    """Yield the lineage as if rollouts admitted nobody, and then as if they admitted everybody.

    In the second lineage, a release that a rollout has taken back keeps its gate. If there are no
    gates, yield only the lineage itself.
    """
    gates = [each.gate for each in lineage]
    if not any(gates):
        yield lineage
        return
    closed = [each and Gate(each.rollout) for each in gates]
    opened = [each and (each if each.returns else None) for each in gates]
    for some in (closed, opened):
        releases = [replace(r, gate=gate) for r, gate in zip(lineage, some, strict=True)]
        yield Lineage(lineage.name, releases)


def _selected(index: Index, lineage: Lineage) -> Mapping[str, set[str]]:
    every = Lineage(lineage.name, [replace(each, stage=Stage.ACTIVE) for each in lineage])
    now = affected(index, every, lineage)
    without = {_place(loss.dependent) for loss in now.losses}
    instead = affected(index, every, every).moves if without else ()
    moves = [*now.moves, *(move for move in instead if _place(move.dependent) in without)]
    found: dict[str, set[str]] = {}
    for move in moves:
        found.setdefault(move.to.name, set()).add(move.dependent.name)
    return found


def _place(dependent: Dependent) -> tuple[str, str]:
    return dependent.name, dependent.at


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
    """Parse a CompositionRevision without raising errors.

    Steps without a function are left out. An invalid number is replaced by 1.
    """
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
            name = str(mapping(step).get("step") or "")
            yield StepFunctionUse(dependent, function, step_selector(step), name)


def revision_used(composite: ReadOnlyObject) -> str:
    """Return the CompositionRevision that a composite resource references.

    Return "" if it references none.
    """
    spec = mapping(composite.get("spec"))
    inside = mapping(spec.get("crossplane"))
    return named(spec.get("compositionRevisionRef")) or named(inside.get("compositionRevisionRef"))


class StepCall(NamedTuple):
    """The function revision that a step called when a composite resource was last composed."""

    step: str
    function: str
    pin: Pin
    previous: Pin | None = None
    """The function revision that the step called before this one."""


def calls_in(composite: ReadOnlyObject) -> tuple[StepCall, ...]:
    """Return the function revisions with which a composite resource was last composed."""
    steps = mapping(composite.get("status")).get("pipeline")
    known = [mapping(each) for each in (steps if isinstance(steps, list) else ())]
    return tuple(
        StepCall(
            str(each.get("step")),
            str(each.get("function")),
            Pin(str(each.get("revision")), str(each.get("digest") or "")),
            Pin(previous["revision"], previous.get("digest") or "") if previous else None,
        )
        for each in known
        for previous in (mapping(each.get("previous")),)
    )


class FunctionPin(NamedTuple):
    """A function revision that composed a composite resource, and the one before it."""

    function: str
    revision: str
    previous: str
    """The revision to which a rollback returns the composite resource; empty if there is none."""


def pins_in(composite: ReadOnlyObject) -> frozenset[FunctionPin]:
    """Return the function revisions that a composite resource uses, and those before them."""
    return frozenset(
        FunctionPin(each.function, each.pin.release, each.previous.release if each.previous else "")
        for each in calls_in(composite)
    )


def uses_in(
    pipelines: Iterable[CompositionPipeline], used: Collection[str]
) -> list[StepFunctionUse]:
    """Return the steps of all relevant revisions. `used` are the names of the revisions in use."""
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
