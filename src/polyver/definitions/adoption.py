"""Adoption of releases: the number of dependents that follow a release, and that use it.

A dependent is one reference in one application. It follows if it moves to new releases by itself:
it selects a series, or nothing where that means the newest release.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace

from polyver.core import Lineage, Policy, PolyverError, Selector, Series, Unspecified, resolve
from polyver.core.adoption import Adoption, Follower, adopted
from polyver.core.plain import ReadOnlyObject
from polyver.definitions.uses import DefinitionUse, question_of
from polyver.kube.objects.conditions import DesiredCondition

__all__ = ["adoption_condition", "adoption_data", "adoption_of"]


def adoption_of(uses: Iterable[tuple[DefinitionUse, int]], lineage: Lineage) -> dict[str, Adoption]:
    """Return the adoption of each followed release, by its name, newest first.

    `uses` are the distinct uses of a definition, each with the number of references.
    """
    found: dict[str, Adoption] = {}
    for use, number in uses:
        with suppress(PolyverError):  # an unresolved reference follows nothing
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


def adoption_data(
    versions: Sequence[ReadOnlyObject], adoption: Mapping[str, Adoption]
) -> list[ReadOnlyObject]:
    """Return the versions in the status of a definition, with their adoption."""
    found: list[ReadOnlyObject] = []
    for each in versions:
        bare = {name: said for name, said in each.items() if name != "adoption"}
        known = adoption.get(each["version"]) or adoption.get(each["revision"])
        found.append(bare | ({"adoption": known._asdict()} if known is not None else {}))
    return found


def adoption_condition(adoption: Mapping[str, Adoption]) -> DesiredCondition:
    """Return the condition `Adopted` of a definition."""
    return DesiredCondition("Adopted", *adopted(adoption, noun="versions"))
