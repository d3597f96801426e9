"""Validation of composite resource definitions, and the CRDs that they define."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Final, Literal

from polyver.apis.conversion_kind import definition_of, place_of
from polyver.apis.crds import crd_of
from polyver.capability import Refusal
from polyver.compositions._function_references import mapping, named
from polyver.compositions.decisions._injected_fields import (
    COLUMNS,
    INSIDE,
    LEGACY_COLUMNS,
    RESERVED,
    injected,
)
from polyver.compositions.kinds import COMPOSITION_GROUP, COMPOSITION_STORED, DEFINITIONS
from polyver.core import PolyverError, listed
from polyver.core.plain import ReadOnlyObject
from polyver.kube.objects.builtin import shape_of
from polyver.kube.objects.schema import check_schema
from polyver.kube.objects.typed_bodies import Undecodable, decode_typed
from polyver.kube.objects.webhooks import Webhook
from polyver.languages.values.names import dns_1035_label_problems

__all__ = [
    "CATEGORY",
    "CompositeKind",
    "UpdatePolicy",
    "check_definition",
    "definition_crd",
    "presumed_definition",
    "read_definition",
    "unheeded_fields",
]

UpdatePolicy = Literal["Automatic", "Manual"]
CATEGORY: Final = "composite"
"""Category of all kinds of composite resources, by which they are found."""
_CRD = "apiextensions.k8s.io", "v1", "CustomResourceDefinition"
_LEGACY = "LegacyCluster"
_WEBHOOK = "spec.conversion.webhook"


@dataclass(frozen=True, slots=True)
class CompositeKind:
    """The fields of a definition that composing needs."""

    name: str
    group: str
    kind: str
    version: str
    """Referenceable version, in which the resources are composed."""
    legacy: bool = True
    """True if the fields for compositions are directly in `spec`."""
    default: str = ""
    """Composition of resources that select none."""
    enforced: str = ""
    """Composition of all resources."""
    update_policy: UpdatePolicy = "Automatic"
    connection_keys: tuple[str, ...] = ()
    """Names of the connection details that are published; all if empty."""

    @property
    def api_version(self) -> str:
        return f"{self.group}/{self.version}"


def read_definition(obj: ReadOnlyObject) -> CompositeKind:
    """Parse a definition that `check_definition` accepts."""
    spec: ReadOnlyObject = obj["spec"]
    return CompositeKind(
        obj["metadata"]["name"],
        spec["group"],
        spec["names"]["kind"],
        next(each["name"] for each in spec["versions"] if each["referenceable"]),
        _is_legacy(spec),
        named(spec.get("defaultCompositionRef")),
        named(spec.get("enforcedCompositionRef")),
        spec.get("defaultCompositionUpdatePolicy") or "Automatic",
        tuple(spec.get("connectionSecretKeys") or ()),
    )


def presumed_definition(composite: ReadOnlyObject) -> CompositeKind:
    """Derive a kind from one of its objects, because its definition is unknown."""
    group, _, version = str(composite["apiVersion"]).rpartition("/")
    spec, metadata = mapping(composite.get("spec")), mapping(composite.get("metadata"))
    legacy = INSIDE not in spec and not metadata.get("namespace")
    kind = composite["kind"]
    return CompositeKind(f"the kind {kind}", group, kind, version, legacy=legacy)


def _is_legacy(spec: ReadOnlyObject) -> bool:
    return (spec.get("scope") or _LEGACY) == _LEGACY


def check_definition(obj: ReadOnlyObject) -> list[Refusal]:
    """Return all problems of a definition, each with its path."""
    spec: ReadOnlyObject = obj["spec"]
    found = [*_check_names(obj), *_check_versions(spec["versions"]), *_check_conversion(spec)]
    for number, version in enumerate(spec["versions"]):
        found += _check_schema(spec, number, version)
    return found


def _check_names(obj: ReadOnlyObject) -> Iterator[Refusal]:
    spec: ReadOnlyObject = obj["spec"]
    name, wanted = obj["metadata"].get("name", ""), f"{spec['names']['plural']}.{spec['group']}"
    if name != wanted:
        fact = f'its name is "{name}", not "{wanted}"'
        hint = "the name of a definition is the plural and the group of its kind"
        yield Refusal("InvalidName", fact, at="metadata.name", hint=hint)


def _check_versions(versions: Sequence[ReadOnlyObject]) -> Iterator[Refusal]:
    names = [each["name"] for each in versions]
    for number, name in enumerate(names):
        at = f"spec.versions[{number}].name"
        if problems := dns_1035_label_problems(name):
            yield Refusal("InvalidVersion", f'"{name}" is not a version: {problems[0]}', at=at)
        if name in names[:number]:
            yield Refusal("InvalidVersion", f"{name} is listed twice", at=at)
    chosen = [each["name"] for each in versions if each["referenceable"]]
    if len(chosen) != 1:
        fact = f"{listed(chosen)} are referenceable" if chosen else "no version is referenceable"
        hint = "compositions compose exactly one version"
        yield Refusal("InvalidVersion", fact, at="spec.versions", hint=hint)
    for number, each in enumerate(versions):
        if each["referenceable"] and not each["served"]:
            fact = f"{each['name']} is referenceable but not served"
            yield Refusal("InvalidVersion", fact, at=f"spec.versions[{number}].served")


def _check_conversion(spec: ReadOnlyObject) -> Iterator[Refusal]:
    conversion = mapping(spec.get("conversion"))
    if conversion.get("strategy") != "Webhook":
        return
    client = mapping(mapping(conversion.get("webhook")).get("clientConfig"))
    if not client.get("url") and not client.get("service"):
        fact = "the webhook has neither a service nor a url"
        yield Refusal("InvalidConversion", fact, at=_WEBHOOK)


def _check_schema(spec: ReadOnlyObject, number: int, version: ReadOnlyObject) -> Iterator[Refusal]:
    at = f"spec.versions[{number}].schema.openAPIV3Schema"
    try:
        given = _given_schema(version)
    except Undecodable as error:
        yield Refusal("InvalidSchema", error.fact, at=at)
        return
    taken = RESERVED in _properties(given, "status")
    if taken:
        fact = f"status.{RESERVED} is reserved for the function revisions of a pipeline"
        place = f"{at}.properties.status.properties.{RESERVED}"
        yield Refusal("InvalidSchema", fact, at=place, hint="give the field another name")
    for cause in check_schema(_schema(spec, given), at, status=True):
        yield Refusal("InvalidSchema", cause.message, at=cause.field)


def _given_schema(version: ReadOnlyObject) -> dict[str, Any]:
    """Return the user's schema, decoded like the API server does; empty if there is none."""
    schema = mapping(version.get("schema")).get("openAPIV3Schema") or {}
    versions = [{"name": version["name"], "schema": {"openAPIV3Schema": schema}}]
    about = {"apiVersion": f"{_CRD[0]}/{_CRD[1]}", "kind": _CRD[2], "spec": {"versions": versions}}
    [read] = decode_typed(about, shape_of(*_CRD)).value["spec"]["versions"]
    found: dict[str, Any] = mapping(read.get("schema")).get("openAPIV3Schema") or {}
    return found


