"""Why a composite resource is what it is: all that is chosen for it, each with its reason.

The same functions choose for the controller; here a refusal is an answer among others.
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
    """What a composite resource would get now, and what it has."""

    composite: Composite
    composition: ChosenComposition | Refusal
    revision: Resolution | Refusal | None
    """None if there is no composition to choose it from."""
    steps: tuple[StepResolution, ...] = ()

    @property
    def asks_composition(self) -> str:
        """What it asks for, in words; empty if for nothing.

        A name may be what was chosen before: that is noted where users write theirs.
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
    """What a composite resource would get now of what there is."""
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
