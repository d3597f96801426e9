"""Chooses the Composition and the CompositionRevision for a composite resource."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from polyver.capability import Refusal
from polyver.compositions._function_references import labels_in, mapping, named
from polyver.compositions._revision_rules import COMPOSITIONS, COMPOSITIONS_MANUAL
from polyver.compositions.decisions._definitions import INSIDE, CompositeKind
from polyver.compositions.decisions._revisions import (
    composition_lineage,
    composition_of,
    known_composition_revision,
)
from polyver.compositions.names import PREVIOUS
from polyver.core import (
    UNSPECIFIED,
    Dependent,
    Labels,
    Lineage,
    NoMatch,
    Pin,
    Policy,
    Resolution,
    Selector,
    listed,
    resolve,
)
from polyver.core.plain import ReadOnlyObject

__all__ = [
    "Candidate",
    "ChosenComposition",
    "Composite",
    "candidate_of",
    "choose_composition",
    "choose_revision",
    "composite_entry",
    "read_composite",
    "references_patch",
]


@dataclass(frozen=True, slots=True)
class Composite:
    """A composite resource: its selectors, and its references to a Composition and a revision."""

    obj: ReadOnlyObject
    at: str
    """Path of the fields that select a Composition: `spec` or `spec.crossplane`."""
    composition: str
    """The name in `compositionRef`. A user has set it, or the controller has set it at an earlier
    choice.
    """
    composition_labels: Mapping[str, str] | None
    revision: str
    """Name in `compositionRevisionRef`."""
    revision_labels: Mapping[str, str]
    manual: bool

    @property
    def shown(self) -> str:
        """Kind and name for messages, such as `AcmeBucket my-bucket`."""
        metadata = self.obj["metadata"]
        name = metadata.get("name", "")
        space = metadata.get("namespace")
        return f"{self.obj['kind']} {f'{space}/{name}' if space else name}"

    @property
    def resources(self) -> Sequence[ReadOnlyObject]:
        """The references to composed resources in `resourceRefs`. Each of them has a name."""
        fields = mapping(self.obj.get("spec"))
        inside = fields if self.at == "spec" else mapping(fields.get(INSIDE))
        return [each for each in inside.get("resourceRefs") or () if each.get("name")]

    def written(self, **fields: Any) -> dict[str, Any]:
        """Build a merge patch that sets the given fields at the path `at`."""
        return {"spec": fields if self.at == "spec" else {INSIDE: fields}}

    @property
    def previous(self) -> str:
        """The CompositionRevision that was used before the current one; empty if there is none."""
        return str((self.obj["metadata"].get("annotations") or {}).get(PREVIOUS, ""))

    def dependent(
        self, at: str, pin: Pin | None = None, *, previous: Pin | None = None
    ) -> Dependent:
        metadata = self.obj["metadata"]
        labels = metadata.get("labels") or {}
        return Dependent(self.shown, at, metadata.get("uid", ""), labels, pin, previous=previous)


def read_composite(obj: ReadOnlyObject, defined: CompositeKind) -> Composite:
    """Parse a composite resource."""
    spec = mapping(obj.get("spec"))
    fields = spec if defined.legacy else mapping(spec.get(INSIDE))
    selector = fields.get("compositionSelector")
    return Composite(
        obj,
        "spec" if defined.legacy else f"spec.{INSIDE}",
        named(fields.get("compositionRef")),
        labels_in(selector) or None,
        named(fields.get("compositionRevisionRef")),
        labels_in(fields.get("compositionRevisionSelector")),
        (fields.get("compositionUpdatePolicy") or defined.update_policy) == "Manual",
    )


@dataclass(frozen=True, slots=True)
class Candidate:
    """The fields of a Composition that are needed to choose it."""

    name: str
    api_version: str
    kind: str
    labels: Mapping[str, str]

    def fits(self, defined: CompositeKind) -> bool:
        return (self.api_version, self.kind) == (defined.api_version, defined.kind)


def candidate_of(obj: ReadOnlyObject) -> Candidate:
    """Parse a Composition."""
    target = obj["spec"]["compositeTypeRef"]
    labels = obj["metadata"].get("labels") or {}
    return Candidate(obj["metadata"]["name"], target["apiVersion"], target["kind"], labels)


@dataclass(frozen=True, slots=True)
class ChosenComposition:
    """The chosen Composition, the reason for the choice, and warnings for the user."""

    composition: str
    reason: str
    warnings: tuple[str, ...] = ()


def choose_composition(
    composite: Composite, defined: CompositeKind, known: Iterable[Candidate]
) -> ChosenComposition:
    """Choose the Composition of a composite resource.

    Raise Refusal if no Composition fits, or if several fit and neither the composite resource nor
    its definition selects one of them.
    """
    there = {each.name: each for each in known}
    place = f"{composite.at}.compositionRef"
    if defined.enforced:
        return _enforced(composite, defined, there)
    if composite.composition:
        _check_fits(composite.composition, defined, there, place)
        return ChosenComposition(composite.composition, "named in compositionRef")
    fitting = sorted(each.name for each in there.values() if each.fits(defined))
    if composite.composition_labels is not None:
        return _selected(composite, defined, [there[name] for name in fitting])
    if defined.default:
        _check_fits(defined.default, defined, there, _at(defined, "defaultCompositionRef"))
        return ChosenComposition(defined.default, f"the default of {defined.name}")
    if len(fitting) == 1:
        return ChosenComposition(fitting[0], f"the only composition of {defined.kind}")
    raise _unclear(defined, fitting, place)


def _at(defined: CompositeKind, field: str) -> str:
    return f"CompositeResourceDefinition {defined.name}, spec.{field}"


def _enforced(
    composite: Composite, defined: CompositeKind, there: Mapping[str, Candidate]
) -> ChosenComposition:
    _check_fits(defined.enforced, defined, there, _at(defined, "enforcedCompositionRef"))
    asked = composite.composition
    warnings: tuple[str, ...] = ()
    if asked not in ("", defined.enforced):
        told = f"{composite.at}.compositionRef requests {asked}"
        warnings = (f"{told}; {defined.name} enforces {defined.enforced}",)
    return ChosenComposition(defined.enforced, f"enforced by {defined.name}", warnings)


def _check_fits(name: str, defined: CompositeKind, there: Mapping[str, Candidate], at: str) -> None:
    found = there.get(name)
    if found is None:
        fitting = sorted(each.name for each in there.values() if each.fits(defined))
        hint = f"there are {listed(fitting)}" if fitting else f"{defined.kind} has none yet"
        raise Refusal("CompositionNotFound", f"there is no composition {name}", at=at, hint=hint)
    if not found.fits(defined):
        target = f"{found.api_version} {found.kind}"
        fact = f"composition {name} is for {target}, not for {defined.api_version} {defined.kind}"
        hint = "compositions are for the referenceable version"
        raise Refusal("CompositionNotCompatible", fact, at=at, hint=hint)


def _selected(
    composite: Composite, defined: CompositeKind, fitting: Sequence[Candidate]
) -> ChosenComposition:
    labels = Labels.of(composite.composition_labels or {})
    matching = [each.name for each in fitting if {*labels.wanted} <= {*each.labels.items()}]
    if not matching:
        fact = f"no composition of {defined.kind} has {labels}"
        hint = f"there are {listed([each.name for each in fitting])}" if fitting else ""
        at = f"{composite.at}.compositionSelector"
        raise Refusal("CompositionNotFound", fact, at=at, hint=hint)
    chosen, *others = matching
    warnings: tuple[str, ...] = ()
    if others:
        warnings = (f"{labels} is on {listed(matching)}: {chosen}, the first by name, is used",)
    return ChosenComposition(chosen, f"a composition with {labels}", warnings)


def _unclear(defined: CompositeKind, fitting: Sequence[str], at: str) -> Refusal:
    if not fitting:
        fact = f"{defined.kind} has no composition"
        hint = f"apply one for {defined.api_version} {defined.kind}"
        return Refusal("CompositionNotFound", fact, at=at, hint=hint)
    fact = f"{defined.kind} has {len(fitting)} compositions: {listed(fitting)}"
    return Refusal("CompositionNotChosen", fact, at=at, hint="name one of them")


def choose_revision(
    composite: Composite, composition: str, revisions: Iterable[ReadOnlyObject]
) -> Resolution:
    """Choose the CompositionRevision of a composite resource.

    With the update policy Automatic, this is the newest revision that the selector matches. With
    Manual, it is the revision in use, as long as the selector matches this revision. If the
    selector no longer matches it, the newest revision that the selector matches is chosen.
    """
    known = {each["metadata"]["name"]: each for each in revisions}
    ours = [
        known_composition_revision(each)
        for each in known.values()
        if composition_of(each) == composition
    ]
    lineage = composition_lineage(composition, ours)
    other = known.get(composite.revision)
    if composite.manual and other is not None and composition_of(other) != composition:
        raise _foreign(composite, composition, composition_of(other))
    found = _resolved(composite, lineage)
    name, obj = found.release.name, composite.obj
    target = known[name]["spec"]["compositeTypeRef"]
    if (target["apiVersion"], target["kind"]) != (obj["apiVersion"], obj["kind"]):
        made_for, is_one = f"{target['apiVersion']} {target['kind']}", obj["apiVersion"]
        fact = f"revision {name} is for {made_for}, not for {is_one} {obj['kind']}"
        at = f"{composite.at}.compositionRevisionRef"
        raise Refusal("CompositionNotCompatible", fact, at=at)
    return found


def _foreign(composite: Composite, composition: str, other: str) -> Refusal:
    fact = f"{composite.revision} is a revision of {other}, not of {composition}"
    hint = f"name a revision of {composition}, or omit it to use the newest"
    at = f"{composite.at}.compositionRevisionRef"
    return Refusal("OtherCompositionsRevision", fact, at=at, hint=hint)


def composite_entry(
    composite: Composite, lineage: Lineage
) -> tuple[Dependent, str, Selector, Policy]:
    """Convert a composite resource into an entry of the Index of `polyver.core`.

    From such entries, the function `affected` finds the composite resources that a new revision
    moves.
    """
    labels = composite.revision_labels
    field = "compositionRevisionSelector" if labels else "compositionRevisionRef"
    pin, previous = (_pin(lineage, each) for each in (composite.revision, composite.previous))
    return (
        composite.dependent(f"{composite.at}.{field}", pin, previous=previous),
        lineage.name,
        Labels.of(labels) if labels else UNSPECIFIED,
        COMPOSITIONS_MANUAL if composite.manual else COMPOSITIONS,
    )


def _pin(lineage: Lineage, revision: str) -> Pin | None:
    """Return the pin for the name of a revision. A revision that no longer exists has no digest."""
    known = lineage.get(revision) if revision else None
    return known.pin if known else Pin(revision) if revision else None


def _resolved(composite: Composite, lineage: Lineage) -> Resolution:
    dependent, _, selector, policy = composite_entry(composite, lineage)
    try:
        return resolve(lineage, selector, policy, dependent)
    except NoMatch as error:
        pin = dependent.pin
        is_gone = composite.manual and pin is not None and lineage.get(pin.release) is None
        if not is_gone:
            raise Refusal("RevisionNotFound", error.fact, at=error.at, hint=error.hint) from None
        fact = f"composition {lineage.name} has no revision {composite.revision}"
        at = f"{composite.at}.compositionRevisionRef"
        raise Refusal("RevisionNotFound", fact, at=at, hint=error.hint) from None


def references_patch(composite: Composite, composition: str, revision: str) -> dict[str, Any]:
    """Build a merge patch that records the Composition and the revision in the spec.

    If the revision changes, the patch also records the one before it. The patch is empty if both
    are recorded already.
    """
    fields: dict[str, Any] = {}
    if composite.composition != composition:
        fields["compositionRef"] = {"name": composition}
    if composite.revision == revision:
        return composite.written(**fields) if fields else {}
    fields["compositionRevisionRef"] = {"name": revision}
    previous = {PREVIOUS: composite.revision} if composite.revision else {}
    metadata = {"metadata": {"annotations": previous}} if previous else {}
    return {**composite.written(**fields), **metadata}
