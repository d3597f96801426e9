"""Writes the status of composite resources, and `Adopted` of Compositions and Functions.

The status is written only if it changes. One server-side apply writes both the status fields that
functions set and polyver's own fields. So the API server removes a field that a function no longer
sets, and keeps the fields of other field managers.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final

from polyver.client import Client, Clock, GroupVersionResource, find, timestamp
from polyver.compositions.controllers.composites._apply import MANAGER
from polyver.compositions.controllers.composites._known_composites import (
    AdoptionCounter,
    CompositeKey,
    adopted_fact,
)
from polyver.compositions.controllers.compositions import COMPOSITIONS
from polyver.compositions.controllers.packages import FUNCTIONS
from polyver.compositions.names import PAUSED
from polyver.compositions.pipeline import (
    PipelineEvent,
    PipelineOutcome,
    composite_conditions,
    deleting_conditions,
    paused_conditions,
    stayed_conditions,
)
from polyver.controllers.controller import Requeue
from polyver.controllers.events import Events
from polyver.controllers.statuses import write_status
from polyver.core.adoption import Adoption
from polyver.core.plain import Object
from polyver.kube.objects.conditions import DesiredCondition, find_condition, set_conditions

__all__ = ["AdoptionReport", "CompositeStatusWriter", "is_healthy", "is_paused", "is_synced"]

_SYSTEM = ("Synced", "Ready")
_EVERY: Final = 1.0
"""Minimum seconds between two counts for one Composition or Function. The limit is needed because
many composite resources can move at the same time.
"""
_RESOURCES: Final = {"Composition": COMPOSITIONS, "Function": FUNCTIONS}


def is_paused(composite: Object) -> bool:
    """Report whether an annotation pauses the reconciliation of a composite resource."""
    return (composite["metadata"].get("annotations") or {}).get(PAUSED) == "true"


def is_synced(composite: Object) -> bool:
    """Report whether `Synced` is True for the current generation."""
    conditions = (composite.get("status") or {}).get("conditions") or ()
    synced = _by_type(conditions).get("Synced", {})
    seen = synced.get("observedGeneration") == composite["metadata"].get("generation")
    return bool(seen and synced.get("status") == "True")


def is_healthy(composite: Object) -> bool:
    """Report whether `Synced` and `Ready` are True."""
    found = _by_type((composite.get("status") or {}).get("conditions") or ())
    return all(found.get(name, {}).get("status") == "True" for name in _SYSTEM)


class CompositeStatusWriter:
    """Writes the status of composite resources, and emits their events."""

    def __init__(self, client: Client, clock: Clock, events: Events) -> None:
        self._client = client
        self._clock = clock
        self._events = events
        self._told: dict[CompositeKey, frozenset[PipelineEvent]] = {}

    def forget(self, key: CompositeKey) -> None:
        self._told.pop(key, None)

    async def events(self, key: CompositeKey, about: Object, told: Iterable[PipelineEvent]) -> None:
        """Emit those events in `told` that the previous reconcile of this key did not emit."""
        now = frozenset(told)
        before = self._told.get(key, frozenset())
        for each in sorted(now - before, key=lambda each: (each.reason, each.message)):
            await self._events.tell(about, each.reason, each.message, type=each.type)
        if now:
            self._told[key] = now
        else:
            self._told.pop(key, None)

    async def paused(self, resource: GroupVersionResource, found: Object) -> Object:
        conditions = paused_conditions(found, now=timestamp(self._clock))
        return await self._say(resource, found, _kept(found), conditions, {"Synced"})

    async def deleting(self, resource: GroupVersionResource, found: Object) -> Object:
        conditions = deleting_conditions(found, now=timestamp(self._clock))
        return await self._say(resource, found, _kept(found), conditions, {"Ready"})

    async def failed(
        self, resource: GroupVersionResource, found: Object, outcome: PipelineOutcome
    ) -> Object:
        """Set the conditions of a failure.

        Status fields that are not in the outcome keep their values.
        """
        conditions = composite_conditions(found, outcome, now=timestamp(self._clock))
        told = {"Synced", *outcome.types}
        status = {**_kept(found), **outcome.status}
        return await self._say(resource, found, status, conditions, told)

    async def stayed(
        self, resource: GroupVersionResource, found: Object, updated: DesiredCondition
    ) -> Object:
        """Set only the condition `updated`. All other status fields keep their values."""
        conditions = stayed_conditions(found, updated, now=timestamp(self._clock))
        return await self._say(resource, found, _kept(found), conditions, {updated.type})

    async def composed(
        self,
        resource: GroupVersionResource,
        found: Object,
        outcome: PipelineOutcome,
        unsynced: Sequence[str],
        *,
        published: bool,
    ) -> Object:
        """Set the status after a successful run.

        `unsynced` are messages about resources that could not be applied. `published` is true if
        the connection Secret changed.
        """
        now = timestamp(self._clock)
        status = dict(outcome.status)
        before = (found.get("status") or {}).get("connectionDetails")
        if published or before:
            status["connectionDetails"] = {"lastPublishedTime": now} if published else before
        conditions = composite_conditions(found, outcome, unsynced, now=now)
        told = {*_SYSTEM, *outcome.types}
        return await self._say(resource, found, status, conditions, told)

    async def _say(
        self,
        resource: GroupVersionResource,
        found: Object,
        status: Object,
        conditions: Iterable[Object],
        told: set[str],
    ) -> Object:
        """Apply a status if it differs from the current status.

        A condition is applied only if its type is in `told`, or if polyver has applied the
        condition before.
        """
        fields = _owned(found)
        owned = fields.get("f:conditions") or {}
        ours = told | {_key(name)["type"] for name in owned if name.startswith("k:")}
        status = {**status, "conditions": [each for each in conditions if each["type"] in ours]}
        if _says(found.get("status"), status) and _covers(status, fields):
            return found
        metadata = {name: found["metadata"].get(name) for name in ("name", "namespace", "uid")}
        content = {
            "apiVersion": found["apiVersion"],
            "kind": found["kind"],
            "metadata": {name: text for name, text in metadata.items() if text},
            "status": status,
        }
        return await self._client.apply(
            resource, content, manager=MANAGER, force=True, subresource="status"
        )


def _by_type(conditions: Iterable[Object]) -> dict[str, Object]:
    return {each["type"]: each for each in conditions}


# Ownership of status fields.

Fields = Mapping[str, Any]


def _owned(found: Object) -> Fields:
    """Return the status fields that polyver applied last, from `managedFields`."""
    for each in found["metadata"].get("managedFields") or ():
        said = each.get("manager"), each.get("operation"), each.get("subresource")
        if said == (MANAGER, "Apply", "status"):
            fields: Fields = (each.get("fieldsV1") or {}).get("f:status") or {}
            return fields
    return {}


def _kept(found: Object) -> Object:
    """Return the status fields that polyver applied last, with their current values."""
    kept = _projected(found.get("status") or {}, _owned(found))
    return kept if isinstance(kept, dict) else {}


def _projected(value: object, fields: Fields) -> object:
    """Return the part of a value that `fields` covers.

    `fields` has the format of fieldsV1. A leaf of `fields` covers the whole value.
    """
    inside = {name: each for name, each in fields.items() if name[:2] in ("f:", "k:")}
    if not inside:
        return value
    if isinstance(value, list):
        return [
            _projected(each, of)
            for name, of in inside.items()
            for each in value
            if isinstance(each, Mapping) and _key(name).items() <= each.items()
        ]
    if not isinstance(value, Mapping):
        return value
    there = ((name[2:], of) for name, of in inside.items())
    return {name: _projected(value[name], of) for name, of in there if name in value}


def _key(name: str) -> Mapping[str, Any]:
    found: Mapping[str, Any] = json.loads(name[2:])
    return found


def _covers(wanted: object, fields: Fields) -> bool:
    """Report whether the desired status still has all fields that polyver applied last."""
    for name, inside in fields.items():
        found: object = None
        if name.startswith("f:") and isinstance(wanted, Mapping):
            found = wanted.get(name[2:])
        elif name.startswith("k:") and isinstance(wanted, list):
            key = _key(name).items()
            found = next((each for each in wanted if key <= each.items()), None)
        elif name[:2] not in ("f:", "k:"):
            continue
        if found is None or not _covers(found, inside):
            return False
    return True


def _says(found: object, wanted: object) -> bool:
    """Report whether a status has all desired fields with equal values.

    It may have other fields too.
    """
    if isinstance(wanted, Mapping):
        there = found if isinstance(found, Mapping) else {}
        return all(
            name in there and _same(name, there[name], inside) for name, inside in wanted.items()
        )
    return found == wanted


def _same(name: str, found: object, wanted: object) -> bool:
    if name == "conditions" and isinstance(found, list) and isinstance(wanted, list):
        there = _by_type(found)
        return all(there.get(each["type"]) == each for each in wanted)
    return _says(found, wanted)


class AdoptionReport:
    """Sets `Adopted` of Compositions and Functions.

    This condition shows how many composite resources have moved to each revision.
    """

    def __init__(
        self, client: Client, clock: Clock, events: Events, adopting: AdoptionCounter
    ) -> None:
        self._client = client
        self._clock = clock
        self._events = events
        self._adopting = adopting
        self._counted: dict[CompositeKey, float] = {}
        self._announced: set[tuple[str, str]] = set()

    @staticmethod
    def key(kind: str, name: str) -> CompositeKey:
        """Return the work queue key of a Composition or a Function."""
        return CompositeKey(_RESOURCES[kind].group, kind, "", name)

    @staticmethod
    def is_for(key: CompositeKey) -> bool:
        return key.kind in _RESOURCES and key.group == _RESOURCES[key.kind].group

    async def report(self, key: CompositeKey) -> Requeue | None:
        """Count composite resources, set `Adopted`, and emit events. Return when to count again."""
        left = self._counted.get(key, -_EVERY) + _EVERY - self._clock.time()
        if left > 0:
            return Requeue(left)
        self._counted[key] = self._clock.time()
        resource = _RESOURCES[key.kind]
        obj = await find(self._client, resource, key.name)
        if obj is None:
            self._counted.pop(key, None)
            return None
        count = self._adopting.function if key.kind == "Function" else self._adopting.composition
        adoption = count(key.name)
        if adoption or find_condition(obj, "Adopted") is not None:
            await self._write(resource, obj, adoption)
        await self._announce(obj, adoption)
        return None

    async def _write(
        self, resource: GroupVersionResource, obj: Object, adoption: Mapping[str, Adoption]
    ) -> None:
        fact, said = adopted_fact(adoption), find_condition(obj, "Adopted") or {}
        names = ("status", "reason", "message")
        if [said.get(name) for name in names] == [fact.status, fact.reason, fact.message]:
            return
        conditions = set_conditions(obj, [fact], now=timestamp(self._clock))
        status = {**(obj.get("status") or {}), "conditions": conditions}
        await write_status(self._client, resource, obj, status, manager=MANAGER)

    async def _announce(self, obj: Object, adoption: Mapping[str, Adoption]) -> None:
        """Emit one event for each revision to which all followers have tried to move."""
        before = (find_condition(obj, "Adopted") or {}).get("message", "")
        for name, each in adoption.items():
            known = obj["metadata"]["uid"], name
            if not each.is_settled or known in self._announced:
                continue
            self._announced.add(known)
            if f"{name}: {each}" in before:
                continue  # the event was emitted before a restart of polyver
            failed = bool(each.held or each.failing)
            reason, kind = ("NotAdopted", "Warning") if failed else ("Adopted", "Normal")
            await self._events.tell(obj, reason, f"{name}: {each}", type=kind)  # type: ignore[arg-type]
