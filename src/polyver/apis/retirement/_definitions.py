"""The versions in CustomResourceDefinitions and Conversions: who applies them, and changes."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import combinations
from typing import Any

from polyver.apis.conversion import Converter
from polyver.core.plain import Object

__all__ = [
    "appliers_of_versions",
    "conversion_without",
    "paths_through",
    "versions_served",
    "versions_without",
]


def versions_served(crd: Mapping[str, Any], version: str, *, served: bool) -> list[Object]:
    """Return `spec.versions` of a CRD with a new value of `served` in one version."""
    versions = crd["spec"]["versions"]
    return [{**each, "served": served} if each["name"] == version else each for each in versions]


def versions_without(crd: Mapping[str, Any], version: str) -> list[Object]:
    """Return `spec.versions` of a CRD without one version."""
    return [each for each in crd["spec"]["versions"] if each["name"] != version]


def conversion_without(conversion: Mapping[str, Any], version: str) -> Object:
    """Return a merge patch for the spec of a Conversion that removes a version and its edges."""
    spec = conversion["spec"]
    edges = spec.get("edges") or []
    change: Object = {
        "versions": [each for each in spec["versions"] if each != version],
        "edges": [each for each in edges if version not in (each.get("from"), each.get("to"))],
    }
    if spec.get("hub") == version:
        change["hub"] = None
    return change


def paths_through(converter: Converter, version: str) -> list[str]:
    """Return the pairs of other versions whose conversion path leads through a version."""
    others = [each for each in converter.versions if each != version]
    return [
        f"{source} to {target}"
        for source, target in combinations(others, 2)
        if version in converter.versions_between(source, target)
    ]


def appliers_of_versions(obj: Mapping[str, Any]) -> list[str]:
    """Return the field managers that apply `spec.versions` of a CRD or of a Conversion.

    In both kinds, the list is owned as a whole. If another client changes it, these field managers
    restore it at their next apply.
    """
    entries = obj["metadata"].get("managedFields") or ()
    return sorted(
        {
            each.get("manager", "")
            for each in entries
            if each.get("operation") == "Apply"
            and "f:versions" in (each.get("fieldsV1") or {}).get("f:spec", {})
        }
    )
