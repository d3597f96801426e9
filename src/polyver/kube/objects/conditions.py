"""Conditions in the status of an object."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from polyver.core.plain import Object

__all__ = ["find_condition", "set_condition"]


def find_condition(obj: Mapping[str, Any], kind: str) -> Object | None:
    """Return the condition of this type, if the object has it."""
    conditions = (obj.get("status") or {}).get("conditions") or ()
    return next((each for each in conditions if each.get("type") == kind), None)


def set_condition(conditions: Sequence[Object], condition: Object, now: str) -> list[Object]:
    """Return the conditions with this one added or replaced.

    lastTransitionTime is the time at which the condition's status changed last.

    >>> set_condition([], {"type": "Ready", "status": "True"}, "2026-01-01T00:00:00Z")
    [{'type': 'Ready', 'status': 'True', 'lastTransitionTime': '2026-01-01T00:00:00Z'}]
    """
    found = next((each for each in conditions if each.get("type") == condition["type"]), None)
    if found is None:
        return [*conditions, condition | {"lastTransitionTime": now}]
    kept = found.get("status") == condition["status"] and found.get("lastTransitionTime")
    new = found | condition | {"lastTransitionTime": kept or now}
    return [new if each is found else each for each in conditions]
