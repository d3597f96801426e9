"""The policy for API versions: the version of the request; by default, the preferred version."""

from __future__ import annotations

from polyver.core import Exact, KubeVersion, Lineage, Policy, Selector, Stage

APIS = Policy(
    "apis",
    usable=frozenset({Stage.SERVED, Stage.DEPRECATED}),
    best="preferred served version",
    noun="version",
)


def selector(text: str, _: Lineage) -> Selector:
    """Parse an API version, without its group."""
    return Exact(KubeVersion.parse(text))
