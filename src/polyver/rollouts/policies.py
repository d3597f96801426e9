"""Decides for a policy which releases to open, and which rollouts to create and delete."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from typing import Final

from polyver.capability.gates import LineageName, ReleaseObject, is_target
from polyver.core.plain import ReadOnlyObject
from polyver.languages.values.names import dns_subdomain_problems

__all__ = [
    "KEPT",
    "older_policy",
    "releases_to_start",
    "rollout_name",
    "surplus_rollouts",
    "unmarked_releases",
    "unused_name",
]

KEPT: Final = 20
"""The maximum number of finished Rollouts that polyver keeps for each lineage."""


def older_policy(
    policy: ReadOnlyObject,
    lineages: Mapping[LineageName, Mapping[str, str]],
    others: Sequence[ReadOnlyObject],
) -> str:
    """Return a message if an older policy targets one of these lineages; otherwise ""."""
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
    """Yield each release without a gate annotation, with True if the policy must close it.

    A release must be closed if an older release has the annotation. Otherwise it is older than the
    policy, and is opened.
    """
    after = False
    for each in releases:
        after = after or each.is_marked
        if not each.is_marked:
            yield each, after


def releases_to_start(
    lineage: LineageName, releases: Sequence[ReleaseObject], active: Collection[str]
) -> Iterator[ReleaseObject]:
    """Yield the releases that a policy has closed, and that have no active rollout.

    `active` are the names of the releases with an active rollout. If a user has deleted a rollout,
    the gate of its release still names this rollout. Such a release is not yielded: only a user can
    start another rollout of it.
    """
    for each in releases:
        gate = each.gate
        if gate is None or not each.is_marked or each.name in active:
            continue
        if not gate.step and not gate.returns and not _is_rollout(gate.rollout, lineage, each.name):
            yield each


def _is_rollout(name: str, lineage: LineageName, release: str) -> bool:
    """Report whether `name`, the name in a gate, is the name of a rollout and not of a policy."""
    first = rollout_name(lineage, release)
    return name == first or (name.startswith(f"{first}-") and name.rpartition("-")[2].isdecimal())


def surplus_rollouts(finished: Iterable[tuple[str, str]]) -> list[str]:
    """Return the names of the finished rollouts to delete: all except the newest `KEPT` ones.

    Each rollout in `finished` is a pair of its creation time and its name.

    >>> surplus_rollouts((f"2030-01-{day:02}", f"web-1.0.{day}") for day in range(1, 23))
    ['web-1.0.1', 'web-1.0.2']
    """
    return [name for _, name in sorted(finished)[:-KEPT]]


def rollout_name(lineage: LineageName, release: str) -> str:
    """Return the name of the rollout of a release.

    >>> rollout_name(LineageName("core.oam.dev", "TraitDefinition", "vela-system", "web"), "1.2.5")
    'web-1.2.5'

    The name of a function may have characters that the name of an object must not have.

    >>> rollout_name(LineageName("polyver.dev", "BlueprintFunction", "", "Kube_Exec"), "v0.2.0")
    'kube-exec-v0.2.0'
    """
    name = f"{lineage.name}-{release}" if not release.startswith(lineage.name) else release
    name = re.sub(r"[^-a-z0-9.]", "-", name.lower().replace("+", "."))
    return name if not dns_subdomain_problems(name) else name[:253].strip("-.")


def unused_name(name: str, used: Collection[str]) -> str:
    """Return `name`, or `name` with a number at its end if another rollout has this name.

    >>> unused_name("web-1.2.5", ["web-1.2.5", "web-1.2.5-2"])
    'web-1.2.5-3'
    """
    number, found = 1, name
    while found in used:
        number += 1
        found = f"{name[: 253 - len(str(number)) - 1]}-{number}"
    return found
