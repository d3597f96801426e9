"""The status of a definition, with the adoption of its releases.

The adoption of a release has two main numbers: how many dependents follow the release, and how many
of these use it. A dependent is one reference in one application. A dependent follows a definition
if it moves to new releases automatically. It does so if it requests a series, or if it requests no
version and its policy selects the newest release each time.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from typing import Any

from polyver.capability.gates import gate_data
from polyver.core import (
    Lineage,
    Policy,
    PolyverError,
    Release,
    Selector,
    Serial,
    Series,
    Unspecified,
    resolve,
)
from polyver.core.adoption import Adoption, Follower, adopted
from polyver.core.plain import ReadOnlyObject
from polyver.definitions.names import ALLOW_DELETION, revision_name
from polyver.definitions.publishing._plan import Decision
from polyver.definitions.publishing._spec import Refusal
from polyver.definitions.uses import DefinitionUse, question_of
from polyver.definitions.versions import newest_of
from polyver.kube.objects.conditions import DesiredCondition, find_condition, set_conditions

__all__ = ["adoption_of", "status_of", "with_adoption"]


def status_of(
    obj: ReadOnlyObject, decision: Decision, refusals: Sequence[Refusal], *, now: str
) -> dict[str, Any]:
    """Build the status of a definition; unchanged conditions keep their transition times."""
    lineage = decision.before if refusals else decision.after
    before: ReadOnlyObject = obj.get("status") or {}
    conditions = set_conditions(obj, _conditions(decision, refusals), now=now)
    # The applications that used a version when the version was removed by force.
    taken: dict[str, Sequence[str]] = {
        each["version"]: each["removedFrom"]
        for each in before.get("versions") or ()
        if each.get("removedFrom")
    }
    taken |= {str(each.version): each.users for each in decision.forced}
    versions = [
        _version(lineage.name, each, taken.get(str(each.version), ()))
        for each in reversed(lineage.releases)
    ]
    newest = newest_of(lineage)
    status = {**before, "conditions": conditions, "versions": versions}
    if newest is not None:
        status["latestRevision"] = {
            "name": _name(lineage.name, newest),
            "revision": newest.version.number if isinstance(newest.version, Serial) else 0,
            "revisionHash": newest.digest,
        }
    return status


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
        **({"gate": gate_data(release.gate)} if release.gate is not None else {}),
        **({"allowDeletion": True} if release.labels.get(ALLOW_DELETION) == "true" else {}),
    }


def _name(definition: str, release: Release) -> str:
    legacy = isinstance(release.version, Serial)
    return release.name if legacy else revision_name(definition, release.version)


# Adoption.


def adoption_of(uses: Iterable[tuple[DefinitionUse, int]], lineage: Lineage) -> dict[str, Adoption]:
    """Compute the adoption of each release that has followers. The newest release is first.

    `uses` are the distinct uses of a definition, each with the number of references that it
    represents.
    """
    found: dict[str, Adoption] = {}
    for use, number in uses:
        with suppress(PolyverError):  # a reference that cannot be resolved follows no release
            asked, policy = question_of(use, lineage)
            if _follows(use, asked, policy):
                free = replace(use.dependent, failed_move=None)
                release = resolve(lineage, asked, policy, free).release
                before = found.get(release.name, Adoption())
                found[release.name] = before.with_follower(_state(use, release.pin), number)
    return {
        each.name: found[each.name] for each in reversed(lineage.releases) if each.name in found
    }


def _follows(use: DefinitionUse, asked: Selector, policy: Policy) -> bool:
    if use.held or use.dependent.lock is not None:
        return False
    if isinstance(asked, Unspecified):
        return Unspecified not in policy.keeps
    return isinstance(asked, Series)


def _state(use: DefinitionUse, pin: object) -> Follower:
    failed = use.dependent.failed_move
    if use.dependent.pin == pin:
        return "failing" if use.is_failing else "updated"
    if failed is not None and failed.to == pin:
        return "held" if failed.deletes else "failing"
    return ""


def with_adoption(
    obj: ReadOnlyObject, adoption: Mapping[str, Adoption], *, now: str
) -> dict[str, Any]:
    """Return the status of a definition with the adoption of each version added.

    The status gets no condition `Adopted` if the definition never had followers.
    """
    status: ReadOnlyObject = obj.get("status") or {}
    if not adoption and find_condition(obj, "Adopted") is None:
        return dict(status)
    adopting = DesiredCondition("Adopted", *adopted(adoption, noun="versions"))
    conditions = set_conditions(obj, [adopting], now=now)
    versions: list[ReadOnlyObject] = []
    for each in status.get("versions") or ():
        bare = {name: said for name, said in each.items() if name != "adoption"}
        known = adoption.get(each["version"]) or adoption.get(each["revision"])
        versions.append(bare | ({"adoption": known._asdict()} if known is not None else {}))
    return {**status, "conditions": conditions, "versions": versions}
