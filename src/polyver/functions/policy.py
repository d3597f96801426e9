"""Policy by which polyver chooses the function version that a phase calls.

The phase calls its `funcVersion`. Without this field, it calls the preferred version of the action,
if the function has this version, or otherwise the stable version.
"""

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
    """Parse the `funcVersion` of a phase.

    The result is always an exact version: `v0.1` means v0.1.0, and not the series 0.1.
    """
    return Exact(SemVer.complete(text))
