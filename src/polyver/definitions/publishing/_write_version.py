"""The API version in which a definition may be changed: the one in which it was created.

A write of a list of versions through v1beta1 would lose all but one of them.
"""

from __future__ import annotations

from polyver.core.plain import ReadOnlyObject
from polyver.definitions.kinds import STORED
from polyver.definitions.names import API_VERSION
from polyver.definitions.publishing._spec import Refusal

__all__ = ["check_writer", "created_with", "other_writer"]


def check_writer(new: ReadOnlyObject, old: ReadOnlyObject, version: str) -> list[Refusal]:
    """Refuse a change of the spec in another API version than that of creation."""
    first = _created_with(old)
    if first in (None, version) or new.get("spec") == old.get("spec"):
        return []
    return [_refusal(str(first), version)]


def other_writer(obj: ReadOnlyObject) -> list[Refusal]:
    """Return the refusal if `managedFields` shows a write of the spec in another API version."""
    first = _created_with(obj)
    for entry in obj["metadata"].get("managedFields") or ():
        version = str(entry.get("apiVersion", "")).rpartition("/")[2]
        wrote = "f:spec" in (entry.get("fieldsV1") or {})
        if wrote and first is not None and version != first:
            return [_refusal(first, version)]
    return []


def created_with(obj: ReadOnlyObject) -> str:
    """Return the API version in which a definition was written, from `managedFields`."""
    for entry in obj["metadata"].get("managedFields") or ():
        if "f:spec" in (entry.get("fieldsV1") or {}):
            return str(entry.get("apiVersion", "")).rpartition("/")[2]
    return STORED


def _created_with(obj: ReadOnlyObject) -> str | None:
    found: str | None = (obj["metadata"].get("annotations") or {}).get(API_VERSION)
    return found


def _refusal(first: str, version: str) -> Refusal:
    fact = f"the definition was created in {first}, but its spec is changed in {version}"
    hint = f"change it in {first}; labels and annotations can be changed in both"
    return Refusal("OtherAPIVersion", fact, at="spec", hint=hint)
