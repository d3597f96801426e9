"""Resolves the function revision that each step of a pipeline calls, and explains the result.

All steps are resolved together from one snapshot of the installed revisions, so that a run never
uses two states. `explain` returns the reasons for the Composition and the revisions that a
composite resource uses. It calls the same functions as the controller. If such a function raises a
refusal, `explain` returns the refusal.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from polyver.capability import Refusal
from polyver.compositions._function_references import mapping, named, step_selector
from polyver.compositions._revision_rules import REVISIONS, distinct
from polyver.compositions.decisions._composition_choice import (
    Candidate,
    ChosenComposition,
    Composite,
    choose_composition,
    choose_revision,
)
from polyver.compositions.decisions._definitions import CompositeKind
from polyver.compositions.decisions._revisions import check_step
from polyver.compositions.messages import ResourceSelector
from polyver.compositions.packages import (
    KnownFunctionRevision,
    calls_in,
    function_of,
    known_revision,
    lineage_of,
)
from polyver.core import (
    Exact,
    Labels,
    Lineage,
    NoMatch,
    Pin,
    Release,
    Resolution,
    Selector,
    Stage,
    resolve,
)
from polyver.core.plain import ReadOnlyObject

__all__ = [
    "CompositeExplanation",
    "FunctionLineages",
    "ResolvedStep",
    "Secret",
    "StepResolution",
    "ask_steps",
    "explain",
    "resolve_steps",
]


@dataclass(frozen=True, slots=True)
class Secret:
    """Reference to a Secret."""

    namespace: str
    name: str

    def __str__(self) -> str:
        return f"{self.namespace}/{self.name}"


@dataclass(frozen=True, slots=True)
class ResolvedStep:
    """A pipeline step, and the function revision that it calls."""

    name: str
    function: str
    revision: str
    digest: str
    """Digest of the revision's content."""
    previous: Pin | None = None
    """The function revision that the step called before this one."""
    endpoint: str = ""
    """Address of the function revision. Empty until the runtime reports an address."""
    reason: str = ""
    """Why the step calls this function revision."""
    warnings: tuple[str, ...] = ()
    input: ReadOnlyObject | None = None
    credentials: Mapping[str, Secret] = field(default_factory=dict)
    requirements: Mapping[str, ResourceSelector] = field(default_factory=dict)
    """Resources that the Composition passes to the function from the first call on."""

    @property
    def record(self) -> dict[str, Any]:
        """The entry of the step in `status.pipeline` of the composite resource."""
        found: dict[str, Any] = {"step": self.name, "function": self.function}
        found |= _pin_data(Pin(self.revision, self.digest))
        return found | ({"previous": _pin_data(self.previous)} if self.previous else {})


def _pin_data(pin: Pin) -> dict[str, str]:
    return {"revision": pin.release} | ({"digest": pin.digest} if pin.digest else {})


class FunctionLineages:
    """The FunctionRevisions of all functions, as one lineage for each function.

    `opened` are the names of revisions that every composite resource may use, whatever their gates
    are.
    """

    def __init__(
        self, revisions: Iterable[ReadOnlyObject], *, opened: Collection[str] = ()
    ) -> None:
        known: dict[str, list[KnownFunctionRevision]] = {}
        self._functions: dict[str, str] = {}
        self._endpoints: dict[str, str] = {}
        for each in revisions:
            function, name = function_of(each), each["metadata"]["name"]
            revision = known_revision(each)
            if name in opened:
                revision = replace(revision, gate=None)
            known.setdefault(function, []).append(revision)
            self._functions[name] = function
            self._endpoints[name] = mapping(each.get("status")).get("endpoint") or ""
        self._lineages: dict[str, Lineage] = {}
        for function, there in known.items():
            in_order = sorted(there, key=lambda each: (not each.deleting, each.name))
            self._lineages[function] = lineage_of(function, distinct(in_order).values())
        self.has_gates = any(r.gate for each in self._lineages.values() for r in each)
        """True if a revision has a gate: a rollout brings it to followers, or has taken it back."""

    def lineage(self, function: str) -> Lineage:
        return self._lineages.get(function) or Lineage(function)

    def owner(self, revision: str) -> str:
        """Return the function to which a revision belongs.

        Return "" if the revision does not exist.
        """
        return self._functions.get(revision, "")

    def endpoint(self, revision: str) -> str:
        return self._endpoints.get(revision, "")


def resolve_steps(
    revision: ReadOnlyObject, composite: Composite, installed: FunctionLineages, *, several: bool
) -> tuple[ResolvedStep, ...]:
    """Resolve the steps of a CompositionRevision. Raise Refusal if a step cannot be resolved.

    `several` is true if the feature FunctionRevisions is enabled: Functions may then have several
    active revisions, and steps may select one of them.
    """
    found = []
    for each in ask_steps(revision, composite, installed, several=several):
        if isinstance(each.answer, Refusal):
            raise each.answer
        step, release = each.step, each.answer.release
        credentials = {
            one["name"]: Secret(one["secretRef"]["namespace"], one["secretRef"]["name"])
            for one in step.get("credentials") or ()
            if one["source"] == "Secret"
        }
        required = mapping(step.get("requirements")).get("requiredResources") or ()
        found.append(
            ResolvedStep(
                each.name,
                each.function,
                release.name,
                release.digest,
                each.previous if each.used == release.pin else each.used,
                installed.endpoint(release.name),
                each.answer.reason,
                each.warnings,
                step.get("input"),
                credentials,
                {one["requirementName"]: _required(one) for one in required},
            )
        )
    return tuple(found)


def _required(each: ReadOnlyObject) -> ResourceSelector:
    return ResourceSelector(
        each["apiVersion"],
        each["kind"],
        each.get("name") or None,
        each.get("matchLabels") or None,
        each.get("namespace") or None,
    )


