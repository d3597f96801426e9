"""Reporting: what the status of an application says of rendering, applying and health."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any, Final, NamedTuple

from polyver.capability import condition_reason
from polyver.core import PolyverError
from polyver.core.plain import ReadOnlyObject
from polyver.definitions.rendered_objects import Placed, fields_digest, name_of
from polyver.definitions.support import Unsupported
from polyver.kube.objects.health import Health

__all__ = [
    "ApplicationCondition",
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
    "with_facts",
]

_LONGEST: Final = 8
"""How many things one message names at most."""
_MOST_TEXT: Final = 32_000
"""How long the message of a condition may be: Kubernetes' own conditions have 32,768 characters."""


class ApplicationCondition(NamedTuple):
    """What a condition says."""

    type: str
    status: str
    reason: str
    message: str


def with_facts(
    status: ReadOnlyObject, facts: Iterable[ApplicationCondition], *, generation: int, now: str
) -> dict[str, Any]:
    """A status with these conditions; times of what has not changed stay."""
    known = {each["type"]: each for each in status.get("conditions") or ()}
    for fact in facts:
        before = known.get(fact.type, {})
        since = before.get("lastTransitionTime") if before.get("status") == fact.status else None
        said = {**fact._asdict(), "observedGeneration": generation}
        known[fact.type] = {**said, "lastTransitionTime": since or now}
    return {**status, "conditions": [*known.values()]}


def supported_fact(errors: Iterable[object]) -> ApplicationCondition:
    """Return the condition `Supported`: its message lists the fields that are not executed."""
    found = [str(each) for each in errors if isinstance(each, Unsupported)]
    if not found:
        return ApplicationCondition(
            "Supported", "True", "Supported", "all fields that are set are executed"
        )
    text = "; ".join(found)
    if len(text) > _MOST_TEXT:
        text = f"{text[:_MOST_TEXT]} … ({len(found)} in all)"
    return ApplicationCondition(
        "Supported", "False", "NotExecuted", f"{text}; the application is not applied"
    )


def rendered_fact(outputs: int) -> ApplicationCondition:
    """All is rendered."""
    return ApplicationCondition("Rendered", "True", "Rendered", _count(outputs, "object"))


def applied_fact(outputs: int, taken_back: Sequence[str]) -> ApplicationCondition:
    """All is applied; `taken_back` tells of fields that others had changed."""
    more = f"; reverted: {_some(taken_back)}" if taken_back else ""
    return ApplicationCondition("Applied", "True", "Applied", _count(outputs, "object") + more)


def confirmed(status: ReadOnlyObject, fact: ApplicationCondition) -> ApplicationCondition:
    """A fact as it was told before, if it holds already."""
    for each in status.get("conditions") or ():
        if (each["type"], each["status"]) == (fact.type, fact.status):
            return ApplicationCondition(fact.type, fact.status, each["reason"], each["message"])
    return fact


def holds(status: ReadOnlyObject, fact: ApplicationCondition) -> bool:
    """Return True if the status has this condition with the same `status` value."""
    known = {each["type"]: each["status"] for each in status.get("conditions") or ()}
    return bool(known.get(fact.type) == fact.status)


def failed_fact(kind: str, reason: str, errors: Sequence[object]) -> ApplicationCondition:
    """What went wrong, the first of it by its reason."""
    return ApplicationCondition(kind, "False", reason, _some([*map(str, errors)]))


def updated_fact(status: ReadOnlyObject) -> ApplicationCondition | None:
    """Return the condition `Updated`: False if a move of the application to a release failed.

    Return None if no move has failed and the status does not have the condition yet.
    """
    failed = [each for each in status.get("resolutions") or () if each.get("failedMove")]
    if failed:
        told = {each["failedMove"]["message"]: each["failedMove"]["reason"] for each in failed}
        return ApplicationCondition("Updated", "False", next(iter(told.values())), _some([*told]))
    known = [each for each in status.get("conditions") or () if each["type"] == "Updated"]
    return (
        ApplicationCondition("Updated", "True", "Updated", "it uses the requested versions")
        if known
        else None
    )


def ready_fact(services: Sequence[ReadOnlyObject]) -> ApplicationCondition:
    """Whether all components do well."""
    ill = [f"{each['name']}: {each['message']}" for each in services if not each["healthy"]]
    if ill:
        return ApplicationCondition("Ready", "False", "Unhealthy", _some(ill))
    return ApplicationCondition("Ready", "True", "Healthy", _count(len(services), "component"))


def _count(number: int, noun: str) -> str:
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"


def _some(texts: Sequence[str]) -> str:
    more = len(texts) - _LONGEST
    return "; ".join(texts[:_LONGEST]) + (f"; and {more} more" if more > 0 else "")


def applied_resource(placed: Placed, made: ReadOnlyObject) -> dict[str, Any]:
    """What the status says of an object as it is on the server."""
    metadata: ReadOnlyObject = made["metadata"]
    named = {name: metadata[name] for name in ("namespace", "name") if metadata.get(name)}
    about = {"apiVersion": placed.object["apiVersion"], "kind": placed.object["kind"], **named}
    return {**about, "component": placed.component, "fields": fields_digest(made)}


def services_of(
    application: ReadOnlyObject,
    applied: Sequence[ReadOnlyObject],
    health: Callable[[ReadOnlyObject], Health],
) -> list[dict[str, Any]]:
    """How each component does: well, if all of its objects do."""
    namespace = application["metadata"].get("namespace", "")
    spec: ReadOnlyObject = application.get("spec") or {}
    found = []
    for component in spec.get("components") or ():
        mine = [each for each in applied if each.get("component") == component["name"]]
        found.append(_service(component["name"], namespace, mine, health))
    return found


def _service(
    name: str,
    namespace: str,
    mine: Sequence[ReadOnlyObject],
    health: Callable[[ReadOnlyObject], Health],
) -> dict[str, Any]:
    states = [(each, health(each)) for each in mine]
    ill = [f"{_called(each)} {found.message}" for each, found in states if not found.healthy]
    service: dict[str, Any] = {"name": name, "namespace": namespace, "healthy": not ill}
    if mine:
        service["workloadDefinition"] = {key: mine[0][key] for key in ("apiVersion", "kind")}
    return service | {"message": _some(ill)}


def _called(applied: ReadOnlyObject) -> str:
    return name_of({"kind": applied["kind"], "metadata": applied})


def reason_of(error: PolyverError) -> str:
    """The reason of a condition that reports an error of rendering."""
    return condition_reason(error, default="RenderFailed")
