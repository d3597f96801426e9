"""Tables: what the real server showed of real objects is what ours shows of them."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.kube.record import transcript

from polyver.kube.objects.tables import (
    CUSTOM_SCALE,
    Printer,
    builtin_printer,
    custom_printer,
    human_duration,
    partial_metadata,
    to_table,
)

HERE = Path(__file__).parent
PEERS = HERE.parents[1] / "peers"


def recorded() -> dict[str, Any]:
    """The real server's tables, in which `<now>` stands for the time when it was asked."""
    text = (HERE / "recorded_tables.json").read_text()
    found: dict[str, Any] = json.loads(text.replace("<now>", json.loads(text)["now"]))
    return found


TABLES = recorded()
NOW = datetime.fromisoformat(TABLES["now"])
BUILTIN = {f"{kind['apiVersion']} {kind['kind']}": kind for kind in TABLES["builtin"]}
CUSTOM = {kind["about"]: kind for kind in TABLES["custom"]}


def printer_of(kind: dict[str, Any]) -> Printer:
    if "printerColumns" in kind:
        return custom_printer(kind["printerColumns"])
    return builtin_printer(kind["apiVersion"].rpartition("/")[0], kind["kind"])


def without_descriptions(table: dict[str, Any]) -> list[dict[str, Any]]:
    """The heads of columns without their descriptions, which are sentences of our own."""
    return [
        {key: value for key, value in column.items() if key != "description"}
        for column in table["columnDefinitions"]
    ]


ALL = pytest.mark.parametrize(
    "kind", [*BUILTIN.values(), *CUSTOM.values()], ids=[*BUILTIN, *CUSTOM]
)


@ALL
def test_a_kind_has_the_real_columns(kind: dict[str, Any]) -> None:
    table = to_table([], printer_of(kind), list_metadata={}, now=NOW)
    assert without_descriptions(table) == kind["columns"]
    assert all(column["description"] for column in table["columnDefinitions"])


@ALL
def test_a_list_of_nothing_has_the_real_rows(kind: dict[str, Any]) -> None:
    assert to_table([], printer_of(kind), list_metadata={}, now=NOW)["rows"] == kind["nothing"]


@ALL
def test_a_list_has_the_real_cells(kind: dict[str, Any]) -> None:
    objects = [row["object"] for row in kind["rows"]]
    assert objects
    table = to_table(objects, printer_of(kind), list_metadata={}, now=NOW)
    assert [row["cells"] for row in table["rows"]] == [row["cells"] for row in kind["rows"]]


@ALL
def test_a_list_has_the_real_conditions(kind: dict[str, Any]) -> None:
    objects = [row["object"] for row in kind["rows"]]
    table = to_table(objects, printer_of(kind), list_metadata={}, now=NOW)
    for ours, real in zip(table["rows"], kind["rows"], strict=True):
        said = [{**each} for each in ours.get("conditions", [])]
        assert all(condition.pop("message") for condition in said)
        assert said == real.get("conditions", [])


@ALL
def test_an_object_of_its_own_has_the_real_cells(kind: dict[str, Any]) -> None:
    for row in kind["rows"]:
        table = to_table([row["object"]], printer_of(kind), now=NOW)
        assert [ours["cells"] for ours in table["rows"]] == [row.get("alone", row["cells"])]


@ALL
def test_a_bookmark_has_the_real_cells(kind: dict[str, Any]) -> None:
    bookmark = {"metadata": {"resourceVersion": "7"}}
    [row] = to_table([bookmark], printer_of(kind), now=NOW)["rows"]
    assert row["cells"] == kind["bookmark"]


@pytest.mark.parametrize("scale", TABLES["scales"], ids=["built-in", "custom"])
def test_a_scale_has_the_real_columns_and_cells(scale: dict[str, Any]) -> None:
    printer = CUSTOM_SCALE if scale["custom"] else builtin_printer("autoscaling", "Scale")
    table = to_table([scale["rows"][0]["object"]], printer, now=NOW)
    assert [row["cells"] for row in table["rows"]] == [row["cells"] for row in scale["rows"]]
    assert without_descriptions(table) == scale["columns"]


def test_a_built_in_kind_that_nobody_described_has_a_name_and_an_age() -> None:
    columns = builtin_printer("own.k8s.io", "Own").columns
    assert [column.name for column in columns] == ["Name", "Age"]


def tables_in(case: str) -> Iterator[dict[str, Any]]:
    """The bodies of a case's answers that are whole Tables."""
    for answer in transcript(case) or []:
        bodies = [answer.get("body"), *(event["object"] for event in answer.get("events", []))]
        yield from (body for body in bodies if body and body.get("kind") == "Table")


@pytest.mark.parametrize(
    "case",
    [
        "table-of-a-custom-kind",
        "table-without-columns",
        "table-of-a-built-in-kind",
        "crd-column-with-a-bad-path",
        "watch-of-a-table",
        "empty-list",
    ],
)
def test_a_table_has_the_fields_of_the_real_one(case: str) -> None:
    found = list(tables_in(case))
    assert found
    for real in found:
        objects = [{"metadata": row["object"]["metadata"]} for row in real["rows"]]
        ours = to_table(
            objects,
            Printer((), lambda _obj, _now: []),
            now=NOW,
            list_metadata=real["metadata"],
            columns=real["columnDefinitions"] is not None,
        )
        assert ours.keys() == real.keys()
        assert [row["object"] for row in ours["rows"]] == [row["object"] for row in real["rows"]]
        assert (ours["columnDefinitions"] is None) is (real["columnDefinitions"] is None)


