"""Compositions as lineages of revisions, and composite resources, which ask them and functions.

Only what is asked is kept of a composite resource, since there may be many.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any

from polyver.client import Key, Resource
from polyver.compositions._policy import COMPOSITIONS, REVISIONS
from polyver.compositions.decisions import (
    Composite,
    Defined,
    check_definition,
    composite_entry,
    composition_lineage,
    known_composition_revision,
    read_composite,
    read_definition,
)
from polyver.compositions.decisions import KnownRevision as Known
from polyver.compositions.packages import Pipeline, pipeline_of
from polyver.core import Lineage, Pin
from polyver.core.plain import Object
from polyver.web.sources import Asked, Details, Shown, Unanswered, Where

__all__ = [
    "Composition",
    "KindOf",
    "composite_of",
    "composition_of",
    "composition_shown",
    "kind_of",
    "places_of",
    "where_composition",
]

CAPABILITY = "compositions"
CompositeKey = tuple[Resource, Key]


@dataclass(frozen=True, slots=True)
class Composition:
    """A CompositionRevision, as far as it is shown."""

    pipeline: Pipeline
    known: Known
    target: str
    """The kind that it is for."""


def composition_of(obj: Object) -> Composition:
    """A CompositionRevision as it was read."""
    target = obj["spec"]["compositeTypeRef"]
    about = f"{target['apiVersion']} {target['kind']}"
    return Composition(pipeline_of(obj), known_composition_revision(obj), about)


@dataclass(frozen=True, slots=True)
class KindOf:
    """A kind of composite resources: how they are read, and where they are."""

    defined: Defined
    resource: Resource


def kind_of(obj: Object) -> KindOf | None:
    """The kind that a definition defines; None while something is wrong with it."""
    if check_definition(obj):
        return None
    defined, spec = read_definition(obj), obj["spec"]
    namespaced = spec.get("scope") == "Namespaced"
    place = Resource(defined.group, defined.version, spec["names"]["plural"], namespaced)
    return KindOf(defined, place)


def composite_of(obj: Object, kind: KindOf) -> Composite:
    """What is kept of a composite resource."""
    metadata = obj["metadata"]
    about = {k: metadata[k] for k in ("name", "namespace", "uid", "labels") if metadata.get(k)}
    light: Object = {
        "apiVersion": kind.defined.api_version,
        "kind": kind.defined.kind,
        "metadata": about,
        "status": {"pipeline": (obj.get("status") or {}).get("pipeline") or []},
    }
    return replace(read_composite({**light, "spec": obj.get("spec")}, kind.defined), obj=light)


def where_composition(name: str) -> Where:
    """Where the lineage of a composition is; functions have no slash in their names."""
    return Where(CAPABILITY, f"composition/{name}")


def lineage_of(name: str, revisions: Iterable[Composition]) -> Lineage:
    return composition_lineage(name, [each.known for each in revisions])


def composition_shown(name: str, revisions: Mapping[str, Composition]) -> Shown:
    """A composition as the page shows it."""
    lineage = lineage_of(name, revisions.values())
    newest = revisions[lineage.releases[-1].name]
    details = {each: Details(_steps(known.pipeline)) for each, known in revisions.items()}
    return Shown(
        where_composition(name),
        lineage,
        COMPOSITIONS,
        "composition",
        facts={"composes": newest.target},
        details=details,
    )


def _steps(pipeline: Pipeline) -> str:
    asked = [
        f"{use.function} ({use.selector})" if str(use.selector) else use.function
        for use in pipeline.uses
    ]
    return f"calls {', '.join(asked)}" if asked else "calls nothing"


def places_of(
    composite: Composite,
    lineage: Lineage | None,
    used: Composition | None,
    is_there: Callable[[str], bool],
) -> list[Asked | Unanswered]:
    """What a composite resource asks of its composition, and its steps of functions."""
    found: list[Asked | Unanswered] = [_asked_composition(composite, lineage)]
    for place, use in enumerate(used.pipeline.uses if used is not None else ()):
        at = f"{use.dependent.name}, {use.dependent.at}"
        dependent = composite.dependent(at, _recorded(composite.obj, place, use.function))
        if is_there(use.function):
            where = Where(CAPABILITY, use.function)
            found.append(Asked(dependent, where, str(use.selector), use.selector, REVISIONS))
        else:
            fact = f"there is no function {use.function}"
            found.append(Unanswered(dependent, use.function, fact))
    return found


def _asked_composition(composite: Composite, lineage: Lineage | None) -> Asked | Unanswered:
    name, at = composite.composition, f"{composite.at}.compositionRef"
    if lineage is None or not name:
        fact = f"there is no composition {name}" if name else "no composition is chosen"
        return Unanswered(composite.dependent(at), name, fact)
    dependent, _, selector, policy = composite_entry(composite, lineage)
    return Asked(dependent, where_composition(name), str(selector), selector, policy)


def _recorded(obj: Mapping[str, Any], place: int, function: str) -> Pin | None:
    """The revision that a step called when the composite resource was composed last."""
    for each in obj["status"]["pipeline"][place : place + 1]:
        if each["function"] == function:
            return Pin(each["revision"], each.get("digest", ""))
    return None
