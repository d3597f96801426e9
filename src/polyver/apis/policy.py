"""How an API version is chosen: what a client writes as apiVersion, else the preferred one."""

from __future__ import annotations

from polyver.core import Exact, KubeVersion, Lineage, Policy, Selector, Stage

APIS = Policy(
    "apis",
    usable=frozenset({Stage.SERVED, Stage.DEPRECATED}),
    best="preferred served version",
    noun="version",
)


def selector(text: str, _: Lineage) -> Selector:
    """Read an API version, without its group."""
    return Exact(KubeVersion.parse(text))
