"""Conditions in the status of an object.

All writers of conditions use these functions. The functions keep `lastTransitionTime` while the
status of a condition stays the same, and keep the order of conditions. So if no condition changed,
the new status of the object is equal to the stored status and need not be written.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Literal, NamedTuple

from polyver.core.plain import Object, ReadOnlyObject

__all__ = [
    "ConditionStatus",
    "DesiredCondition",
    "find_condition",
    "set_condition",
    "set_conditions",
]

ConditionStatus = Literal["True", "False", "Unknown"]


class DesiredCondition(NamedTuple):
    """A condition that a writer wants to set; `set_conditions` adds the generation and the time."""

    type: str
    status: ConditionStatus
    reason: str
    message: str = ""


def find_condition(obj: ReadOnlyObject, kind: str) -> Object | None:
    """Return the condition of this type, or None if the object has none."""
    conditions = (obj.get("status") or {}).get("conditions") or ()
    return next((each for each in conditions if each.get("type") == kind), None)


def set_conditions(
    obj: ReadOnlyObject, desired: Iterable[DesiredCondition], *, now: str
) -> list[Object]:
    """Return the conditions of an object after the desired conditions have been added or replaced.

    Each desired condition gets the generation of the object as `observedGeneration`. If its message
    is empty, the field `message` is left out.
    """
    generation = obj["metadata"].get("generation", 1)
    conditions: list[Object] = [*((obj.get("status") or {}).get("conditions") or ())]
    for each in desired:
        condition: Object = each._asdict() | {"observedGeneration": generation}
        if not each.message:
            del condition["message"]
        conditions = set_condition(conditions, condition, now)
    return conditions


def set_condition(conditions: Sequence[Object], condition: Object, now: str) -> list[Object]:
    """Return the conditions after one condition has been added or replaced.

    If the status of the condition changes, its `lastTransitionTime` becomes `now`; otherwise the
    old time stays.

    >>> set_condition([], {"type": "Ready", "status": "True"}, "2026-01-01T00:00:00Z")
    [{'type': 'Ready', 'status': 'True', 'lastTransitionTime': '2026-01-01T00:00:00Z'}]
    """
    found = next((each for each in conditions if each.get("type") == condition["type"]), None)
    if found is None:
        return [*conditions, condition | {"lastTransitionTime": now}]
    kept = found.get("status") == condition["status"] and found.get("lastTransitionTime")
    new = condition | {"lastTransitionTime": kept or now}
    return [new if each is found else each for each in conditions]
