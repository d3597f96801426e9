"""How an application's `type: name@selector` is read, and what its autoUpdate annotation means."""

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
"""Without the annotation: a series follows, nothing asked for is pinned at creation."""

DEFINITIONS_FOLLOW = replace(DEFINITIONS, name="definitions-follow", keeps=frozenset())
"""With `"true"`: nothing asked for follows too."""

DEFINITIONS_EXACT = replace(
    DEFINITIONS,
    name="definitions-exact",
    refuses={Series: 'autoUpdate is "false" and only exact versions are deterministic'},
)
"""With `"false"`: a series fails."""

DEFINITIONS_PRERELEASES = replace(DEFINITIONS, name="definitions-prereleases", prereleases=True)
"""As without the annotation, but a prerelease may be the newest."""

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
"""For definitions without semantic versions: nothing asked for follows, as it always did."""


def policy_for(auto_update: str | None, lineage: Lineage) -> Policy:
    """The policy that an application's annotation asks for, for one of its definitions."""
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
    """Whether the definition has revisions instead of semantic versions."""
    return any(isinstance(release.version, Serial) for release in lineage)


def selector(text: str, lineage: Lineage) -> Selector:
    """Read what stands behind the `@`: a version, a series, or the name of a legacy revision."""
    if is_legacy(lineage):
        return Exact(f"{lineage.name}-{text}")
    for read in (Series.parse, lambda text: Exact(SemVer.parse(text))):
        try:
            return read(text)
        except InvalidVersion:
            continue
    expected = "a version or a series: expected 1.2.3, 1.2 or 1; ranges are not supported"
    raise InvalidVersion(text, expected)
