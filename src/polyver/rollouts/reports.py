"""The result of a preflight as dictionaries: the complete result, and a shorter one for the status.

The complete result is stored in a RolloutReport, because it can be too large for a status. Both
have the same fields.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, Final

from polyver.capability.preflight_examples import object_label, short_diff
from polyver.core import listed
from polyver.core.plain import Object, ReadOnlyObject
from polyver.core.preflight import ChangeGroup, FailureGroup, OutcomeCounts, PreflightReport
from polyver.kube.objects import encode_json
from polyver.rollouts.kinds import GROUP, REPORTS, ROLLOUTS

__all__ = ["counts_text", "preflight_data", "preflight_summary", "report_counts", "report_object"]

_COUNTS: Final = ("unchanged", "changed", "loses", "fails")
_GROUPS, _NAMES, _TEXT = 20, 10, 2_000
"""Limits of the result in the status: groups, names in each group, characters of a group's text."""
_LARGEST: Final = 800 * 1024
"""Maximum size of the complete result, in bytes of JSON. API servers refuse objects above about 1.5
MiB.
"""


def report_counts(data: ReadOnlyObject) -> OutcomeCounts:
    """Read the counts from the result of a preflight."""
    return OutcomeCounts(*(data.get(name, 0) for name in _COUNTS))


def counts_text(data: ReadOnlyObject) -> str:
    """Return the counts of a result as a sentence."""
    return str(report_counts(data))


def preflight_data(report: PreflightReport, *, largest: int = _LARGEST) -> Object:
    """Return the complete result of a preflight: all groups and failures, with all names.

    If it would be larger than `largest` bytes of JSON, some failures, groups and names are left
    out, and `note` has their numbers. A group that is not left out has at least its first 10 names.
    """
    room = _Room(largest // 2)
    failures = room.taken(map(_failure, report.failures))
    room.left += largest - largest // 2  # the other half is for groups and names
    groups = room.taken(map(_group, report.groups))
    unnamed = 0
    kept: list[tuple[Object, ChangeGroup | FailureGroup]] = [
        *zip(failures, report.failures, strict=False),
        *zip(groups, report.groups, strict=False),
    ]
    for entry, each in kept:
        entry["names"] += room.taken(each.dependents[_NAMES:])
        unnamed += len(each.dependents) - len(entry["names"])
    missing = {
        "failures": len(report.failures) - len(failures),
        "groups": len(report.groups) - len(groups),
        "names": unnamed,
    }
    return _data(report.counts, groups, failures, _note(missing, largest))


def preflight_summary(data: ReadOnlyObject) -> Object:
    """Return the result for the status: the counts, and the first groups, failures and names."""
    groups, failures = (
        [_shortened(each) for each in (data.get(name) or ())[:_GROUPS]]
        for name in ("groups", "failures")
    )
    return _data(report_counts(data), groups, failures, "")


def report_object(rollout: ReadOnlyObject, data: ReadOnlyObject) -> Object:
    """Return the RolloutReport with the complete result. Its owner is the Rollout."""
    named = rollout["metadata"]
    version = f"{GROUP}/v1alpha1"
    owner = {"apiVersion": version, "kind": ROLLOUTS.kind, "name": named["name"]}
    metadata = {
        "name": named["name"],
        "namespace": named["namespace"],
        "ownerReferences": [{**owner, "uid": named["uid"]}],
    }
    return {"apiVersion": version, "kind": REPORTS.kind, "metadata": metadata, "preflight": data}


def _data(
    counts: OutcomeCounts, groups: Sequence[Object], failures: Sequence[Object], note: str
) -> Object:
    data: Object = {name: getattr(counts, name) for name in _COUNTS}
    found = {"groups": [*groups], "failures": [*failures], "note": note}
    return data | {name: each for name, each in found.items() if each}


def _group(group: ChangeGroup) -> Object:
    example = group.example
    shown = {"dependent": example.dependent, "object": object_label(example)}
    return {
        "change": str(group),
        "dependents": len(group.dependents),
        "names": [*group.dependents[:_NAMES]],
        "example": {**shown, "diff": short_diff(example)},
    }


def _failure(failure: FailureGroup) -> Object:
    return {
        "message": failure.message,
        "dependents": len(failure.dependents),
        "names": [*failure.dependents[:_NAMES]],
    }


def _shortened(entry: ReadOnlyObject) -> Object:
    texts = {name: _cut(entry[name]) for name in ("change", "message") if name in entry}
    return {**entry, **texts, "names": [*entry["names"][:_NAMES]]}


def _cut(text: str) -> str:
    return text if len(text) <= _TEXT else f"{text[:_TEXT]}…"


def _note(missing: dict[str, int], largest: int) -> str:
    found = [f"{number} {name}" for name, number in missing.items() if number]
    if not found:
        return ""
    return f"the report has at most {largest // 1024} KiB; left out: {listed(found)}"


class _Room:
    """The number of bytes of JSON that may still be added to a result."""

    def __init__(self, left: int) -> None:
        self.left = left

    def taken(self, entries: Iterable[Any]) -> list[Any]:
        """Return the first entries, as many as fit into the bytes that are left."""
        found = []
        for each in entries:
            size = len(encode_json(each)) + 1
            if size > self.left:
                break
            self.left -= size
            found.append(each)
        return found
