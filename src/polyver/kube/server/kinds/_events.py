"""Rules for writes of Leases and of Events, which two API groups serve in two formats."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from polyver.core.plain import Object
from polyver.kube.objects.rules import path_segment_problems
from polyver.kube.objects.status import Cause, invalid_field, required
from polyver.kube.server.rules import KindRules
from polyver.languages.values.names import dns_subdomain_problems

__all__ = ["EVENTS", "EventConversion", "EventRules", "LeaseRules", "event_fields"]

# The field names in Events of the core group, and in Events of the group events.k8s.io.
_NAMES = {
    "involvedObject": "regarding",
    "message": "note",
    "reportingComponent": "reportingController",
    "source": "deprecatedSource",
    "firstTimestamp": "deprecatedFirstTimestamp",
    "lastTimestamp": "deprecatedLastTimestamp",
    "count": "deprecatedCount",
}
_CORE_NAMES = {new: core for core, new in _NAMES.items()}
_ALWAYS: Object = {
    "reportingComponent": "",
    "reportingInstance": "",
    "source": {},
    "involvedObject": {},
}
_ALWAYS_NEW: Object = {"deprecatedSource": {}}


EVENTS = ("v1", "events.k8s.io/v1")


@dataclass(frozen=True, slots=True)
class EventConversion:
    """Conversion of Events between the API group events.k8s.io and the core group.

    Events are stored in the form of the core group.
    """

    api_version: str

    async def convert(self, obj: Object, api_version: str) -> Object:
        if obj["apiVersion"] == api_version:
            return obj
        return _to_core(obj) if api_version == EVENTS[0] else _from_core(obj)

    async def shown(self, obj: Object, *, kept: bool = False) -> Object:
        del kept
        return await self.convert(obj, self.api_version)

    async def stored(self, obj: Object) -> Object:
        return await self.convert(obj, EVENTS[0])


def _from_core(obj: Object) -> Object:
    renamed = {_NAMES.get(key, key): value for key, value in obj.items()}
    for name in ("reportingController", "reportingInstance", "regarding"):
        if not renamed.get(name):
            renamed.pop(name, None)
    return _ALWAYS_NEW | renamed | {"apiVersion": EVENTS[1]}


def _to_core(obj: Object) -> Object:
    renamed = {_CORE_NAMES.get(key, key): value for key, value in obj.items()}
    return _ALWAYS | renamed | {"apiVersion": "v1"}


class EventRules(KindRules):
    """Checks for writes of Events.

    An Event must be in the namespace of the object to which it refers, or in the namespace
    `default` if the reference names no namespace.
    """

    creates_on_update = True

    def __init__(self, *, core: bool) -> None:
        self._core = core
        # In the core group, almost any name of an Event is valid.
        self.name_problems = path_segment_problems if core else dns_subdomain_problems

    def check_create(self, obj: Object) -> list[Cause]:
        event = obj if self._core else _to_core(obj)
        about = event.get("involvedObject", {}).get("namespace", "")
        expected = obj["metadata"].get("namespace", "")
        causes: list[Cause] = []
        if about != expected and not (not about and expected == "default"):
            text = "does not match event.namespace"
            causes.append(invalid_field("involvedObject.namespace", about, text))
        if not self._core:
            causes += _new_problems(event)
        return causes

    def check_update(self, obj: Object, old: Object) -> list[Cause]:
        del old
        return self.check_create(obj)


def _new_problems(event: Object) -> list[Cause]:
    """Return the problems that are errors in the group events.k8s.io, but not in the core group."""
    causes: list[Cause] = []
    if not event.get("eventTime"):
        causes.append(required("eventTime"))
    kind = event.get("type", "")
    if kind not in ("Normal", "Warning"):
        causes.append(invalid_field("type", kind, f"has invalid value: {kind}"))
    return causes


def event_fields(*, core: bool) -> Mapping[str, Callable[[Object], str]]:
    """Return the fields that a field selector for Events may name.

    Each field is mapped to a function that returns its value for an Event. With `core`, the names
    are those of the core group, otherwise those of events.k8s.io.
    """
    about = "involvedObject" if core else "regarding"
    inner = "kind namespace name uid apiVersion resourceVersion fieldPath".split()
    fields = {f"{about}.{name}": _inside(about, name) for name in inner}
    source, reporter = (
        ("source", "reportingComponent") if core else ("deprecatedSource", "reportingController")
    )
    fields |= {name: _at(name) for name in ("reason", "type", reporter)}
    fields["source" if core else "deprecatedSource.component"] = _source(source, reporter)
    return fields


def _at(name: str) -> Callable[[Object], str]:
    return lambda obj: str(obj.get(name) or "")


def _inside(outer: str, name: str) -> Callable[[Object], str]:
    return lambda obj: str((obj.get(outer) or {}).get(name) or "")


def _source(source: str, reporter: str) -> Callable[[Object], str]:
    component = _inside(source, "component")
    return lambda obj: component(obj) or str(obj.get(reporter) or "")


class LeaseRules(KindRules):
    """Rules for writes of Leases.

    A PUT may create a Lease. An update must contain the resourceVersion.
    """

    creates_on_update = True
    unconditional = False

    def check_create(self, obj: Object) -> list[Cause]:
        spec = obj.get("spec") or {}
        causes: list[Cause] = []
        seconds, count = spec.get("leaseDurationSeconds"), spec.get("leaseTransitions")
        if seconds is not None and seconds <= 0:
            field = "spec.leaseDurationSeconds"
            causes.append(invalid_field(field, seconds, "must be greater than 0"))
        if count is not None and count < 0:
            field = "spec.leaseTransitions"
            causes.append(invalid_field(field, count, "must be greater than or equal to 0"))
        return causes
