"""Other forms of objects in responses: Tables for `kubectl get`, and PartialObjectMetadata."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from decimal import Decimal
from typing import Any, Literal

from polyver.core.plain import Object
from polyver.kube.objects._printing.cells import (
    Cell,
    CellOf,
    Printer,
    TableColumn,
    age_of,
    human_duration,
    printer,
)
from polyver.kube.objects._printing.kinds import NAME, builtin_printer
from polyver.kube.objects.codec import encode_sorted
from polyver.languages.jsonpath import InvalidJsonPath, JsonPath, parse_path

__all__ = [
    "CUSTOM_SCALE",
    "Include",
    "Printer",
    "TableColumn",
    "age_of",
    "builtin_printer",
    "custom_printer",
    "human_duration",
    "partial_metadata",
    "to_table",
]

Include = Literal["None", "Metadata", "Object"]
META = "meta.k8s.io/v1"
_INITIAL_EVENTS_END = "k8s.io/initial-events-end"
_AGE = {"name": "Age", "type": "date", "jsonPath": ".metadata.creationTimestamp"}


def to_table(
    objects: Sequence[Object],
    printer: Printer,
    *,
    now: datetime,
    list_metadata: Mapping[str, Any] | None = None,
    api_version: str = META,
    include: Include = "Metadata",
    columns: bool = True,
) -> dict[str, Any]:
    """Build the Table of a list of objects or, without `list_metadata`, of one object.

    In a watch each object has its own Table, and only the first Table has columns.

    >>> from datetime import UTC
    >>> made = {"metadata": {"name": "a", "creationTimestamp": "2026-01-01T00:00:00Z"}}
    >>> printer = builtin_printer("", "ServiceAccount")
    >>> table = to_table([made], printer, now=datetime(2026, 1, 4, tzinfo=UTC), include="None")
    >>> table["rows"]
    [{'cells': ['a', '3d'], 'object': None}]
    """
    rows = [_row(obj, printer, now, api_version, include) for obj in objects]
    if list_metadata is not None:
        _mark_default(rows, objects, printer)
    return {
        "kind": "Table",
        "apiVersion": api_version,
        "metadata": _metadata(objects) if list_metadata is None else dict(list_metadata),
        "columnDefinitions": [each.definition for each in printer.columns] if columns else None,
        "rows": None if printer.null_rows and not rows else rows,
    }


def _metadata(objects: Sequence[Object]) -> dict[str, Any]:
    version = objects[0].get("metadata", {}).get("resourceVersion") if objects else None
    return {"resourceVersion": version} if version else {}


def _row(
    obj: Object, printer: Printer, now: datetime, api_version: str, include: Include
) -> dict[str, Any]:
    row: dict[str, Any] = {"cells": printer.cells(obj, now)}
    if printer.conditions is not None and (conditions := printer.conditions(obj)):
        row["conditions"] = conditions
    row["object"] = _included(obj, api_version, include)
    return row


def _included(obj: Object, api_version: str, include: Include) -> Object | None:
    if include == "Object":
        return obj
    # A watch with Tables may request no objects. But the event that ends the initial events is
    # marked by an annotation of its object, so return the metadata of this object.
    annotations = obj.get("metadata", {}).get("annotations") or {}
    if include == "Metadata" or _INITIAL_EVENTS_END in annotations:
        return partial_metadata(obj, api_version)
    return None


def _mark_default(rows: list[dict[str, Any]], objects: Sequence[Object], printer: Printer) -> None:
    default = printer.default_of(objects) if printer.default_of is not None else None
    for row in rows:
        if default is not None and row["cells"][0] == default:
            row["cells"][0] = f"{default} (default)"


def partial_metadata(obj: Object, api_version: str = META) -> Object:
    """Build the PartialObjectMetadata of an object: an object that has only the metadata."""
    metadata = obj.get("metadata", {})
    return {"kind": "PartialObjectMetadata", "apiVersion": api_version, "metadata": metadata}


def custom_printer(columns: Sequence[Mapping[str, Any]] | None) -> Printer:
    """Build the printer of a custom resource from its additionalPrinterColumns.

    If there are none, the columns are name and age. As in kube-apiserver, a column with an invalid
    path is left out, and so are all columns after it.

    >>> [each.name for each in custom_printer([{"name": "A", "jsonPath": ".spec["}]).columns]
    ['Name']
    """
    found: list[tuple[TableColumn, CellOf]] = []
    for definition in columns or [_AGE]:
        try:
            path = parse_path(definition.get("jsonPath", ""))
        except InvalidJsonPath:
            break
        found.append((_column(definition), _cell(definition.get("type", ""), path)))
    return printer(NAME, *found)


def _column(definition: Mapping[str, Any]) -> TableColumn:
    return TableColumn(
        definition["name"],
        definition.get("type", ""),
        definition.get("format", ""),
        definition.get("description") or f"The value at {definition.get('jsonPath', '')}.",
        definition.get("priority", 0),
    )


def _cell(type_: str, path: JsonPath) -> CellOf:
    """Build a cell function for the first value at a path.

    If the value does not have the type `type_` of the column, the cell is empty.
    """

    def cell(obj: Object, now: datetime) -> Cell:
        found = path.find(obj)
        if not found:
            return None
        value = found[0]
        if type_ == "date":
            return _age(value, now)
        return make(value)

    make = _MAKERS.get(type_, _nothing)
    return cell


def _nothing(_: Any) -> None:
    return None


def _age(value: Any, now: datetime) -> str | None:
    if not isinstance(value, str):
        return None
    return age_of("" if value == "null" else value, now)


def _integer(value: Any) -> int | None:
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    return int(value) if -(2**63) <= value < 2**63 else -(2**63)


def _number(value: Any) -> int | float | None:
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    return int(float(value)) if isinstance(value, int) else value


def _boolean(value: Any) -> bool | None:
    return value if isinstance(value, bool) else None


_UNSAFE = str.maketrans({char: f"\\u{ord(char):04x}" for char in "<>&\u2028\u2029"})


def _text(value: Any) -> str:
    match value:
        case str():
            return value
        case None:
            return "<no value>"
        case bool():
            return "true" if value else "false"
        case float():
            return _shortest(value)
        case int():
            return str(value)
        case _:
            return encode_sorted(value).decode().translate(_UNSAFE)


def _shortest(value: float) -> str:
    """Write a number with as few digits as possible.

    Numbers from 1,000,000 and below 0.0001 are written with an exponent.

    >>> _shortest(1234567.25), _shortest(0.5), _shortest(2.0)
    ('1.23456725e+06', '0.5', '2')
    """
    exact = Decimal(repr(value)).normalize()
    if -4 <= exact.adjusted() < 6 or not value:
        return f"{exact:f}"
    mantissa, _, power = f"{exact:e}".partition("e")
    return f"{mantissa}e{power[0]}{power[1:]:0>2}"


_MAKERS = {"boolean": _boolean, "integer": _integer, "number": _number, "string": _text}

CUSTOM_SCALE = custom_printer(
    [
        {"name": "Desired", "type": "integer", "jsonPath": ".spec.replicas"},
        {"name": "Available", "type": "integer", "jsonPath": ".status.replicas"},
        _AGE,
    ]
)
"""The printer for the Scale of a custom resource; built-in kinds have another one."""
