"""Custom kinds: from a definition to what is served."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

from polyver.objects.jsonpath import InvalidPath, parse_path
from polyver.objects.kinds import CUSTOM_VERBS, Kind, Subresource
from polyver.objects.status import forbidden
from polyver.objects.tables import custom_printer
from polyver.server.discovery import storage_version_hash
from polyver.server.parts import Scale
from polyver.server.resource import Resource
from polyver.server.rules import Object, Part, Rules

__all__ = ["CustomRules", "custom_resources"]

_SCALE = Subresource("scale", group="autoscaling", version="v1", kind="Scale")


class CustomRules(Rules):
    """What holds for every custom kind."""

    unconditional = False
    counts = True

    def __init__(self, kind: Kind, *, has_status: bool, terminating: bool) -> None:
        self._kind = kind
        self.terminating = terminating
        self.has_status = has_status

    def prepare_create(self, obj: Object) -> None:
        if self.terminating:
            text = "create not allowed while custom resource definition is terminating"
            raise forbidden(self._kind, obj["metadata"].get("name", ""), text)

    def warnings(self, obj: Object, old: Object | None) -> Iterable[str]:
        before = (old or {"metadata": {}})["metadata"].get("finalizers") or ()
        for finalizer in obj["metadata"].get("finalizers") or ():
            if "/" not in finalizer and finalizer not in (*before, *_KNOWN_FINALIZERS):
                yield (
                    f'metadata.finalizers: "{finalizer}": prefer a domain-qualified finalizer name '
                    "to avoid accidental conflicts with other finalizer writers"
                )


_KNOWN_FINALIZERS = ("orphan", "foregroundDeletion")


def custom_resources(definition: Mapping[str, Any], since: int) -> list[Resource]:
    """What a definition has served, a resource for each version."""
    spec = definition["spec"]
    stored = next(each for each in spec["versions"] if each["storage"])
    hashed = storage_version_hash(spec["group"], stored["name"], spec["names"]["kind"])
    return [
        _resource(definition, version, stored["name"], hashed, since)
        for version in spec["versions"]
        if version["served"]
    ]


def _resource(
    definition: Mapping[str, Any], version: Mapping[str, Any], stored: str, hashed: str, since: int
) -> Resource:
    kind = _kind(definition, version, hashed)
    parts = version.get("subresources") or {}
    rules = CustomRules(
        kind,
        has_status="status" in parts,
        terminating="deletionTimestamp" in definition["metadata"],
    )
    del stored
    return Resource(
        kind=kind,
        rules=rules,
        printer=custom_printer(version.get("additionalPrinterColumns")),
        selectable=_selectable(version.get("selectableFields") or ()),
        since=since,
        schema=(version.get("schema") or {}).get("openAPIV3Schema") or {},
        parts=_parts(parts, rules),
        definition=(kind, version, rules.terminating, definition["metadata"]["uid"]),
    )


def _kind(definition: Mapping[str, Any], version: Mapping[str, Any], hashed: str) -> Kind:
    spec, names = definition["spec"], definition["status"]["acceptedNames"]
    parts = version.get("subresources") or {}
    subresources = [Subresource("status")] if "status" in parts else []
    subresources += [_SCALE] if parts.get("scale") else []
    return Kind(
        group=spec["group"],
        version=version["name"],
        kind=names["kind"],
        plural=names["plural"],
        singular=names.get("singular", ""),
        namespaced=spec["scope"] == "Namespaced",
        list_kind=names.get("listKind", ""),
        short_names=tuple(names.get("shortNames") or ()),
        categories=tuple(names.get("categories") or ()),
        verbs=CUSTOM_VERBS,
        subresources=tuple(subresources),
        custom=True,
        storage_hash=hashed,
        deprecated=bool(version.get("deprecated")),
    )


def _parts(parts: Mapping[str, Any], rules: Rules) -> Mapping[str, Part]:
    scale = parts.get("scale")
    if not scale:
        return {}
    return {
        "scale": Scale(
            rules,
            replicas=_names(scale["specReplicasPath"]),
            status_replicas=_names(scale["statusReplicasPath"]),
            selector=_names(scale.get("labelSelectorPath") or ""),
        )
    }


def _names(path: str) -> tuple[str, ...]:
    return tuple(path.lstrip(".").split(".")) if path else ()


def _selectable(fields: Iterable[Mapping[str, str]]) -> Mapping[str, Callable[[Object], str]]:
    return {field["jsonPath"].lstrip("."): _text_of(field["jsonPath"]) for field in fields}


def _text_of(path: str) -> Callable[[Object], str]:
    try:
        parsed = parse_path(path)
    except InvalidPath:
        return lambda _: ""

    def text(obj: Object) -> str:
        found = parsed.find(obj)
        match found[:1]:
            case [bool(value)]:
                return "true" if value else "false"
            case [None] | []:
                return ""
        return str(found[0])

    return text