@dataclass(frozen=True, slots=True)
class StepResolution:
    """A pipeline step, its selector for a function revision, and the resolution."""

    step: ReadOnlyObject
    at: str
    selector: Selector
    used: Pin | None
    """The revision that the step called when the composite resource was last composed."""
    previous: Pin | None
    """The revision that the step called before `used`."""
    answer: Resolution | Refusal

    @property
    def name(self) -> str:
        return str(self.step["step"])

    @property
    def function(self) -> str:
        return named(self.step.get("functionRef"))

    @property
    def warnings(self) -> tuple[str, ...]:
        if isinstance(self.answer, Refusal):
            return ()
        asks_twice = self.step.get("functionRevisionSelector") is not None
        both = isinstance(self.selector, Exact) and asks_twice
        told = f"{self.at}.functionRevisionSelector has no effect: functionRevisionRef is used"
        return (*((told,) if both else ()), *self.answer.warnings)


def ask_steps(
    revision: ReadOnlyObject, composite: Composite, installed: FunctionLineages, *, several: bool
) -> Iterator[StepResolution]:
    """Yield each step of a CompositionRevision, with its resolution or with the refusal."""
    # What each step called when the composite resource was last composed.
    calls = {(each.step, each.function): each for each in calls_in(composite.obj)}
    for place, step in enumerate(revision["spec"].get("pipeline") or ()):
        at = f"CompositionRevision {revision['metadata']['name']}, spec.pipeline[{place}]"
        function, selector = named(step.get("functionRef")), step_selector(step)
        call = calls.get((step["step"], function))
        pin, previous = (call.pin, call.previous) if call is not None else (None, None)
        answer: Resolution | Refusal | None = next(check_step(step, at, several=several), None)
        if answer is None:
            try:
                dependent = composite.dependent(at, pin, previous=previous)
                answer = resolve(installed.lineage(function), selector, REVISIONS, dependent)
            except NoMatch as error:
                answer = _refusal(error, installed, at)
        yield StepResolution(step, at, selector, pin, previous, answer)


def _refusal(error: NoMatch, installed: FunctionLineages, at: str) -> Refusal:
    """Convert a failed resolution of a step into a refusal with the reason."""
    lineage, selector = error.lineage, error.selector
    if not len(lineage) and not isinstance(selector, Exact):
        fact, hint = (
            f"function {lineage.name} has no revisions",
            "install it, or wait until it is installed",
        )
        return Refusal("FunctionNotInstalled", fact, at=f"{at}.functionRef", hint=hint)
    if isinstance(selector, Exact):
        return _named_refusal(error, str(selector), installed, f"{at}.functionRevisionRef")
    if isinstance(selector, Labels):
        return _selector_refusal(error, selector, f"{at}.functionRevisionSelector")
    hint = _activate([release.name for release in lineage])
    fact = f"function {lineage.name} has no active revision"
    return Refusal("NoActiveRevision", fact, at=f"{at}.functionRef", hint=hint)


def _named_refusal(error: NoMatch, name: str, installed: FunctionLineages, at: str) -> Refusal:
    lineage, owner = error.lineage, installed.owner(name)
    if not owner:
        fact = f"function {lineage.name} has no revision {name}"
        return Refusal("RevisionNotFound", fact, at=at, hint=error.hint)
    if owner != lineage.name:
        fact = f"{name} is a revision of {owner}, not of {lineage.name}"
        return Refusal("OtherFunctionsRevision", fact, at=at, hint=error.hint)
    release = lineage.get(name)
    if release is not None and release.stage is Stage.ACTIVE:  # a rollout's gate excludes it
        return Refusal("RevisionHeld", error.fact, at=at, hint=error.hint)
    return Refusal("RevisionInactive", f"{name} is inactive", at=at, hint=_activate([name]))


def _selector_refusal(error: NoMatch, selector: Labels, at: str) -> Refusal:
    matching = [each for each in error.lineage if _matches(each, selector)]
    if not matching:
        fact = f"function {error.lineage.name} has no revision with {selector}"
        return Refusal("NoRevisionMatches", fact, at=at, hint=error.hint)
    if any(each.stage is Stage.ACTIVE for each in matching):  # a rollout's gate excludes them
        return Refusal("RevisionHeld", error.fact, at=at, hint=error.hint)
    names = [each.name for each in matching]
    fact = f"function {error.lineage.name} has no active revision with {selector}"
    return Refusal("MatchingRevisionsInactive", fact, at=at, hint=_activate(names))


def _activate(names: list[str]) -> str:
    shown = ", ".join(names[:3])
    are = "is" if len(names) == 1 else "are"
    return f"{shown} {are} inactive: activate one, or raise activeRevisionLimit"


def _matches(release: Release, selector: Selector) -> bool:
    if isinstance(selector, Labels):
        return {*selector.wanted} <= {*release.labels.items()}
    return not isinstance(selector, Exact) or str(selector) == release.name


@dataclass(frozen=True, slots=True)
class CompositeExplanation:
    """The revisions that a composite resource uses, and the revisions that it would use now."""

    composite: Composite
    composition: ChosenComposition | Refusal
    revision: Resolution | Refusal | None
    """The resolution of the CompositionRevision, or a refusal; None if no Composition is chosen."""
    steps: tuple[StepResolution, ...] = ()

    @property
    def asks_composition(self) -> str:
        """The name or the labels with which the resource selects a Composition.

        It is empty if the resource has neither. Users and the controller write the name to the same
        field. So the name may be an earlier choice of the controller.
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
    """Explain which revisions a composite resource would use now.

    `candidates` are Compositions, and `revisions` are CompositionRevisions.
    """
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
