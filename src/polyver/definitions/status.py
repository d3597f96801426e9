"""The status of an application: rendering, applying and health."""

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
"""Maximum number of problems in one message."""
_MOST_TEXT: Final = 32_000
"""Maximum length of a condition's message: Kubernetes' own conditions have 32,768 characters."""


class ApplicationCondition(NamedTuple):
    """The type, status, reason and message of a condition."""

    type: str
    status: str
    reason: str
    message: str


def with_facts(
    status: ReadOnlyObject, facts: Iterable[ApplicationCondition], *, generation: int, now: str
) -> dict[str, Any]:
    """Return a status with these conditions; unchanged ones keep their times."""
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
        "Supported", "False", "NotExecuted", f"{text}; nothing is applied with them"
    )


def rendered_fact(outputs: int) -> ApplicationCondition:
    """Return the condition `Rendered` after a success."""
    return ApplicationCondition("Rendered", "True", "Rendered", _count(outputs, "object"))


def applied_fact(outputs: int, taken_back: Sequence[str]) -> ApplicationCondition:
    """Return the condition `Applied` after a success; `taken_back` are reverted changes."""
    more = f"; taken back: {_some(taken_back)}" if taken_back else ""
    return ApplicationCondition("Applied", "True", "Applied", _count(outputs, "object") + more)


def confirmed(status: ReadOnlyObject, fact: ApplicationCondition) -> ApplicationCondition:
    """Return the condition as in the status, if its `status` value is the same there."""
    for each in status.get("conditions") or ():
        if (each["type"], each["status"]) == (fact.type, fact.status):
            return ApplicationCondition(fact.type, fact.status, each["reason"], each["message"])
    return fact


def holds(status: ReadOnlyObject, fact: ApplicationCondition) -> bool:
    """Return True if the status has this condition with the same `status` value."""
    known = {each["type"]: each["status"] for each in status.get("conditions") or ()}
    return bool(known.get(fact.type) == fact.status)


def failed_fact(kind: str, reason: str, errors: Sequence[object]) -> ApplicationCondition:
    """Return a False condition with these errors, and the reason of the first."""
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
        ApplicationCondition("Updated", "True", "Updated", "it uses what it asks for")
        if known
        else None
    )


def ready_fact(services: Sequence[ReadOnlyObject]) -> ApplicationCondition:
    """Return the condition `Ready`: True if all components are healthy."""
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
    """Return the status entry of an applied object."""
    metadata: ReadOnlyObject = made["metadata"]
    named = {name: metadata[name] for name in ("namespace", "name") if metadata.get(name)}
    about = {"apiVersion": placed.object["apiVersion"], "kind": placed.object["kind"], **named}
    return {**about, "component": placed.component, "fields": fields_digest(made)}


def services_of(
    application: ReadOnlyObject,
    applied: Sequence[ReadOnlyObject],
    health: Callable[[ReadOnlyObject], Health],
) -> list[dict[str, Any]]:
    """Return the health of each component: healthy if all its objects are."""
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
    """Return the reason of a condition that reports a rendering error."""
    return condition_reason(error, default="RenderFailed")
