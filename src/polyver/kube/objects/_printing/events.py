"""The table of events, whose fields have different names in the two API groups."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from polyver.core.plain import Object
from polyver.kube.objects._printing.ages import age_of
from polyver.kube.objects._printing.cells import column, maker, text, wide
from polyver.kube.objects._printing.columns import Cell, Printer, TableColumn, printer

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
    """Return the printer of events of one group."""

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
        column("Last Seen", last, "The time since it happened last."),
        column("Type", text("type"), "Normal or Warning."),
        column("Reason", text("reason"), "Why it happened, in a word."),
        column("Object", maker(about), "What it happened to."),
        wide("Subobject", text(f"{names.about}.fieldPath"), "The part that it happened to."),
        wide("Source", maker(source), "Who tells of it."),
        column(
            "Message", maker(lambda it: (it.get(names.message) or "").strip()), "What happened."
        ),
        wide("First Seen", first, "The time since it happened first."),
        wide("Count", maker(how_often), "How often it happened."),
        (
            TableColumn("Name", format="name", description="Its name.", priority=1),
            text("metadata.name"),
        ),
    )
