"""Conditions of the objects of this capability, with their transition times."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, Literal

from polyver.core.plain import ReadOnlyObject

__all__ = ["DesiredCondition", "Truth", "condition_of", "conditions_with"]

Truth = Literal["True", "False", "Unknown"]


@dataclass(frozen=True, slots=True)
class DesiredCondition:
    """The desired type, status, reason and message of a condition."""

    type: str
    status: Truth
    reason: str
    message: str = ""


def condition_of(obj: ReadOnlyObject, kind: str) -> ReadOnlyObject | None:
    """Return the condition of the given type, or None."""
    conditions = (obj.get("status") or {}).get("conditions") or ()
    return next((each for each in conditions if each["type"] == kind), None)


def conditions_with(
    obj: ReadOnlyObject, facts: Iterable[DesiredCondition], *, now: str
) -> list[dict[str, Any]]:
    """Return the conditions that an object should have.

    `lastTransitionTime` changes only with the status; conditions of other types stay as they are.
    """
    before: ReadOnlyObject = obj.get("status") or {}
    generation = obj["metadata"].get("generation", 1)
    made = [_condition(fact, condition_of(obj, fact.type), generation, now) for fact in facts]
    ours = {each["type"] for each in made}
    others = [each for each in before.get("conditions") or () if each["type"] not in ours]
    return [*others, *made]


def _condition(
    fact: DesiredCondition, before: ReadOnlyObject | None, generation: int, now: str
) -> dict[str, Any]:
    same = before is not None and before["status"] == fact.status
    since = before["lastTransitionTime"] if same and before is not None else now
    return {
        "type": fact.type,
        "status": fact.status,
        "reason": fact.reason,
        **({"message": fact.message} if fact.message else {}),
        "observedGeneration": generation,
        "lastTransitionTime": since,
    }
