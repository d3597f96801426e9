"""The status of objects whose controller is a function in Python, and reports of its failures.

A failure is an Event, and the condition `Reconciled` if the status of the kind has conditions.
Objects that never failed do not get the condition: their status is what the function returned.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import CodeType
from typing import Any, Final

from polyver.apis.definition import DefinedVersion
from polyver.client import Client, Clock, GroupVersionResource, timestamp
from polyver.controllers.events import Events
from polyver.controllers.tracebacks import place_of
from polyver.core import PolyverError
from polyver.core.plain import Object
from polyver.kube.http.logs import Log
from polyver.kube.objects.conditions import find_condition, set_condition
from polyver.kube.objects.status import ApiError

__all__ = ["DeclaredStatusWriter"]

_CONDITION: Final = "Reconciled"
_LONGEST: Final = 2048


class DeclaredStatusWriter:
    """Writes the status of the objects of one kind."""

    def __init__(
        self,
        client: Client,
        resource: GroupVersionResource,
        version: DefinedVersion | None,
        *,
        manager: str,
        code: CodeType | None,
        clock: Clock,
    ) -> None:
        """Take the function's `code`: failures name the line of its file that raised."""
        self._client = client
        self._resource = resource
        self._has_conditions = _has_conditions(version)
        self._code = code
        self._clock = clock
        self._log = Log()
        self._events = Events(client, clock, self._log, component=manager)

    async def failed(self, obj: Object, reason: str, error: Exception) -> None:
        """Report that the function raised, or that its Outcome could not be applied."""
        message = _message(error, self._code)
        await self._events.tell(obj, reason, message, type="Warning")
        if self._has_conditions:
            await self._tell_failed(obj, _condition(obj, "False", reason, message))

    async def succeeded(self, obj: Object, status: Object | None) -> None:
        """Write the status that the function returned; None leaves it as it is."""
        wanted = dict(obj.get("status") or {}) if status is None else status
        known = find_condition(obj, _CONDITION)
        if known is not None:
            wanted = _recovered(obj, wanted, known, timestamp(self._clock))
        await self._write(obj, wanted)

    async def _tell_failed(self, obj: Object, condition: Object) -> None:
        status = dict(obj.get("status") or {})
        known = status.get("conditions") or []
        status["conditions"] = set_condition(known, condition, timestamp(self._clock))
        try:
            await self._write(obj, status)
        except (ApiError, PolyverError) as error:
            # A status may need fields that only the function knows. The Event and the log remain.
            self._log.info("the condition cannot be written", error=str(error))

    async def _write(self, obj: Object, status: Object) -> None:
        if (obj.get("status") or {}) == status:
            return
        # With its resourceVersion: a decision on an old state fails and is made again.
        await self._client.update(self._resource, {**obj, "status": status}, subresource="status")


def _recovered(obj: Object, wanted: Object, known: Object, now: str) -> Object:
    """Return a status whose condition reports that the last call succeeded.

    If the function sets a condition of this type itself, the status stays as it is.
    """
    others = [each for each in wanted.get("conditions") or [] if each != known]
    if any(each.get("type") == _CONDITION for each in others):
        return wanted
    told = _condition(obj, "True", "Succeeded", "")
    return {**wanted, "conditions": [*others, *set_condition([known], told, now)]}


def _condition(obj: Object, status: str, reason: str, message: str) -> Object:
    generation = obj["metadata"].get("generation", 1)
    made = {"type": _CONDITION, "status": status, "reason": reason, "message": message}
    return {**made, "observedGeneration": generation}


def _message(error: Exception, code: CodeType | None) -> str:
    text = str(error)
    if not isinstance(error, PolyverError | ApiError):
        place = place_of(error, code)
        text = f"{type(error).__name__}: {text}{f' ({place})' if place else ''}"
    return text if len(text) <= _LONGEST else f"{text[: _LONGEST - 1]}…"


def _has_conditions(version: DefinedVersion | None) -> bool:
    """Return True if the API server does not prune `status.conditions` in this version."""
    schema: Mapping[str, Any] | None = version.schema if version is not None else None
    if schema is None:
        return True
    status = (schema.get("properties") or {}).get("status")
    if status is None:
        return bool(schema.get("x-kubernetes-preserve-unknown-fields"))
    return "conditions" in (status.get("properties") or {}) or bool(
        status.get("x-kubernetes-preserve-unknown-fields")
    )
