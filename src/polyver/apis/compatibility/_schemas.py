"""Compare two schemas path by path."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from polyver.apis.compatibility._alternatives import compare_alternatives
from polyver.apis.compatibility._fields import compare_inside
from polyver.apis.compatibility._findings import (
    CompatibilityFinding,
    FindingSeverity,
    Schema,
    SchemaPair,
    within,
)
from polyver.apis.compatibility._normalized import EMBEDDED
from polyver.apis.compatibility._values import compare_type, compare_value

__all__ = ["compare_schemas"]


def compare_schemas(
    old: Schema, new: Schema, *, version: str = "", least: FindingSeverity = FindingSeverity.RISKY
) -> list[CompatibilityFinding]:
    """Return the changes of an openAPIV3Schema that break objects or clients, or may break them.

    Both must have passed `check_schema`. Safe changes are left out, unless `least` is
    `FindingSeverity.SAFE`. Without a breaking or risky finding, every object that was valid
    before is valid afterwards, and is kept unchanged except for new fields that have a default.

    >>> before = {"type": "object", "properties": {"cron": {"type": "string"}}}
    >>> after = {"type": "object", "properties": {"schedule": {"type": "string"}}}
    >>> [finding.fact for finding in compare_schemas(before, after)]
    ['string was removed; values are dropped; the new field schedule has the same schema']
    """
    # The root is always a complete object, but its schema does not state it.
    whole = SchemaPair({**old, EMBEDDED: True}, {**new, EMBEDDED: True})
    return within((replace(each, version=version) for each in _compare(whole)), least)


def _compare(place: SchemaPair) -> Iterator[CompatibilityFinding]:
    changed = compare_type(place)
    if changed is not None:
        yield changed
        if changed.severity is FindingSeverity.BREAKING:
            return
    yield from compare_value(place)
    yield from compare_alternatives(place)
    for each in compare_inside(place):
        if isinstance(each, SchemaPair):
            yield from _compare(each)
        else:
            yield each
