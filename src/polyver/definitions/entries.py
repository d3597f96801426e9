"""Entries of `spec.versions`: their versions and contents, and the newest of them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, TypeVar

from polyver.core import (
    UNSPECIFIED,
    InvalidVersion,
    Lineage,
    NoMatch,
    PolyverError,
    Release,
    SemVer,
    resolve,
)
from polyver.definitions._policy import DEFINITIONS, DEFINITIONS_PRERELEASES

__all__ = ["content_of", "newest_entry", "newest_of", "published_version"]

T = TypeVar("T", bound=Mapping[str, Any])


def published_version(text: str) -> SemVer:
    """Return the completed version; raise PolyverError if it cannot be published.

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
    """Return the content of a version: the entry without its number and its deprecation."""
    return {key: value for key, value in entry.items() if key not in ("version", "deprecated")}


def newest_entry(entries: Iterable[Any]) -> Any:
    """Return the entry with the newest version; a prerelease only if there is nothing else.

    Entries without a version come after all others, the first of them before the rest.

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
    """Return the release that an empty selector selects; a prerelease only if there is no other."""
    for policy in (DEFINITIONS, DEFINITIONS_PRERELEASES):
        try:
            return resolve(lineage, UNSPECIFIED, policy).release
        except NoMatch:
            continue
    return None
