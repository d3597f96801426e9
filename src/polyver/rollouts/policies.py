"""Decisions about policies: which releases they open and close, and which rollouts they start."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence

from polyver.capability.gates import LineageName, ReleaseObject, is_target
from polyver.core.plain import ReadOnlyObject

__all__ = ["older_policy", "releases_to_start", "unmarked_releases"]


def older_policy(
    policy: ReadOnlyObject,
    lineages: Mapping[LineageName, Mapping[str, str]],
    others: Sequence[ReadOnlyObject],
) -> str:
    """Return a message that names the older policy of a lineage; empty if there is none."""
    mine = _age(policy)
    for other in sorted(others, key=_age):
        for lineage, labels in sorted(lineages.items()):
            if _age(other) < mine and is_target(other, lineage, labels):
                return f"{lineage} has the older policy {other['metadata']['name']}"
    return ""


def _age(policy: ReadOnlyObject) -> tuple[str, str]:
    metadata = policy["metadata"]
    return metadata.get("creationTimestamp") or "", metadata["name"]


def unmarked_releases(releases: Sequence[ReleaseObject]) -> Iterator[tuple[ReleaseObject, bool]]:
    """Yield each release that nobody has opened or closed; True if the policy closes it.

    Releases before the first one that is marked are older than the policy, and so are all of them
    if none is marked. These are opened.
    """
    after = False
    for each in releases:
        after = after or each.is_marked
        if not each.is_marked:
            yield each, after


def releases_to_start(
    releases: Sequence[ReleaseObject], started: Collection[str]
) -> Iterator[ReleaseObject]:
    """Yield the closed releases that have no rollout yet."""
    for each in releases:
        if each.is_marked and each.gate is not None and each.name not in started:
            yield each
