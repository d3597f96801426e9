"""The status of a definition: what was published, and why something was not."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from polyver.core import Lineage, Release, Serial
from polyver.core.adoption import Adoption
from polyver.core.plain import ReadOnlyObject
from polyver.definitions.adoption import adoption_data, adoption_fact
from polyver.definitions.entries import newest_of
from polyver.definitions.names import ALLOW_DELETION, revision_name
from polyver.definitions.publishing._plan import Decision
from polyver.definitions.publishing._spec import Refusal

__all__ = ["status_of", "with_adoption"]


def status_of(
    obj: ReadOnlyObject, decision: Decision, refusals: Sequence[Refusal], *, now: str
) -> dict[str, Any]:
    """The status that a definition should have; times of what has not changed stay."""
    lineage = decision.before if refusals else decision.after
    before: ReadOnlyObject = obj.get("status") or {}
    known = {each["type"]: each for each in before.get("conditions") or ()}
    generation = obj["metadata"].get("generation", 1)
    made = [_condition(each, known, generation, now) for each in _facts(decision, refusals)]
    ours = {each["type"] for each in made}
    others = [each for each in known.values() if each["type"] not in ours]
    taken = {**_taken(before), **{str(each.version): each.users for each in decision.forced}}
    versions = [
        _version(lineage.name, each, taken.get(str(each.version), ()))
        for each in reversed(lineage.releases)
    ]
    newest = newest_of(lineage)
    status = {**before, "conditions": [*others, *made], "versions": versions}
    if newest is not None:
        status["latestRevision"] = _revision(lineage, newest)
    return status


def with_adoption(
    status: ReadOnlyObject, adoption: Mapping[str, Adoption], *, generation: int, now: str
) -> dict[str, Any]:
    """A status that tells who follows which version; nothing, if nobody ever did."""
    known = {each["type"]: each for each in status.get("conditions") or ()}
    if not adoption and "Adopted" not in known:
        return dict(status)
    fact = _condition(adoption_fact(adoption), known, generation, now)
    conditions = [*({**known, "Adopted": fact}).values()]
    versions = adoption_data(status.get("versions") or (), adoption)
    return {**status, "conditions": conditions, "versions": versions}


def _facts(decision: Decision, refusals: Sequence[Refusal]) -> Iterator[dict[str, str]]:
    if refusals:
        said = {"status": "False", "reason": refusals[0].reason}
        yield {"type": "Published", **said, "message": "; ".join(map(str, refusals))}
    else:
        message = f"{len(decision.after)} versions" if len(decision.after) != 1 else "1 version"
        yield {"type": "Published", "status": "True", "reason": "Published", "message": message}
    if decision.warnings:
        said = {"status": "Unknown", "reason": "Warned", "message": "; ".join(decision.warnings)}
    else:
        said = {
            "status": "True",
            "reason": "Compared",
            "message": "no parameter change breaks users",
        }
    if not refusals:
        yield {"type": "Compatible", **said}


def _condition(
    fact: Mapping[str, str], known: Mapping[str, ReadOnlyObject], generation: int, now: str
) -> dict[str, Any]:
    before = known.get(fact["type"], {})
    same = before.get("status") == fact["status"]
    since = before["lastTransitionTime"] if same else now
    return {**fact, "observedGeneration": generation, "lastTransitionTime": since}


def _taken(before: ReadOnlyObject) -> dict[str, Sequence[str]]:
    """From whom versions were taken by force, as it was recorded then."""
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
