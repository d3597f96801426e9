"""The status of a definition."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from polyver.core import Lineage, Release, Serial
from polyver.core.adoption import Adoption
from polyver.core.plain import ReadOnlyObject
from polyver.definitions.adoption import adoption_condition, adoption_data
from polyver.definitions.entries import newest_of
from polyver.definitions.names import ALLOW_DELETION, revision_name
from polyver.definitions.publishing._plan import Decision
from polyver.definitions.publishing._spec import Refusal
from polyver.kube.objects.conditions import DesiredCondition, find_condition, set_conditions

__all__ = ["status_of", "with_adoption"]


def status_of(
    obj: ReadOnlyObject, decision: Decision, refusals: Sequence[Refusal], *, now: str
) -> dict[str, Any]:
    """Return the status that a definition should have; unchanged conditions keep their times."""
    lineage = decision.before if refusals else decision.after
    before: ReadOnlyObject = obj.get("status") or {}
    conditions = set_conditions(obj, _conditions(decision, refusals), now=now)
    taken = {**_taken(before), **{str(each.version): each.users for each in decision.forced}}
    versions = [
        _version(lineage.name, each, taken.get(str(each.version), ()))
        for each in reversed(lineage.releases)
    ]
    newest = newest_of(lineage)
    status = {**before, "conditions": conditions, "versions": versions}
    if newest is not None:
        status["latestRevision"] = _revision(lineage, newest)
    return status


def with_adoption(
    obj: ReadOnlyObject, adoption: Mapping[str, Adoption], *, now: str
) -> dict[str, Any]:
    """Return the status of a definition with its adoption.

    A definition that never had followers gets no condition `Adopted`.
    """
    status: ReadOnlyObject = obj.get("status") or {}
    if not adoption and find_condition(obj, "Adopted") is None:
        return dict(status)
    conditions = set_conditions(obj, [adoption_condition(adoption)], now=now)
    versions = adoption_data(status.get("versions") or (), adoption)
    return {**status, "conditions": conditions, "versions": versions}


def _conditions(decision: Decision, refusals: Sequence[Refusal]) -> Iterator[DesiredCondition]:
    if refusals:
        message = "; ".join(map(str, refusals))
        yield DesiredCondition("Published", "False", refusals[0].reason, message)
        return
    message = f"{len(decision.after)} versions" if len(decision.after) != 1 else "1 version"
    yield DesiredCondition("Published", "True", "Published", message)
    if decision.warnings:
        yield DesiredCondition("Compatible", "Unknown", "Warned", "; ".join(decision.warnings))
    else:
        message = "no parameter change breaks users"
        yield DesiredCondition("Compatible", "True", "Compared", message)


def _taken(before: ReadOnlyObject) -> dict[str, Sequence[str]]:
    """Return the users of each version that was removed by force, from the status."""
    known = before.get("versions") or ()
    return {each["version"]: each["removedFrom"] for each in known if each.get("removedFrom")}


def _version(definition: str, release: Release, taken: Sequence[str]) -> dict[str, Any]:
    notes = release.notes
    gone = [*taken] if release.stage.is_gone else []
    told = {"since": str(notes.since or ""), "use": notes.use, "removedFrom": gone}
    return {
        "version": str(release.version),
        "revision": _name(definition, release),
        "digest": release.digest,
        "stage": release.stage.value,
        **{name: said for name, said in told.items() if said},
        **({"allowDeletion": True} if release.labels.get(ALLOW_DELETION) == "true" else {}),
    }


def _name(definition: str, release: Release) -> str:
    legacy = isinstance(release.version, Serial)
    return release.name if legacy else revision_name(definition, release.version)


def _revision(lineage: Lineage, release: Release) -> dict[str, Any]:
    serial = release.version.number if isinstance(release.version, Serial) else 0
    name = _name(lineage.name, release)
    return {"name": name, "revision": serial, "revisionHash": release.digest}
