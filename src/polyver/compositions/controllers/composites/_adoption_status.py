"""The condition `Adopted` of Compositions and Functions."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from polyver.client import Client, Clock, GroupVersionResource, find, timestamp
from polyver.compositions._adoption import adopted_fact
from polyver.compositions.controllers.composites._apply import MANAGER
from polyver.compositions.controllers.composites._dependents import AdoptionCounter, CompositeKey
from polyver.compositions.controllers.compositions import COMPOSITIONS
from polyver.compositions.controllers.packages import FUNCTIONS
from polyver.controllers.controller import Requeue
from polyver.controllers.events import Events
from polyver.core.adoption import Adoption
from polyver.core.plain import Object
from polyver.kube.objects.conditions import find_condition, set_conditions

__all__ = ["AdoptionReport"]

_EVERY: Final = 1.0
"""Minimum seconds between two counts for one object: many composite resources move at once."""
_RESOURCES: Final = {"Composition": COMPOSITIONS, "Function": FUNCTIONS}


class AdoptionReport:
    """Counts the composite resources that follow each revision, and reports the counts."""

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
        """Set the condition `Adopted` of a Composition or a Function, and emit events."""
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
        # With the resourceVersion: other controllers write conditions of these objects as well.
        await self._client.update(
            resource, {**obj, "status": status}, subresource="status", manager=MANAGER
        )

    async def _announce(self, obj: Object, adoption: Mapping[str, Adoption]) -> None:
        """Emit one event for each release, once all its followers have tried it."""
        before = (find_condition(obj, "Adopted") or {}).get("message", "")
        for name, each in adoption.items():
            known = obj["metadata"]["uid"], name
            if not each.is_settled or known in self._announced:
                continue
            self._announced.add(known)
            if f"{name}: {each}" in before:
                continue  # it was announced before a restart
            failed = bool(each.held or each.failing)
            reason, kind = ("NotAdopted", "Warning") if failed else ("Adopted", "Normal")
            await self._events.tell(obj, reason, f"{name}: {each}", type=kind)  # type: ignore[arg-type]
