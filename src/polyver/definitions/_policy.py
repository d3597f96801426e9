"""Policies of the annotation autoUpdate, and the parser of selectors in `type: name@selector`."""

from __future__ import annotations

from dataclasses import replace

from polyver.core import (
    Exact,
    InvalidVersion,
    Lineage,
    Policy,
    PolyverError,
    Selector,
    SemVer,
    Serial,
    Series,
    Stage,
    Unspecified,
)

DEFINITIONS = Policy(
    "definitions",
    usable=frozenset({Stage.PUBLISHED, Stage.DEPRECATED}),
    best="newest release",
    keeps=frozenset({Unspecified}),
)
"""Policy without the annotation: a series follows; no selector is pinned at creation."""

DEFINITIONS_FOLLOW = replace(DEFINITIONS, name="definitions-follow", keeps=frozenset())
"""Policy with `"true"`: no selector follows, too."""

DEFINITIONS_EXACT = replace(
    DEFINITIONS,
    name="definitions-exact",
    refuses={Series: 'autoUpdate is "false" and only exact versions are deterministic'},
)
"""Policy with `"false"`: a series is refused."""

DEFINITIONS_PRERELEASES = replace(DEFINITIONS, name="definitions-prereleases", prereleases=True)
"""Policy without the annotation, with prereleases allowed."""

SEMANTIC_POLICIES = (
    DEFINITIONS,
    DEFINITIONS_FOLLOW,
    DEFINITIONS_EXACT,
    DEFINITIONS_PRERELEASES,
)

DEFINITIONS_LEGACY = replace(
    DEFINITIONS,
    name="definitions-legacy",
    best="newest revision",
    noun="revision",
    keeps=frozenset(),
)
"""Policy of definitions without semantic versions: no selector follows the newest revision."""


def policy_for(auto_update: str | None, lineage: Lineage) -> Policy:
    """Return the policy of an application's annotation for one of its definitions."""
    if is_legacy(lineage):
        return DEFINITIONS_LEGACY
    match auto_update:
        case None:
            return DEFINITIONS
        case "true":
            return DEFINITIONS_FOLLOW
        case "false":
            return DEFINITIONS_EXACT
    raise PolyverError(
        f'app.oam.dev/autoUpdate is "{auto_update}"', hint='expected "true" or "false"'
    )


def is_legacy(lineage: Lineage) -> bool:
    """Report whether the definition has revisions instead of semantic versions."""
    return any(isinstance(release.version, Serial) for release in lineage)


def selector(text: str, lineage: Lineage) -> Selector:
    """Parse the part after the `@`: a version, a series, or the name of a legacy revision."""
    if is_legacy(lineage):
        return Exact(f"{lineage.name}-{text}")
    for read in (Series.parse, lambda text: Exact(SemVer.parse(text))):
        try:
            return read(text)
        except InvalidVersion:
            continue
    expected = "a version or a series: expected 1.2.3, 1.2 or 1; ranges are not supported"
    raise InvalidVersion(text, expected)
