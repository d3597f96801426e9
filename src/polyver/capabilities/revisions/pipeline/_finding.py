"""What functions want to see, found among objects that are there as plain data."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from polyver.capabilities.revisions._asking import mapping
from polyver.capabilities.revisions.messages import Requirements, Resource, ResourceSelector
from polyver.capabilities.revisions.pipeline._run import Found

__all__ = ["found_among"]

Object = Mapping[str, Any]


def found_among(wanted: Requirements, objects: Iterable[Object]) -> Found:
    """For each requirement the objects that fit it, by name; of a kind nothing may be there.

    Schemas are not among them, and found empty.
    """
    there = sorted(objects, key=_name)
    return Found(
        {name: _fitting(each, there) for name, each in wanted.resources.items()},
        {name: _fitting(each, there) for name, each in wanted.extra_resources.items()},
        {name: {} for name in wanted.schemas},
    )


def _fitting(selector: ResourceSelector, there: Sequence[Object]) -> tuple[Resource, ...]:
    return tuple(Resource(dict(each)) for each in there if _fits(selector, each))


def _fits(selector: ResourceSelector, obj: Object) -> bool:
    if (obj["apiVersion"], obj["kind"]) != (selector.api_version, selector.kind):
        return False
    metadata = mapping(obj.get("metadata"))
    namespace = metadata.get("namespace")
    if selector.namespace and namespace not in (None, "", selector.namespace):
        return False
    if selector.match_name:
        return bool(metadata.get("name") == selector.match_name)
    labels = mapping(metadata.get("labels"))
    return {*(selector.match_labels or {}).items()} <= {*labels.items()}


def _name(obj: Object) -> tuple[str, str]:
    metadata = mapping(obj.get("metadata"))
    return str(metadata.get("namespace") or ""), str(metadata.get("name") or "")
