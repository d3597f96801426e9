"""Decides what would change if Compositions and Functions were applied to a cluster.

The decisions are those of the controllers: which revisions exist afterwards, and which revisions
each composite resource uses then.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

from polyver.capability.planning import PlannedRow
from polyver.compositions.controllers.composites import CompositeKey, recorded_calls
from polyver.compositions.decisions import (
    INSIDE,
    Candidate,
    Changes,
    ChosenComposition,
    CompositeExplanation,
    CompositeKind,
    FunctionLineages,
    candidate_of,
    composition_changes,
    composition_of,
    composition_revision_object,
    composition_revision_patch,
    explain,
    known_composition_revision,
    presumed_definition,
    read_composite,
    revisions_after,
)
from polyver.compositions.names import PREVIOUS
from polyver.compositions.packages import (
    FunctionPin,
    FunctionPlan,
    calls_in,
    decide,
    function_of,
    known_revision,
    pins_in,
    pipeline_of,
    read_function,
    results_of,
    revision_object,
    revision_patch,
    revision_used,
    uses_in,
)
from polyver.compositions.pipeline import allows_deletion
from polyver.core import Dependent, Resolution
from polyver.core.cohorts import Cohorts
from polyver.core.plain import Object
from polyver.core.rollout import Exposure
from polyver.kube.objects import apply_merge_patch
from polyver.kube.objects.kinds import ResourceKind

__all__ = [
    "CompositionSnapshot",
    "PlannedComposite",
    "callable_functions",
    "pinned_functions",
    "planned_composite",
    "sampled",
    "selecting_fields",
    "with_composition",
    "with_function",
]

_HERE: Final = "this machine"
"""The endpoint in the status of FunctionRevisions that the command can call."""


@dataclass(frozen=True, slots=True)
class CompositionSnapshot:
    """The objects of a cluster that decide which revisions composite resources use."""

    kinds: tuple[ResourceKind, ...]
    """Kinds of composite resources, each in the version that Compositions reference."""
    definitions: Mapping[tuple[str, str], CompositeKind]
    candidates: tuple[Candidate, ...]
    revisions: tuple[Object, ...]
    function_revisions: tuple[Object, ...]
    installed: FunctionLineages
    """The lineages of the functions, from `function_revisions`."""

    def explain(self, obj: Object) -> CompositeExplanation:
        """Explain which revisions a composite resource uses, and which it would use now."""
        group = obj["apiVersion"].rpartition("/")[0]
        defined = self.definitions.get((group, obj["kind"])) or presumed_definition(obj)
        asking = read_composite(obj, defined)
        return explain(asking, defined, self.candidates, self.revisions, self.installed)


# The revisions that would exist.


def with_composition(
    snapshot: CompositionSnapshot, composition: Object
) -> tuple[Changes, CompositionSnapshot]:
    """Return the changes for a Composition, and the snapshot as it is after these changes."""
    name = composition["metadata"]["name"]
    ours = {e["metadata"]["name"]: e for e in snapshot.revisions if composition_of(e) == name}
    known = {each: known_composition_revision(obj) for each, obj in ours.items()}
    changes = composition_changes(composition, [*known.values()])
    if changes.refusals:
        return changes, snapshot
    found: list[Object] = [each for each in snapshot.revisions if composition_of(each) != name]
    for each in revisions_after(changes, known.values()):
        if each.name in ours:
            patch = composition_revision_patch(known[each.name], each, composition)
            found.append(_patched(ours[each.name], patch))
        else:
            found.append(composition_revision_object(each, composition))
    others = [each for each in snapshot.candidates if each.name != name]
    candidates = (*others, candidate_of(composition))
    return changes, replace(snapshot, candidates=candidates, revisions=tuple(found))


def with_function(
    snapshot: CompositionSnapshot, function: Object, digest: str, composites: Sequence[Object]
) -> tuple[FunctionPlan, CompositionSnapshot]:
    """Return the plan for a Function, and the snapshot as it is after this plan.

    `digest` is the digest of its package. `composites` are all composite resources: revisions that
    they use are not deactivated.
    """
    desired = read_function(function)
    ours = {
        each["metadata"]["name"]: each
        for each in snapshot.function_revisions
        if function_of(each) == desired.name
    }
    known = {each: known_revision(obj) for each, obj in ours.items()}
    used = {revision_used(each) for each in composites}
    uses = uses_in(map(pipeline_of, snapshot.revisions), used)
    plan = decide(desired, [*known.values()], digest, uses, pins=_pins(composites))
    if plan.refusals:
        return plan, snapshot
    found = [e for e in snapshot.function_revisions if function_of(e) != desired.name]
    for each in results_of(plan, known.values()):
        if each.name in ours:
            found.append(_patched(ours[each.name], revision_patch(known[each.name], each)))
        else:
            found.append(revision_object(each, function))
    return plan, replace(
        snapshot, function_revisions=tuple(found), installed=FunctionLineages(found)
    )


def _patched(obj: Object, patch: Object) -> Object:
    changed = apply_merge_patch(obj, patch)
    assert isinstance(changed, dict)
    return changed


def _pins(composites: Iterable[Object]) -> dict[FunctionPin, tuple[str, ...]]:
    found: dict[FunctionPin, list[str]] = {}
    for each in composites:
        for pin in pins_in(each):
            found.setdefault(pin, []).append(each["metadata"]["name"])
    return {pin: tuple(names) for pin, names in found.items()}


# The composite resources that would move.


def selecting_fields(obj: Object) -> Object:
    """Return a composite resource with only the fields that decide which revisions it uses."""
    metadata, spec = obj["metadata"], obj.get("spec") or {}
    kept = {name: metadata[name] for name in _METADATA if metadata.get(name)}
    previous = (metadata.get("annotations") or {}).get(PREVIOUS)
    inside = spec.get(INSIDE)
    return {
        "apiVersion": obj["apiVersion"],
        "kind": obj["kind"],
        "metadata": kept | ({"annotations": {PREVIOUS: previous}} if previous else {}),
        "spec": _selecting(spec)
        | ({INSIDE: _selecting(inside)} if isinstance(inside, dict) else {}),
        "status": {"pipeline": (obj.get("status") or {}).get("pipeline") or []},
    }


_METADATA: Final = ("name", "namespace", "uid", "labels", "deletionTimestamp")


def _selecting(fields: Mapping[str, Any]) -> dict[str, Any]:
    return {name: each for name, each in fields.items() if name.startswith("composition")}


@dataclass(frozen=True, slots=True)
class PlannedComposite:
    """A composite resource whose revisions would change."""

    key: CompositeKey
    dependent: Dependent
    after: CompositeExplanation
    errors: tuple[str, ...]
    """The reasons why the composite resource could not choose its revisions. Empty if it could."""
    fails_already: bool
    """True if it cannot choose its revisions now either."""
    rows: tuple[PlannedRow, ...]
    """The moves to other revisions of its Composition and of functions."""
    allows_deletion: bool
    """True if a new revision may delete objects, because of `polyver.dev/allow-deletion`."""

    @property
    def revision(self) -> str:
        """The name of the CompositionRevision that it would use."""
        found = self.after.revision
        return found.release.name if isinstance(found, Resolution) else ""

    @property
    def functions(self) -> set[str]:
        """The names of the function revisions that it uses, and of those that it would use."""
        answers = [each.answer for each in self.after.steps]
        new = {each.release.name for each in answers if isinstance(each, Resolution)}
        return new | {each.pin.release for each in calls_in(self.after.composite.obj)}


def planned_composite(
    obj: Object,
    now: CompositionSnapshot,
    after: CompositionSnapshot,
    written: Iterable[Object],
) -> PlannedComposite | None:
    """Return the changes for a composite resource; None if it would use the same revisions as now.

    `now` is the state of the cluster, and `after` the state after the files were applied. `written`
    are the Compositions and Functions in the files.
    """
    was, will_be = now.explain(obj), after.explain(obj)
    if _choice(was) == _choice(will_be):
        return None
    composite, metadata = will_be.composite, obj["metadata"]
    group = obj["apiVersion"].rpartition("/")[0]
    key = CompositeKey(group, obj["kind"], metadata.get("namespace", ""), metadata["name"])
    rows = tuple(dict.fromkeys(_rows(will_be)))
    moved = {(name, to) for name, _, to, _ in rows}
    known = (*after.revisions, *after.function_revisions)
    allowed = [e for e in written if (f"{e['kind']} {e['metadata']['name']}") in dict(moved)]
    allowed += [e for e in known if e["metadata"]["name"] in {to for _, to in moved}]
    return PlannedComposite(
        key,
        replace(composite.dependent("", None), name="/".join(key)),
        will_be,
        tuple(map(str, will_be.refusals)),
        bool(was.refusals),
        rows,
        any(map(allows_deletion, allowed)),
    )


def _choice(explained: CompositeExplanation) -> tuple[Any, ...]:
    """Return the revisions that a composite resource would use, in a form to compare."""
    chosen = explained.revision
    steps = [
        each.answer.release.name if isinstance(each.answer, Resolution) else str(each.answer)
        for each in explained.steps
    ]
    revision = chosen.release.name if isinstance(chosen, Resolution) else str(chosen)
    composition = explained.composition
    return (
        str(composition) if not isinstance(composition, ChosenComposition) else "",
        revision,
        *steps,
    )


def _rows(after: CompositeExplanation) -> Iterator[PlannedRow]:
    composite, found = after.composite, after.revision
    if isinstance(found, Resolution) and found.release.name != composite.revision:
        assert isinstance(after.composition, ChosenComposition)
        name = f"Composition {after.composition.composition}"
        yield name, composite.revision, found.release.name, found.reason
    for step in after.steps:
        used = step.used.release if step.used is not None else ""
        if isinstance(step.answer, Resolution) and step.answer.release.name != used:
            name = f"Function {step.function}"
            yield name, used, step.answer.release.name, step.answer.reason


def sampled(moving: Sequence[PlannedComposite], most: int | None) -> list[PlannedComposite]:
    """Return at most `most` composite resources: those that a rollout would move first."""
    known = {each.dependent.name: each for each in moving}
    cohorts = Cohorts()
    cohorts.put_all((each.dependent, "waiting") for each in moving)
    return [known[name] for name in cohorts.names(Exposure(1.0), "waiting")[:most]]


# The functions to call.


def callable_functions(revisions: Iterable[Object]) -> FunctionLineages:
    """Return the lineages of functions, as if every active revision could be called."""
    return FunctionLineages({**each, "status": {"endpoint": _HERE}} for each in revisions)


def pinned_functions(revisions: Mapping[str, Object], composite: Object) -> FunctionLineages:
    """Return the lineages with only the revisions that a composite resource uses."""
    names = {*recorded_calls(composite).values()}
    found = [revisions[name] for name in sorted(names) if name in revisions]
    served = [
        {
            **each,
            "spec": {**each["spec"], "desiredState": "Active"},
            "status": {"endpoint": _HERE},
        }
        for each in found
    ]
    return FunctionLineages(served, opened=names)
