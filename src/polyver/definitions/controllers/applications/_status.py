"""The fields of applications that the controller indexes, and the writer of their status."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from polyver.client import Client, Clock, GroupVersionResource, Key, timestamp
from polyver.client.field_managers import POLYVER
from polyver.controllers.owned_objects.inventory import APPLIED, AppliedObject
from polyver.core.plain import Object
from polyver.definitions.controllers.applications._apply import part_in
from polyver.definitions.kinds import APPLICATIONS, GROUP, STORED
from polyver.definitions.names import APPLYING
from polyver.definitions.uses import DefinitionUse, uses_of
from polyver.kube.objects.conditions import DesiredCondition, set_conditions
from polyver.kube.objects.kinds import ResourceKind
from polyver.kube.objects.status import ApiError

__all__ = [
    "MANAGER",
    "RESOURCE",
    "ApplicationState",
    "ApplicationStatusWriter",
    "applied_before",
    "state_in",
]

RESOURCE = GroupVersionResource(GROUP, STORED, APPLICATIONS.names.plural)
MANAGER = POLYVER


@dataclass(frozen=True, slots=True)
class ApplicationState:
    """The fields of an application that the controller keeps in memory.

    If a client changes one of these fields, the application is reconciled. Annotations that the
    controller sets are not among them.
    """

    uses: tuple[DefinitionUse, ...]
    parts: tuple[AppliedObject, ...]
    seen: tuple[Any, ...]


def state_in(kind: ResourceKind | None, obj: Object) -> ApplicationState:
    """Read the indexed fields of an application."""
    del kind
    metadata = obj["metadata"]
    annotations = metadata.get("annotations") or {}
    others = {name: each for name, each in annotations.items() if name not in (APPLIED, APPLYING)}
    status = obj.get("status") or {}
    seen = (
        *(metadata.get(name) for name in ("uid", "generation")),
        str(metadata.get("labels")),
        str(others),
        "deletionTimestamp" in metadata,
        status.get("appliedDigest"),
        status.get("status"),
    )
    return ApplicationState(tuple(uses_of(obj)), tuple(map(part_in, applied_before(obj))), seen)


def applied_before(found: Object) -> list[Any]:
    """Return `status.appliedResources` of an application: the objects applied before."""
    return (found.get("status") or {}).get("appliedResources") or []


class ApplicationStatusWriter:
    """Writes statuses, and recognizes its own writes in watch events."""

    def __init__(self, client: Client, clock: Clock) -> None:
        self._client = client
        self._clock = clock
        self._told: dict[Key, ApplicationState] = {}

    def is_own_word(self, key: Key, state: ApplicationState) -> bool:
        return self._told.get(key) == state

    def forget(self, key: Key) -> None:
        self._told.pop(key, None)

    def with_conditions(
        self, status: Object, conditions: Iterable[DesiredCondition], found: Object
    ) -> dict[str, Any]:
        """Return a copy of `status` in which `conditions` are set."""
        now = timestamp(self._clock)
        made = set_conditions({**found, "status": status}, conditions, now=now)
        return {**status, "conditions": made}

    async def tell(self, found: Object, status: Object) -> Object:
        """Write the status if it has changed; return the application as it is after the write."""
        if status == found.get("status"):
            return found
        said = {**found, "status": status}
        key = Key(found["metadata"]["namespace"], found["metadata"]["name"])
        # Record the write before sending it: the watch may report it before the response arrives.
        self._told[key] = state_in(None, said)
        try:
            # The resourceVersion is sent too, so that a write fails if it is based on an old state.
            return await self._client.update(RESOURCE, said, subresource="status", manager=MANAGER)
        except ApiError as error:
            self._told.pop(key, None)
            if error.code != 404:
                raise
            return found
