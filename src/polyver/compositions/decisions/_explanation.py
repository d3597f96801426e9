"""Explanation of the releases of a composite resource, each with its reason.

The controller uses the same functions; here a refusal is a result like others.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from polyver.capability import Refusal
from polyver.compositions.decisions._composition_choice import (
    Candidate,
    ChosenComposition,
    Composite,
    choose_composition,
    choose_revision,
)
from polyver.compositions.decisions._definitions import CompositeKind
from polyver.compositions.decisions._steps import FunctionLineages, StepResolution, ask_steps
from polyver.core import Labels, Resolution
from polyver.core.plain import ReadOnlyObject

__all__ = ["CompositeExplanation", "explain"]


@dataclass(frozen=True, slots=True)
class CompositeExplanation:
    """The releases that a composite resource uses, and those that it would get now."""

    composite: Composite
    composition: ChosenComposition | Refusal
    revision: Resolution | Refusal | None
    """The resolution of the revision; None if there is no composition."""
    steps: tuple[StepResolution, ...] = ()

    @property
    def asks_composition(self) -> str:
        """The composition that the resource selects, by name or labels; empty if none.

        The name may be an earlier choice of the controller, which writes it to the same field as
        users.
        """
        labels = self.composite.composition_labels
        return self.composite.composition or (str(Labels.of(labels)) if labels else "")

    @property
    def asks_revision(self) -> str:
        labels = self.composite.revision_labels
        asked = [str(Labels.of(labels))] if labels else []
        return ", ".join([*asked, "keep the current one"] if self.composite.manual else asked)

    @property
    def refusals(self) -> tuple[Refusal, ...]:
        answers = (self.composition, self.revision, *(each.answer for each in self.steps))
        return tuple(each for each in answers if isinstance(each, Refusal))

    @property
    def warnings(self) -> tuple[str, ...]:
        found = [each for step in self.steps for each in step.warnings]
        if isinstance(self.revision, Resolution):
            found = [*self.revision.warnings, *found]
        if isinstance(self.composition, ChosenComposition):
            found = [*self.composition.warnings, *found]
        return tuple(found)


def explain(
    composite: Composite,
    defined: CompositeKind,
    candidates: Iterable[Candidate],
    revisions: Sequence[ReadOnlyObject],
    installed: FunctionLineages,
) -> CompositeExplanation:
    """Return the releases that a composite resource would get now from these objects."""
    try:
        chosen = choose_composition(composite, defined, candidates)
    except Refusal as refusal:
        return CompositeExplanation(composite, refusal, None)
    try:
        found = choose_revision(composite, chosen.composition, revisions)
    except Refusal as refusal:
        return CompositeExplanation(composite, chosen, refusal)
    [revision] = [each for each in revisions if each["metadata"]["name"] == found.release.name]
    steps = ask_steps(revision, composite, installed, several=True)
    return CompositeExplanation(composite, chosen, found, tuple(steps))
