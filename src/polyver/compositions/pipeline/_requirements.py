"""Required resources of functions, found among given objects."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from polyver.capability import Refusal
from polyver.compositions._function_references import mapping
from polyver.compositions.messages import Requirements, Resource, ResourceSelector, SchemaSelector
from polyver.compositions.pipeline._run import FoundRequirements
from polyver.core.plain import ReadOnlyObject

__all__ = ["found_among"]

_DEFINITION = "CustomResourceDefinition"


def found_among(wanted: Requirements, objects: Iterable[ReadOnlyObject]) -> FoundRequirements:
    """Return the matching objects for each requirement, ordered by name; possibly none.

    Schemas are those of CustomResourceDefinitions. Raise Refusal for a requirement with neither a
    name nor labels.
    """
    there = sorted(objects, key=_name)
    return FoundRequirements(
        {name: _fitting(name, each, there) for name, each in wanted.resources.items()},
        {name: _fitting(name, each, there) for name, each in wanted.extra_resources.items()},
        {name: _schema(each, there) for name, each in wanted.schemas.items()},
    )


def _fitting(
    name: str, selector: ResourceSelector, there: Sequence[ReadOnlyObject]
) -> tuple[Resource, ...]:
    if not selector.match_name and selector.match_labels is None:
        fact = f'the requirement "{name}" has neither a name nor labels'
        raise Refusal("InvalidRequirement", fact)
    return tuple(Resource(dict(each)) for each in there if _fits(selector, each))


def _schema(selector: SchemaSelector, there: Sequence[ReadOnlyObject]) -> dict[str, Any]:
    group, _, version = selector.api_version.rpartition("/")
    for each in there:
        spec = mapping(each.get("spec"))
        names = mapping(spec.get("names"))
        if each["kind"] != _DEFINITION or spec.get("group") != group:
            continue
        for known in spec.get("versions") or () if names.get("kind") == selector.kind else ():
            if mapping(known).get("name") == version:
                return {**mapping(mapping(known.get("schema")).get("openAPIV3Schema"))}
    return {}


def _fits(selector: ResourceSelector, obj: ReadOnlyObject) -> bool:
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


def _name(obj: ReadOnlyObject) -> tuple[str, str]:
    metadata = mapping(obj.get("metadata"))
    return str(metadata.get("namespace") or ""), str(metadata.get("name") or "")
