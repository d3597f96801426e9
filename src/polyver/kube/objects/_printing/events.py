"""The table of events; the two API groups of events have different names for their fields."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from polyver.core.plain import Object
from polyver.kube.objects._printing.cells import (
    Cell,
    Printer,
    TableColumn,
    age_of,
    column,
    maker,
    printer,
    text,
    wide,
)

__all__ = ["CORE", "NEW", "event_printer"]


@dataclass(frozen=True, slots=True)
class _EventFieldNames:
    """The names of an event's fields in one API group."""

    about: str
    message: str
    first: str
    last: str
    count: str
    source: str
    reporter: str


CORE = _EventFieldNames(
    about="involvedObject",
    message="message",
    first="firstTimestamp",
    last="lastTimestamp",
    count="count",
    source="source",
    reporter="reportingComponent",
)
NEW = _EventFieldNames(
    about="regarding",
    message="note",
    first="deprecatedFirstTimestamp",
    last="deprecatedLastTimestamp",
    count="deprecatedCount",
    source="deprecatedSource",
    reporter="reportingController",
)


def event_printer(names: _EventFieldNames) -> Printer:
    """Build the printer for the events of one API group."""

    def first(event: Object, now: datetime) -> Cell:
        return age_of(event.get(names.first) or event.get("eventTime"), now)

    def last(event: Object, now: datetime) -> Cell:
        if event.get("series") is not None:
            return age_of(event["series"].get("lastObservedTime"), now)
        return age_of(event[names.last], now) if event.get(names.last) else first(event, now)

    def how_often(event: Object) -> int:
        if event.get("series") is not None:
            return int(event["series"].get("count") or 0)
        return event.get(names.count) or 1

    def about(event: Object) -> str:
        found = event.get(names.about) or {}
        name = f"/{found['name']}" if found.get("name") else ""
        return f"{found.get('kind', '').lower()}{name}"

    def source(event: Object) -> str:
        found = event.get(names.source) or {}
        component = found.get("component") or event.get(names.reporter) or ""
        instance = found.get("host") or event.get("reportingInstance")
        return f"{component}, {instance}" if instance else component

    return printer(
        column("Last Seen", last, "The time since the last occurrence."),
        column("Type", text("type"), "The type: Normal or Warning."),
        column("Reason", text("reason"), "The reason, in one word."),
        column("Object", maker(about), "The object that the event is about."),
        wide(
            "Subobject",
            text(f"{names.about}.fieldPath"),
            "The field of that object, if the event is about one.",
        ),
        wide("Source", maker(source), "The component that reported the event."),
        column(
            "Message",
            maker(lambda it: (it.get(names.message) or "").strip()),
            "A description of the event.",
        ),
        wide("First Seen", first, "The time since the first occurrence."),
        wide("Count", maker(how_often), "The number of occurrences."),
        (
            TableColumn("Name", format="name", description="The name of the event.", priority=1),
            text("metadata.name"),
        ),
    )
