"""Conditions of a definition, and their last transition times."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from polyver.core.plain import Object
from polyver.kube.objects.conditions import set_condition

__all__ = ["is_established", "made", "set_condition", "with_condition"]


def made(kind: str, status: str, reason: str, message: str) -> Object:
    """Return a condition without its time."""
    return {"type": kind, "status": status, "reason": reason, "message": message}


def is_established(definition: Mapping[str, Any]) -> bool:
    """Report whether the names were accepted once; from then on the kind is served."""
    conditions = (definition.get("status") or {}).get("conditions") or ()
    return any(each["type"] == "Established" and each["status"] == "True" for each in conditions)


def with_condition(definition: Object, condition: Object, now: str) -> Object:
    """Return a definition with one of its conditions changed."""
    status = definition.get("status") or {}
    conditions = set_condition(status.get("conditions") or [], condition, now)
    return definition | {"status": status | {"conditions": conditions}}
