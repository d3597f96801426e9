"""Two schemas side by side, place by place."""

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
    """What objects and clients of the old openAPIV3Schema can no longer do under the new one.

    Both must have passed `check_schema`. What takes nothing away is left out, unless `least` is
    `Severity.SAFE`. Without a finding that is breaking or risky, every object that was right
    before is right afterwards, and is kept as it is, but for new fields that have a default.

    >>> before = {"type": "object", "properties": {"cron": {"type": "string"}}}
    >>> after = {"type": "object", "properties": {"schedule": {"type": "string"}}}
    >>> [finding.fact for finding in compare_schemas(before, after)]
    ['string was removed; values are dropped; the new field schedule has the same schema']
    """
    # Every object is a whole one; nobody says so at the root.
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