MADE = "2026-01-01T00:00:00Z"
OBJECT = {
    "apiVersion": "ex.io/v1",
    "kind": "Widget",
    "metadata": {"name": "a", "resourceVersion": "7", "creationTimestamp": MADE},
    "spec": {"color": "red"},
}


@pytest.mark.parametrize("api_version", ["meta.k8s.io/v1", "meta.k8s.io/v1beta1"])
def test_rows_come_with_metadata_of_the_tables_own_version(api_version: str) -> None:
    table = to_table([OBJECT], custom_printer(None), now=NOW, api_version=api_version)
    assert table["apiVersion"] == api_version
    assert table["rows"][0]["object"] == {
        "apiVersion": api_version,
        "kind": "PartialObjectMetadata",
        "metadata": OBJECT["metadata"],
    }


def test_rows_come_with_whole_objects_or_none_on_demand() -> None:
    whole = to_table([OBJECT], custom_printer(None), now=NOW, include="Object")
    none = to_table([OBJECT], custom_printer(None), now=NOW, include="None")
    assert whole["rows"][0]["object"] == OBJECT
    assert none["rows"][0]["object"] is None


def test_the_end_of_initial_events_keeps_its_annotation_without_objects() -> None:
    ended = {"metadata": {"annotations": {"k8s.io/initial-events-end": "true"}}}
    [row] = to_table([ended], custom_printer(None), now=NOW, include="None")["rows"]
    assert row["object"]["metadata"] == ended["metadata"]


def test_the_table_of_one_object_has_its_resource_version() -> None:
    assert to_table([OBJECT], custom_printer(None), now=NOW)["metadata"] == {"resourceVersion": "7"}


def test_the_table_of_a_list_has_the_metadata_of_the_list() -> None:
    metadata = {"resourceVersion": "9", "continue": "next", "remainingItemCount": 3}
    table = to_table([OBJECT], custom_printer(None), now=NOW, list_metadata=metadata)
    assert table["metadata"] == metadata


def test_the_newest_of_several_default_storage_classes_is_marked() -> None:
    marked = {"storageclass.kubernetes.io/is-default-class": "true"}
    times = {"a": "2026-01-01T00:00:00Z", "b": "2026-01-02T00:00:00Z", "c": "2026-01-02T00:00:00Z"}
    classes: list[dict[str, Any]] = [
        {"metadata": {"name": name, "annotations": marked, "creationTimestamp": time}}
        for name, time in times.items()
    ]
    printer = builtin_printer("storage.k8s.io", "StorageClass")
    rows = to_table(classes, printer, now=NOW, list_metadata={})["rows"]
    assert [row["cells"][0] for row in rows] == ["a", "b (default)", "c"]


def test_the_metadata_of_an_object_alone_is_the_real_one() -> None:
    answers = [answer["body"] for answer in transcript("partial-metadata") or []]
    lists = [body for body in answers if body["kind"] == "PartialObjectMetadataList"]
    reals = [item for body in lists for item in body["items"]]
    assert reals
    for real in reals:
        assert partial_metadata({"metadata": real["metadata"], "spec": {}}) == real


def test_printing_does_not_change_the_object() -> None:
    for kind in [*BUILTIN.values(), *CUSTOM.values()]:
        objects = [row["object"] for row in kind["rows"]]
        before = json.dumps(objects)
        to_table(objects, printer_of(kind), list_metadata={}, now=NOW, include="Object")
        assert json.dumps(objects) == before


def durations() -> list[tuple[float, str]]:
    found = json.loads((PEERS / "recorded_durations.json").read_text())
    return [(answer["seconds"], answer["human"]) for answer in found]


def test_a_duration_reads_as_the_real_servers() -> None:
    found = durations()
    assert len(found) > 100
    assert [(seconds, human_duration(seconds)) for seconds, _ in found] == found


@given(st.floats(0, 1e10))
def test_a_duration_loses_little(seconds: float) -> None:
    """At most one part in eight of it: that is what two figures are for."""
    units = {"s": 1, "m": 60, "h": 3600, "d": 86400, "y": 365 * 86400}
    shown = human_duration(seconds)
    assert re.fullmatch(r"(\d+[smhdy]){1,2}", shown)
    told = sum(int(many) * units[unit] for many, unit in re.findall(r"(\d+)([smhdy])", shown))
    assert told <= seconds <= told + max(1, seconds / 8)


@given(st.datetimes(datetime(2000, 1, 1), NOW.replace(tzinfo=None)))
def test_a_date_column_shows_the_age(time: datetime) -> None:
    printer = custom_printer([{"name": "When", "type": "date", "jsonPath": ".when"}])
    when = time.replace(tzinfo=UTC)
    [row] = to_table([{"when": when.isoformat()}], printer, now=NOW)["rows"]
    assert row["cells"][1] == human_duration((NOW - when) / timedelta(seconds=1))
