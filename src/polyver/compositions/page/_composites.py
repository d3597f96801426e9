"""Compositions as lineages on the web page, and the composite resources that use them.

Only the selectors of composite resources are kept in memory, because there may be many of them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace

from polyver.client import GroupVersionResource, Key
from polyver.compositions._revision_rules import COMPOSITIONS, REVISIONS
from polyver.compositions.decisions import (
    Composite,
    CompositeKind,
    check_definition,
    composite_entry,
    composition_lineage,
    known_composition_revision,
    read_composite,
    read_definition,
)
from polyver.compositions.decisions import KnownCompositionRevision as Known
from polyver.compositions.kinds import COMPOSITION_GROUP
from polyver.compositions.names import PREVIOUS
from polyver.compositions.packages import (
    CompositionPipeline,
    StepFunctionUse,
    calls_in,
    pipeline_of,
)
from polyver.core import Lineage, Pin
from polyver.core.plain import Object, ReadOnlyObject
from polyver.web.sources import (
    LineageKey,
    LineageRequest,
    PageLineage,
    PublisherKey,
    ReleaseDetails,
    UnresolvedRequest,
)

__all__ = [
    "CompositeKindView",
    "CompositionRevisionView",
    "composite_of",
    "composition_of",
    "composition_shown",
    "kind_of",
    "places_of",
    "where_composition",
]

CAPABILITY = "compositions"
CompositeKey = tuple[GroupVersionResource, Key]


@dataclass(frozen=True, slots=True)
class CompositionRevisionView:
    """The fields of a CompositionRevision that the page shows."""

    pipeline: CompositionPipeline
    known: Known
    target: str
    """The API version and kind of the composite resources for which the revision can be used."""


def composition_of(obj: Object) -> CompositionRevisionView:
    """Parse a CompositionRevision."""
    target = obj["spec"]["compositeTypeRef"]
    about = f"{target['apiVersion']} {target['kind']}"
    return CompositionRevisionView(pipeline_of(obj), known_composition_revision(obj), about)


@dataclass(frozen=True, slots=True)
class CompositeKindView:
    """A kind of composite resources: its definition, and the API resource that the page watches."""

    defined: CompositeKind
    resource: GroupVersionResource


def kind_of(obj: Object) -> CompositeKindView | None:
    """Return the kind that a CompositeResourceDefinition defines; None if it is invalid."""
    if check_definition(obj):
        return None
    defined, spec = read_definition(obj), obj["spec"]
    namespaced = spec.get("scope") == "Namespaced"
    place = GroupVersionResource(
        defined.group, defined.version, spec["names"]["plural"], namespaced
    )
    return CompositeKindView(defined, place)


def composite_of(obj: Object, kind: CompositeKindView) -> Composite:
    """Parse a composite resource, and keep only the fields that the page needs."""
    metadata = obj["metadata"]
    about = {k: metadata[k] for k in ("name", "namespace", "uid", "labels") if metadata.get(k)}
    if previous := (metadata.get("annotations") or {}).get(PREVIOUS):
        about["annotations"] = {PREVIOUS: previous}
    light: Object = {
        "apiVersion": kind.defined.api_version,
        "kind": kind.defined.kind,
        "metadata": about,
        "status": {"pipeline": (obj.get("status") or {}).get("pipeline") or []},
    }
    return replace(read_composite({**light, "spec": obj.get("spec")}, kind.defined), obj=light)


def where_composition(name: str) -> LineageKey:
    """Return the key of a Composition's lineage.

    The key contains a slash, so it differs from the keys of all functions.
    """
    return LineageKey(CAPABILITY, f"composition/{name}")


def lineage_of(name: str, revisions: Iterable[CompositionRevisionView]) -> Lineage:
    return composition_lineage(name, [each.known for each in revisions])


def composition_shown(name: str, revisions: Mapping[str, CompositionRevisionView]) -> PageLineage:
    """Build the view of a Composition with its revisions."""
    lineage = lineage_of(name, revisions.values())
    newest = revisions[lineage.releases[-1].name]
    details = {each: ReleaseDetails(_steps(known.pipeline)) for each, known in revisions.items()}
    return PageLineage(
        where_composition(name),
        lineage,
        COMPOSITIONS,
        "composition",
        facts={"composes": newest.target},
        details=details,
        publisher=PublisherKey(COMPOSITION_GROUP, "Composition", "", name),
    )


def _steps(pipeline: CompositionPipeline) -> str:
    asked = [
        f"{use.function} ({use.selector})" if str(use.selector) else use.function
        for use in pipeline.uses
    ]
    return f"calls {', '.join(asked)}" if asked else "calls nothing"


def places_of(
    composite: Composite,
    lineage: Lineage | None,
    used: CompositionRevisionView | None,
    is_there: Callable[[str], bool],
) -> list[LineageRequest | UnresolvedRequest]:
    """Return the requests of a composite resource: for its Composition, and for each function.

    `used` is the CompositionRevision that it uses. `is_there` reports whether a function exists.
    """
    found: list[LineageRequest | UnresolvedRequest] = [_asked_composition(composite, lineage)]
    for use in used.pipeline.uses if used is not None else ():
        at = f"{use.dependent.name}, {use.dependent.at}"
        pin, previous = _recorded(composite.obj, use)
        dependent = composite.dependent(at, pin, previous=previous)
        if is_there(use.function):
            where = LineageKey(CAPABILITY, use.function)
            found.append(
                LineageRequest(dependent, where, str(use.selector), use.selector, REVISIONS)
            )
        else:
            fact = f"there is no function {use.function}"
            found.append(UnresolvedRequest(dependent, use.function, fact))
    return found


def _asked_composition(
    composite: Composite, lineage: Lineage | None
) -> LineageRequest | UnresolvedRequest:
    name, at = composite.composition, f"{composite.at}.compositionRef"
    if lineage is None or not name:
        fact = f"there is no composition {name}" if name else "no composition is chosen"
        return UnresolvedRequest(composite.dependent(at), name, fact)
    dependent, _, selector, policy = composite_entry(composite, lineage)
    return LineageRequest(dependent, where_composition(name), str(selector), selector, policy)


def _recorded(obj: ReadOnlyObject, use: StepFunctionUse) -> tuple[Pin | None, Pin | None]:
    """Return the pin of the revision that a step called last, and of the one before it.

    Each is None if there is no such call.
    """
    for each in calls_in(obj):
        if (each.step, each.function) == (use.step, use.function):
            return each.pin, each.previous
    return None, None
