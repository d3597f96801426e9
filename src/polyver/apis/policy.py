"""The policy for API versions: a request gets the version that it names.

A request that names no version gets the preferred served version.
"""

from __future__ import annotations

from polyver.core import Exact, KubeVersion, Lineage, Policy, Selector, Stage

APIS = Policy(
    "apis",
    usable=frozenset({Stage.SERVED, Stage.DEPRECATED}),
    best="preferred served version",
    noun="version",
)


def selector(text: str, _: Lineage) -> Selector:
    """Parse an API version without its group, such as `v1`, to a selector of this version."""
    return Exact(KubeVersion.parse(text))
