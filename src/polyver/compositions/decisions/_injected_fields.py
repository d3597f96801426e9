"""Schema fields that all composite resources have, besides those of their definition."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from polyver.compositions.names import LONGEST_LABEL
from polyver.kube.objects.converted_metadata import fresh

__all__ = ["COLUMNS", "INSIDE", "LEGACY_COLUMNS", "RESERVED", "injected"]

Schema = Mapping[str, Any]
INSIDE: Final = "crossplane"
"""Field of `spec` with the fields for compositions, unless the scope is LegacyCluster."""
RESERVED: Final = "pipeline"
"""Field of `status` that only polyver adds, so a definition may already use this name."""

_TEXT: Schema = {"type": "string"}
_TIME: Schema = {"type": "string", "format": "date-time"}


def _object(*required: str, **properties: Schema) -> dict[str, Any]:
    made: dict[str, Any] = {"type": "object", "properties": properties}
    return made | ({"required": [*required]} if required else {})


def _list(items: Schema, *keys: str) -> dict[str, Any]:
    kind: dict[str, Any] = {"x-kubernetes-list-type": "map" if keys else "atomic"}
    keyed = {"x-kubernetes-list-map-keys": [*keys]} if keys else {}
    return {"type": "array", "items": items, **kind, **keyed}


_NAMED = _object("name", name={**_TEXT, "minLength": 1})
_LABELS = _object("matchLabels", matchLabels={"type": "object", "additionalProperties": {**_TEXT}})
_COMPOSED = {
    "compositionRef": _NAMED,
    "compositionSelector": _LABELS,
    "compositionRevisionRef": _NAMED,
    "compositionRevisionSelector": _LABELS,
    "compositionUpdatePolicy": {**_TEXT, "enum": ["Automatic", "Manual"]},
    "resourceRefs": _list(
        _object(
            *("apiVersion", "kind"),
            **dict.fromkeys(("apiVersion", "kind", "namespace", "name"), _TEXT),
        )
    ),
}
_SECRET = {"writeConnectionSecretToRef": _object("name", "namespace", name=_TEXT, namespace=_TEXT)}
_STATUS = {
    "conditions": _list(
        _object(
            *("lastTransitionTime", "reason", "status", "type"),
            lastTransitionTime=_TIME,
            message=_TEXT,
            observedGeneration={"type": "integer", "format": "int64"},
            reason=_TEXT,
            status=_TEXT,
            type=_TEXT,
        ),
        "type",
    ),
    "connectionDetails": _object(lastPublishedTime=_TIME),
    RESERVED: _list(
        _object(
            *("step", "function", "revision"),
            **dict.fromkeys(("step", "function", "revision", "digest"), _TEXT),
        ),
        "step",
    ),
}


def injected(schema: Schema, *, legacy: bool, update_policy: str) -> dict[str, Any]:
    """Return the schema of a version with the fields that all composite resources have.

    They replace fields of the same names.
    """
    properties = schema.get("properties") or {}
    fields = _fields(update_policy)
    spec = fields | _SECRET if legacy else {INSIDE: _object(**fields)}
    name = properties.get("metadata", {}).get("properties", {}).get("name", {})
    longest = min(LONGEST_LABEL, name.get("maxLength", LONGEST_LABEL))
    made: dict[str, Any] = fresh(
        {
            **schema,
            "type": "object",
            "required": sorted({*schema.get("required", ()), "spec"}),
            "properties": {
                **properties,
                "apiVersion": _TEXT,
                "kind": _TEXT,
                "metadata": _object(name={**name, "type": "string", "maxLength": longest}),
                "spec": _with(properties.get("spec"), spec),
                "status": _with(properties.get("status"), _STATUS),
            },
        }
    )
    return made


def _fields(update_policy: str) -> dict[str, Any]:
    policy = {**_COMPOSED["compositionUpdatePolicy"], "default": update_policy}
    return {**_COMPOSED, "compositionUpdatePolicy": policy}


def _with(schema: Schema | None, fields: Schema) -> dict[str, Any]:
    given = schema or {}
    properties = {**(given.get("properties") or {}), **fields}
    return {**given, "type": given.get("type") or "object", "properties": properties}


def _columns(at: str) -> list[dict[str, Any]]:
    condition = ".status.conditions[?(@.type=='{}')].status"
    paths = {
        "SYNCED": condition.format("Synced"),
        "READY": condition.format("Ready"),
        "COMPOSITION": f"{at}.compositionRef.name",
        "COMPOSITIONREVISION": f"{at}.compositionRevisionRef.name",
    }
    found: list[dict[str, Any]] = [
        {"name": name, "type": "string", "jsonPath": path} for name, path in paths.items()
    ]
    found[-1]["priority"] = 1
    return [*found, {"name": "AGE", "type": "date", "jsonPath": ".metadata.creationTimestamp"}]


LEGACY_COLUMNS: Final = _columns(".spec")
COLUMNS: Final = _columns(f".spec.{INSIDE}")
