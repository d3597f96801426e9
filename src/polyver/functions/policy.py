"""Policy by which phases select function versions: `funcVersion`, preferred or stable version."""

from __future__ import annotations

from polyver.core import Exact, Lineage, Policy, Selector, SemVer, Stage

FUNCTIONS = Policy(
    "functions",
    usable=frozenset({Stage.CANDIDATE, Stage.STABLE, Stage.DEPRECATED}),
    best="stable version",
    noun="version",
    preferred=frozenset({Stage.STABLE}),
    otherwise=SemVer.parse("v0.0.0"),
)


def selector(text: str, _: Lineage) -> Selector:
    """Parse a `funcVersion`.

    The result is always an exact version: `v0.1` means v0.1.0, not a series.
    """
    return Exact(SemVer.complete(text))