def _properties(schema: ReadOnlyObject, field: str) -> ReadOnlyObject:
    return mapping(mapping(mapping(schema.get("properties")).get(field)).get("properties"))


def _schema(spec: ReadOnlyObject, given: ReadOnlyObject) -> dict[str, Any]:
    policy = spec.get("defaultCompositionUpdatePolicy") or "Automatic"
    return injected(given, legacy=_is_legacy(spec), update_policy=policy)


def unheeded_fields(obj: ReadOnlyObject) -> list[str]:
    """Return warnings about fields without effect."""
    spec: ReadOnlyObject = obj["spec"]
    found = []
    if spec.get("claimNames"):
        found.append(
            "spec.claimNames has no effect: claims are not supported; use composite resources"
        )
    if spec.get("defaultCompositeDeletePolicy"):
        found.append("spec.defaultCompositeDeletePolicy has no effect: claims are not supported")
    for number, version in enumerate(spec["versions"]):
        at = f"spec.versions[{number}].schema.openAPIV3Schema"
        given, whole = _given_schema(version), _schema(spec, _given_schema(version))
        for field in ("spec", "status"):
            before, after = _properties(given, field), _properties(whole, field)
            replaced = sorted(name for name in before if before[name] != after[name])
            found += [
                f"{at}.properties.{field}.properties.{name} has no effect: "
                "all composite resources have this field"
                for name in replaced
            ]
    return found


def definition_crd(obj: ReadOnlyObject, webhook: Webhook | None = None) -> dict[str, Any]:
    """Return the CustomResourceDefinition that a definition defines.

    `webhook` converts if the definition names no strategy. Raise the first Refusal if it is
    invalid.
    """
    for refusal in check_definition(obj):
        raise refusal
    try:
        definition = definition_of(_written(obj))
    except PolyverError as error:
        raise Refusal("InvalidDefinition", error.fact, at=place_of(error)) from None
    said = mapping(obj["spec"].get("conversion")).get("strategy")
    made = crd_of(definition, None if said else webhook)
    made["metadata"]["ownerReferences"] = [_owner(obj)]
    return made


def _written(obj: ReadOnlyObject) -> dict[str, Any]:
    spec: ReadOnlyObject = obj["spec"]
    names = dict(spec["names"])
    about = mapping(spec.get("metadata"))
    categories = [each for each in names.get("categories") or () if each != CATEGORY]
    metadata = {
        "name": obj["metadata"]["name"],
        "labels": {**(obj["metadata"].get("labels") or {}), **(about.get("labels") or {})},
        "annotations": dict(about.get("annotations") or {}),
    }
    made: dict[str, Any] = {
        "group": spec["group"],
        "names": {**names, "categories": [*categories, CATEGORY]},
        "scope": "Namespaced" if spec.get("scope") == "Namespaced" else "Cluster",
        "versions": [_version(spec, each) for each in spec["versions"]],
    }
    if spec.get("conversion"):
        made["conversion"] = spec["conversion"]
    group, version, kind = _CRD
    return {"apiVersion": f"{group}/{version}", "kind": kind, "metadata": metadata, "spec": made}


def _version(spec: ReadOnlyObject, version: ReadOnlyObject) -> dict[str, Any]:
    kept = {
        name: version[name]
        for name in ("name", "served", "deprecated", "deprecationWarning")
        if version.get(name) is not None
    }
    columns = LEGACY_COLUMNS if _is_legacy(spec) else COLUMNS
    return {
        **kept,
        "storage": version["referenceable"],
        "schema": {"openAPIV3Schema": _schema(spec, _given_schema(version))},
        "subresources": {"status": {}},
        "additionalPrinterColumns": [*(version.get("additionalPrinterColumns") or ()), *columns],
    }


def _owner(obj: ReadOnlyObject) -> dict[str, Any]:
    return {
        "apiVersion": f"{COMPOSITION_GROUP}/{COMPOSITION_STORED}",
        "kind": DEFINITIONS.kind,
        "name": obj["metadata"]["name"],
        "uid": obj["metadata"].get("uid", ""),
        "controller": True,
        "blockOwnerDeletion": True,
    }
