"""Metadata that a conversion may write: labels and annotations, whose values are strings.

An API server refuses anything else, and with it the whole list that contains the object.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from polyver.apis.conversion.paths import Path, parse_path
from polyver.apis.conversion.values import MISSING
from polyver.languages.values.names import label_value_problems

__all__ = ["fits_metadata", "may_restore"]


def fits_metadata(path: Path, value: Any) -> bool:
    """Report whether a value is valid for a label or an annotation."""
    if value is MISSING:
        return True
    return type(value) is str and (path[1] != "labels" or not label_value_problems(value))


def may_restore(text: str, entry: Mapping[str, Any]) -> bool:
    """Report whether a conversion may write the field of an entry; most metadata is fixed."""
    if not text.startswith(_FIXED):
        return True
    path = parse_path(text)
    if path[0] not in _FIXED:
        return True
    if path[0] != "metadata" or path[1:2] not in (("labels",), ("annotations",)):
        return False
    if "absent" in entry:
        return len(path) in (2, 3)
    value = entry.get("is")
    if len(path) == 2:
        return type(value) is dict and all(fits_metadata(path, each) for each in value.values())
    return len(path) == 3 and fits_metadata(path, value)


_FIXED = ("apiVersion", "kind", "metadata", "[")
