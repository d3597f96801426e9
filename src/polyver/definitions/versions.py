"""Versions of definitions: how they are written, and how applications select them.

A definition publishes the versions in `spec.versions`. An application selects a version with `type:
NAME@SELECTOR`. The application's annotation `app.oam.dev/autoUpdate` chooses the policy.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any, TypeVar

from polyver.core import (
    UNSPECIFIED,
    Exact,
    InvalidVersion,
    Lineage,
    NoMatch,
    Policy,
    PolyverError,
    Release,
    Selector,
    SemVer,
    Serial,
    Series,
    Stage,
    Unspecified,
    resolve,
)

__all__ = [
    "DEFINITIONS",
    "DEFINITIONS_EXACT",
    "DEFINITIONS_FOLLOW",
    "DEFINITIONS_LEGACY",
    "DEFINITIONS_PRERELEASES",
    "SEMANTIC_POLICIES",
    "content_of",
    "is_legacy",
    "newest_entry",
    "newest_of",
    "policy_for",
    "published_version",
    "selector",
]

DEFINITIONS = Policy(
    "definitions",
    usable=frozenset({Stage.PUBLISHED, Stage.DEPRECATED}),
    best="newest release",
    keeps=frozenset({Unspecified}),
)
"""Policy without the annotation autoUpdate. A reference that requests a series moves to new
releases. A reference that requests no version keeps its first release.
"""

DEFINITIONS_FOLLOW = replace(DEFINITIONS, name="definitions-follow", keeps=frozenset())
"""Policy with autoUpdate `"true"`: a reference that requests no version moves to new releases, like
a reference that requests a series.
"""

DEFINITIONS_EXACT = replace(
    DEFINITIONS,
    name="definitions-exact",
    refuses={Series: 'autoUpdate is "false" and only exact versions are deterministic'},
)
"""Policy with autoUpdate `"false"`: a request for a series is refused."""

DEFINITIONS_PRERELEASES = replace(DEFINITIONS, name="definitions-prereleases", prereleases=True)
"""Like the policy DEFINITIONS, but a reference that requests no version or a series may get a
prerelease.
"""

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
"""Policy of definitions with numbered revisions. A reference that requests no revision moves to the
newest revision.
"""


def policy_for(auto_update: str | None, lineage: Lineage) -> Policy:
    """Return the policy with which references of an application to a definition are resolved.

    `auto_update` is the value of the application's annotation `app.oam.dev/autoUpdate`; None if it
    is missing.
    """
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
    """Report whether a definition has numbered revisions instead of semantic versions."""
    return any(isinstance(release.version, Serial) for release in lineage)


def selector(text: str, lineage: Lineage) -> Selector:
    """Parse the part of a reference after the `@`: a version, or a series.

    If the definition has numbered revisions, the part is the end of a revision's name: `v3`.
    """
    if is_legacy(lineage):
        return Exact(f"{lineage.name}-{text}")
    for read in (Series.parse, lambda text: Exact(SemVer.parse(text))):
        try:
            return read(text)
        except InvalidVersion:
            continue
    expected = "a version or a series: expected 1.2.3, 1.2 or 1; ranges are not supported"
    raise InvalidVersion(text, expected)


T = TypeVar("T", bound=Mapping[str, Any])


def published_version(text: str) -> SemVer:
    """Parse a version and complete it to three numbers. Raise an error if it is invalid.

    >>> published_version("3.4")
    SemVer('3.4.0')
    """
    version = SemVer.complete(text)
    for wrong, what in (
        (text.startswith("v"), 'a leading "v"'),
        (bool(version.build), "build metadata"),
        (text != text.lower(), "uppercase letters"),
    ):
        if wrong:
            hint = "it becomes part of an object's name" if "upper" in what else "omit it"
            raise PolyverError(f'"{text}" is published with {what}', hint=hint)
    return version


def content_of(entry: Mapping[str, Any]) -> dict[str, Any]:
    """Return the content of a version: the entry without the fields version and deprecated."""
    return {key: value for key, value in entry.items() if key not in ("version", "deprecated")}


def newest_entry(entries: Iterable[Any]) -> Any:
    """Return the entry with the newest version. Return the first entry if no version is valid.

    A prerelease is returned only if all versions are prereleases.

    >>> newest_entry([{"version": "2"}, {"version": "3.4"}, {"version": "4.0.0-rc.1"}])
    {'version': '3.4'}
    """
    known: dict[SemVer, Any] = {}
    first: Any = None
    for entry in entries:
        first = entry if first is None else first
        text = entry.get("version") if isinstance(entry, Mapping) else None
        try:
            known.setdefault(SemVer.complete(text if isinstance(text, str) else ""), entry)
        except InvalidVersion:
            continue
    newest = newest_of(Lineage("", map(Release, known)))
    if newest is None:
        return first
    assert isinstance(newest.version, SemVer)
    return known[newest.version]


def newest_of(lineage: Lineage) -> Release | None:
    """Return the release that a reference without a selector gets; None if there is none.

    It is a prerelease only if all releases are prereleases.
    """
    for policy in (DEFINITIONS, DEFINITIONS_PRERELEASES):
        try:
            return resolve(lineage, UNSPECIFIED, policy).release
        except NoMatch:
            continue
    return None
