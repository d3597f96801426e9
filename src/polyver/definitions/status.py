"""Builds the conditions and entries in the status of an application."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any, Final

from polyver.capability import condition_reason
from polyver.core import PolyverError
from polyver.core.plain import ReadOnlyObject
from polyver.definitions.rendered_objects import Placed, fields_digest, name_of
from polyver.definitions.support import Unsupported
from polyver.kube.objects.conditions import DesiredCondition
from polyver.kube.objects.health import Health

__all__ = [
    "applied_fact",
    "applied_resource",
    "confirmed",
    "failed_fact",
    "holds",
    "ready_fact",
    "reason_of",
    "rendered_fact",
    "services_of",
    "supported_fact",
    "updated_fact",
]

_LONGEST: Final = 8
"""Maximum number of problems that one message lists."""
_MOST_TEXT: Final = 32_000
"""Maximum number of characters in a condition's message.

Kubernetes allows 32,768 characters in its own kinds.
"""


def supported_fact(errors: Iterable[object]) -> DesiredCondition:
    """Build the condition `Supported`, whose message lists the unsupported fields."""
    found = [str(each) for each in errors if isinstance(each, Unsupported)]
    if not found:
        return DesiredCondition(
            "Supported", "True", "Supported", "all fields that are set are executed"
        )
    text = "; ".join(found)
    if len(text) > _MOST_TEXT:
        text = f"{text[:_MOST_TEXT]} … ({len(found)} in all)"
    return DesiredCondition(
        "Supported", "False", "NotExecuted", f"{text}; the application is not applied"
    )


def rendered_fact(outputs: int) -> DesiredCondition:
    """Build the condition `Rendered` for a successful rendering."""
    return DesiredCondition("Rendered", "True", "Rendered", _count(outputs, "object"))


def applied_fact(outputs: int, taken_back: Sequence[str]) -> DesiredCondition:
    """Build the condition `Applied` with the status True.

    `taken_back` are messages about changes of other clients that polyver has reverted.
    """
    more = f"; reverted: {_some(taken_back)}" if taken_back else ""
    return DesiredCondition("Applied", "True", "Applied", _count(outputs, "object") + more)


def confirmed(status: ReadOnlyObject, fact: DesiredCondition) -> DesiredCondition:
    """Return the condition `fact`, with the reason and message that it has in the status.

    If the status does not have this condition with the same value, return `fact` unchanged.
    """
    for each in status.get("conditions") or ():
        if (each["type"], each["status"]) == (fact.type, fact.status):
            return DesiredCondition(fact.type, fact.status, each["reason"], each.get("message", ""))
    return fact


def holds(status: ReadOnlyObject, fact: DesiredCondition) -> bool:
    """Report whether a status already has the condition `fact` with the same value."""
    known = {each["type"]: each["status"] for each in status.get("conditions") or ()}
    return bool(known.get(fact.type) == fact.status)


def failed_fact(kind: str, reason: str, errors: Sequence[object]) -> DesiredCondition:
    """Build the condition `kind` with the status False, and with the errors as its message."""
    return DesiredCondition(kind, "False", reason, _some([*map(str, errors)]))


def updated_fact(status: ReadOnlyObject) -> DesiredCondition | None:
    """Build the condition `Updated`. It is False if a move to a release has failed.

    Return None if no move has failed, and the status does not have this condition yet.
    """
    failed = [each for each in status.get("resolutions") or () if each.get("failedMove")]
    if failed:
        told = {each["failedMove"]["message"]: each["failedMove"]["reason"] for each in failed}
        return DesiredCondition("Updated", "False", next(iter(told.values())), _some([*told]))
    known = [each for each in status.get("conditions") or () if each["type"] == "Updated"]
    return (
        DesiredCondition("Updated", "True", "Updated", "it uses the requested versions")
        if known
        else None
    )


def ready_fact(services: Sequence[ReadOnlyObject]) -> DesiredCondition:
    """Build the condition `Ready`: True if all components are healthy."""
    ill = [f"{each['name']}: {each['message']}" for each in services if not each["healthy"]]
    if ill:
        return DesiredCondition("Ready", "False", "Unhealthy", _some(ill))
    return DesiredCondition("Ready", "True", "Healthy", _count(len(services), "component"))


def _count(number: int, noun: str) -> str:
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"


def _some(texts: Sequence[str]) -> str:
    more = len(texts) - _LONGEST
    return "; ".join(texts[:_LONGEST]) + (f"; and {more} more" if more > 0 else "")


def applied_resource(placed: Placed, made: ReadOnlyObject) -> dict[str, Any]:
    """Build the entry of `appliedResources` for an object. `made` is the response to its apply."""
    metadata: ReadOnlyObject = made["metadata"]
    named = {name: metadata[name] for name in ("namespace", "name") if metadata.get(name)}
    about = {"apiVersion": placed.object["apiVersion"], "kind": placed.object["kind"], **named}
    return {**about, "component": placed.component, "fields": fields_digest(made)}


def services_of(
    application: ReadOnlyObject,
    applied: Sequence[ReadOnlyObject],
    health: Callable[[ReadOnlyObject], Health],
) -> list[dict[str, Any]]:
    """Build the entries of `services` in the status, one for each component.

    A component is healthy if all its objects are healthy.
    """
    namespace = application["metadata"].get("namespace", "")
    spec: ReadOnlyObject = application.get("spec") or {}
    found = []
    for component in spec.get("components") or ():
        name = component["name"]
        mine = [each for each in applied if each.get("component") == name]
        ill = []
        for each in mine:
            state = health(each)
            if not state.healthy:
                label = name_of({"kind": each["kind"], "metadata": each})
                ill.append(f"{label} {state.message}")
        service: dict[str, Any] = {"name": name, "namespace": namespace, "healthy": not ill}
        if mine:
            service["workloadDefinition"] = {key: mine[0][key] for key in ("apiVersion", "kind")}
        found.append(service | {"message": _some(ill)})
    return found


def reason_of(error: PolyverError) -> str:
    """Return the reason, such as `RenderFailed`, for a condition that reports this error."""
    return condition_reason(error, default="RenderFailed")
