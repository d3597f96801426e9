"""The interface by which a capability contributes to `polyver plan`."""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

import msgspec

from polyver.core.plain import Object
from polyver.core.preflight import Outcome, Preflight, PreflightReport
from polyver.kube.objects.status import ApiError

if TYPE_CHECKING:
    from polyver.client import Client
    from polyver.client.cluster import ClusterAccess
    from polyver.kube.objects import Document

__all__ = [
    "OUTCOME_KEYS",
    "DependentNoun",
    "PlanQuestion",
    "PlannedChanges",
    "PlannedRow",
    "Planner",
    "applied_to",
    "last_applied",
    "may_not_write",
]

OUTCOME_KEYS: Final[Mapping[Outcome, str]] = {
    "unchanged": "unchanged",
    "changed": "changed",
    "loses": "wouldLoseObjects",
    "fails": "wouldFail",
}
"""The outcomes of dependents in the output as JSON or YAML."""
_CANNOT: Final = re.compile(r'" cannot (create|update) resource "')
_LAST_APPLIED: Final = "kubectl.kubernetes.io/last-applied-configuration"


@dataclass(frozen=True, slots=True, kw_only=True)
class PlanQuestion:
    """The arguments of `polyver plan`."""

    documents: Sequence[Document]
    """All documents of the files."""
    namespace: str
    """The namespace of objects that do not have a namespace in the files."""
    sample: int | None
    """The maximum number of composite resources to compose; None means all."""
    options: Any
    """The options of the capability, as an object of the class `plan_options`."""


@dataclass(frozen=True, slots=True)
class DependentNoun:
    """The words for the dependents of a capability, such as applications."""

    singular: str
    plural: str
    key: str
    """The key for dependents in JSON and YAML, such as `applications`. It ends with `s`."""

    def count(self, number: int) -> str:
        """Return a number with the noun.

        >>> DependentNoun("application", "applications", "applications").count(2)
        '2 applications'
        """
        return f"1 {self.singular}" if number == 1 else f"{number} {self.plural}"


PlannedRow = tuple[str, str, str, str]
"""The name of what a dependent uses, the version in use, the next version, and the reason."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PlannedChanges:
    """The changes that would follow if the objects of one capability in the files were applied."""

    noun: DependentNoun
    kinds: Collection[tuple[str, str]] = ()
    """Further kinds, besides those of the Planner, whose objects in the files were checked."""
    report: PreflightReport
    failing: PreflightReport = field(default_factory=lambda: Preflight().report())
    """Dependents that fail now, and that would still fail if the files were applied."""
    notes: Sequence[str] = ()
    """Lines about the sample of dependents that the report covers. They follow the summary."""
    published: Sequence[str] = ()
    """Lines about each object in the files: what it would publish, or why it would be refused."""
    warnings: Sequence[str] = ()
    column: str
    """The title of the first column in the table of moves, such as `DEFINITION`."""
    moves: Mapping[PlannedRow, Collection[str]]
    """The dependents that would move to another version, by the row of the table."""
    refused: Sequence[str] = ()
    """Names of the objects in the files that the API server or a controller would refuse."""
    losing: int = 0
    """Number of dependents that would lose objects, although no annotation allows the deletion."""
    data: Mapping[str, Any]
    """Further fields of the output as JSON or YAML."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Planner:
    """The contribution of a capability to `polyver plan`."""

    kinds: frozenset[tuple[str, str]]
    """The groups and kinds of the objects in files that the capability plans or checks."""
    plan: Callable[[Client, ClusterAccess, PlanQuestion], Awaitable[PlannedChanges | None]]
    """Computes the changes; writes nothing to the cluster.

    The result is None if the files contain no object that the capability plans.
    """


def may_not_write(error: ApiError) -> bool:
    """Report whether an API server refused a write because the user has no permission for it.

    A refusal by admission may have the same code, and does not say that the user cannot write.
    """
    return error.code == 403 and bool(_CANNOT.search(error.message))


def applied_to(live: Object | None, written: Object) -> Object:
    """Return the object that results if `kubectl apply` applies `written` to the object `live`.

    The spec of `written` replaces the spec. Labels and annotations of `live` stay, except those
    that the object had when kubectl applied it last, and that `written` does not have.
    """
    if live is None:
        return {**written, "metadata": {**written["metadata"]}}
    metadata = {**live["metadata"]}
    before = (last_applied(live) or {}).get("metadata") or {}
    for part in ("labels", "annotations"):
        said = written["metadata"].get(part) or {}
        gone = {*(before.get(part) or {})} - {*said}
        kept = {k: v for k, v in (metadata.get(part) or {}).items() if k not in gone}
        if kept or said or part in metadata:
            metadata[part] = {**kept, **said}
    return {**live, "spec": written.get("spec") or {}, "metadata": metadata}


def last_applied(live: Object) -> Object | None:
    """Return an object as kubectl applied it last; None if kubectl never did."""
    text = (live["metadata"].get("annotations") or {}).get(_LAST_APPLIED)
    try:
        found = msgspec.json.decode(text) if text else None
    except msgspec.DecodeError:
        return None  # a user has changed the annotation
    return found if isinstance(found, dict) else None
