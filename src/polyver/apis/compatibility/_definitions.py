"""Compare two CustomResourceDefinitions: their names, their versions, and each schema."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from polyver.apis.compatibility._findings import (
    PRESERVE,
    CompatibilityFinding,
    FindingSeverity,
    Schema,
    found,
    within,
)
from polyver.apis.compatibility._schemas import compare_schemas
from polyver.languages.values.strings import same, shown

__all__ = ["compare_definitions"]

Definition = Mapping[str, Any]
Version = Mapping[str, Any]

_FIXED: Final = (("group",), ("scope",), ("names", "plural"), ("names", "kind"))
_ANYTHING: Final = {"type": "object", PRESERVE: True}


def compare_definitions(
    old: Definition, new: Definition, *, least: FindingSeverity = FindingSeverity.RISKY
) -> list[CompatibilityFinding]:
    """Return the changes that break users of a CustomResourceDefinition, or may break them.

    Both CustomResourceDefinitions are in apiextensions.k8s.io/v1. If the old one was read from a
    cluster, `status.storedVersions` states in which versions objects are stored, and the comparison
    uses this. Safe changes are left out, unless `least` is `FindingSeverity.SAFE`.
    """
    return within(_compare(old, new), least)


def _compare(old: Definition, new: Definition) -> Iterator[CompatibilityFinding]:
    before, after = old.get("spec") or {}, new.get("spec") or {}
    yield from _compare_names(before, after)
    yield from _compare_conversion(before, after)
    if before.get("preserveUnknownFields") and not after.get("preserveUnknownFields"):
        fact = "unknown fields were kept in all versions"
        yield found("unknown-dropped", "spec.preserveUnknownFields", fact)
    versions, others = _versions(before), _versions(after)
    yield from _compare_storage(versions, others)
    stored = {*_stored(old), *_stored(new)}
    for name, version in versions.items():
        if name in others:
            yield from _compare_version(name, version, others[name])
        else:
            yield _removed(name, version, stored)
    for name in (each for each in others if each not in versions):
        yield found("version-added", f"spec.versions[{name}]", f"{name} was added", version=name)


def _versions(spec: Mapping[str, Any]) -> dict[str, Version]:
    return {version["name"]: version for version in spec.get("versions") or ()}


def _stored(definition: Definition) -> Sequence[str]:
    return (definition.get("status") or {}).get("storedVersions") or ()


def _removed(name: str, version: Version, stored: set[str]) -> CompatibilityFinding:
    path = f"spec.versions[{name}]"
    if name in stored or version.get("storage"):
        fact = f"{name} was removed, but objects are stored in it"
        return found("stored-version-removed", path, fact, version=name)
    rule = "served-version-removed" if version.get("served") else "version-removed"
    return found(rule, path, f"{name} was removed", version=name)


def _compare_names(
    old: Mapping[str, Any], new: Mapping[str, Any]
) -> Iterator[CompatibilityFinding]:
    for path in _FIXED:
        before, after = _at(old, path), _at(new, path)
        if before != after:
            fact = f"{shown(before)} changed to {shown(after)}"
            yield found("identity-changed", f"spec.{'.'.join(path)}", fact)
    names, others = _named(old), _named(new)
    for key in ("singular", "listKind"):
        if names[key] != others[key]:
            fact = f"{shown(names[key])} changed to {shown(others[key])}"
            yield found("names-changed", f"spec.names.{key}", fact)
    for key in ("shortNames", "categories"):
        yield from _compare_set(names[key], others[key], f"spec.names.{key}")


def _at(value: Any, path: Sequence[str]) -> Any:
    for name in path:
        value = (value or {}).get(name)
    return value


def _named(spec: Mapping[str, Any]) -> dict[str, Any]:
    """Return `spec.names`, with the defaults that an API server derives from the kind."""
    names = spec.get("names") or {}
    kind = names.get("kind") or ""
    return {
        "singular": names.get("singular") or kind.lower(),
        "listKind": names.get("listKind") or f"{kind}List",
        "shortNames": names.get("shortNames") or [],
        "categories": names.get("categories") or [],
    }


def _compare_set(
    old: Sequence[str], new: Sequence[str], path: str
) -> Iterator[CompatibilityFinding]:
    for name in (each for each in old if each not in new):
        yield found("names-changed", path, f"{name} was removed")
    for name in (each for each in new if each not in old):
        yield found("names-added", path, f"{name} was added")


def _compare_conversion(
    old: Mapping[str, Any], new: Mapping[str, Any]
) -> Iterator[CompatibilityFinding]:
    before, after = (_at(spec, ("conversion", "strategy")) or "None" for spec in (old, new))
    if before != after:
        yield found(
            "conversion-changed", "spec.conversion.strategy", f"{before} changed to {after}"
        )


def _compare_storage(
    old: Mapping[str, Version], new: Mapping[str, Version]
) -> Iterator[CompatibilityFinding]:
    before, after = (
        [name for name, version in versions.items() if version.get("storage")]
        for versions in (old, new)
    )
    if before and after and before != after:
        fact = f"{', '.join(before)} was the storage version, {', '.join(after)} is now"
        path = f"spec.versions[{after[0]}].storage"
        yield found("storage-moved", path, fact, version=after[0])


def _compare_version(name: str, old: Version, new: Version) -> Iterator[CompatibilityFinding]:
    for rule, path, fact in _changes(old, new):
        yield found(rule, f"spec.versions[{name}].{path}", fact, version=name)
    yield from compare_schemas(_schema(old), _schema(new), version=name, least=FindingSeverity.SAFE)


def _schema(version: Version) -> Schema:
    """Return the schema of a version; if there is none, a schema that allows everything."""
    schema: Schema | None = _at(version, ("schema", "openAPIV3Schema"))
    return _ANYTHING if schema is None else schema


_Change = tuple[str, str, str]


def _changes(old: Version, new: Version) -> Iterator[_Change]:
    """Yield the rule, the path and the fact of each change of a version.

    Changes of the schema are left out.
    """
    if bool(old.get("served")) is not bool(new.get("served")):
        served = bool(new.get("served"))
        rule = "version-served" if served else "version-unserved"
        yield rule, "served", f"it is {'now' if served else 'no longer'} served"
    if new.get("deprecated") and not old.get("deprecated"):
        yield "version-deprecated", "deprecated", "it is now deprecated"
    yield from _subresource_changes(old.get("subresources") or {}, new.get("subresources") or {})
    yield from _selectable_changes(old, new)
    columns = "additionalPrinterColumns"
    if not same(old.get(columns) or [], new.get(columns) or []):
        yield "columns-changed", columns, "the columns changed"


def _subresource_changes(old: Mapping[str, Any], new: Mapping[str, Any]) -> Iterator[_Change]:
    for name in ("status", "scale"):
        before, after = old.get(name), new.get(name)
        if before is not None and after is None:
            yield f"{name}-removed", f"subresources.{name}", f"{name} was removed"
        elif before is None and after is not None:
            yield f"{name}-added", f"subresources.{name}", f"{name} was added"
    scale, other = old.get("scale"), new.get("scale")
    if scale is not None and other is not None and not same(scale, other):
        fields = sorted(each for each in {*scale, *other} if scale.get(each) != other.get(each))
        yield "scale-changed", "subresources.scale", f"{', '.join(fields)} changed"


def _selectable_changes(old: Version, new: Version) -> Iterator[_Change]:
    before, after = (
        [field["jsonPath"] for field in each.get("selectableFields") or ()] for each in (old, new)
    )
    for path in (each for each in before if each not in after):
        yield "selectable-removed", "selectableFields", f"{path} was removed"
    for path in (each for each in after if each not in before):
        yield "selectable-added", "selectableFields", f"{path} was added"
