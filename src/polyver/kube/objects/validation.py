"""Validates YAML documents against the schema of their kind; unknown fields are errors.

An error states the position in the file. For an unknown field, it suggests a declared field with a
similar name.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from difflib import get_close_matches
from typing import Any

from polyver.kube.objects.converted_metadata import fresh
from polyver.kube.objects.schema import Schema, compile_schema
from polyver.kube.objects.status import Cause
from polyver.languages.values.manifests import Document, Path

__all__ = ["conformed", "field_path", "plain_cause"]

_STATUS = "status"


def field_path(text: str) -> Path:
    """Parse the path of a field, as errors of API servers write it.

    >>> field_path("spec.pipeline[0].functionRef")
    ('spec', 'pipeline', 0, 'functionRef')
    """
    found = re.findall(r"\[(\d+)\]|([^.\[\]]+)", text)
    return tuple(int(number) if number else name for number, name in found)


def plain_cause(cause: Cause) -> str:
    """Return the message of a cause without the path of the field.

    >>> plain_cause(Cause("spec.size", "Required value"))
    '"size" is missing'
    """
    if cause.message == "Required value":
        return f'"{field_path(cause.field)[-1]}" is missing'
    return cause.message.rpartition(f"{cause.field} in body ")[2] or cause.message


def conformed(document: Document, schema: Mapping[str, Any]) -> dict[str, Any]:
    """Validate a document; return its object with defaults. Raise `InvalidManifest` on an error.

    As with kubectl, an unknown field is an error. A server may have written the status, so unknown
    fields in the status are dropped, and errors in it are ignored.
    """
    compiled = compile_schema(schema)
    value: dict[str, Any] = fresh(document.value)
    _check_known(document, compiled.prune(value), schema)
    compiled.default(value)
    _check_valid(document, compiled, value)
    return value


def _check_known(document: Document, unknown: list[str], schema: Mapping[str, Any]) -> None:
    for text in unknown:
        path = field_path(text)
        if path[0] != _STATUS:
            fact = f'unknown field "{path[-1]}"'
            raise document.error(fact, *path, hint=_meant(path, schema))


def _meant(path: Path, schema: Mapping[str, Any]) -> str:
    inside = schema
    for step in path[:-1]:
        if isinstance(step, int):
            inside = inside.get("items") or {}
        else:
            known = inside.get("properties") or {}
            inside = known.get(step) or inside.get("additionalProperties") or {}
    found = get_close_matches(str(path[-1]), [*(inside.get("properties") or ())], 1)
    return f"did you mean {found[0]}?" if found else ""


def _check_valid(document: Document, schema: Schema, value: dict[str, Any]) -> None:
    causes = [each for each in schema.validate(value) if not each.field.startswith(_STATUS)]
    if causes:
        cause = causes[0]
        raise document.error(plain_cause(cause), *field_path(cause.field))
