"""Validation of CompositeResourceDefinitions, and the CRDs of the kinds that they define.

In this module, a definition is a CompositeResourceDefinition. polyver extends the schema in a
definition by the fields that all composite resources have.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, Literal

from polyver.apis.conversion_kind import definition_of, place_of
from polyver.apis.crds import crd_of
from polyver.capability import Refusal
from polyver.compositions._function_references import mapping, named
from polyver.compositions.kinds import COMPOSITION_GROUP, COMPOSITION_STORED, DEFINITIONS
from polyver.compositions.names import LONGEST_LABEL
from polyver.core import PolyverError, listed
from polyver.core.plain import ReadOnlyObject
from polyver.kube.objects.builtin import shape_of
from polyver.kube.objects.converted_metadata import fresh
from polyver.kube.objects.schema import check_schema
from polyver.kube.objects.typed_bodies import Undecodable, decode_typed
from polyver.kube.objects.webhooks import Webhook
from polyver.languages.values.names import dns_1035_label_problems

__all__ = [
    "CATEGORY",
    "INSIDE",
    "CompositeKind",
    "check_definition",
    "definition_crd",
    "presumed_definition",
    "read_definition",
    "unheeded_fields",
]

INSIDE: Final = "crossplane"
"""Field of `spec` that contains the fields which select a Composition. With the scope
LegacyCluster, these fields are directly in `spec`.
"""
RESERVED: Final = "pipeline"
"""Field of `status` in which polyver records the function revisions of a pipeline. A definition
that has a field of this name is refused. Crossplane does not add this field, and accepts the
definition.
"""
_TEXT: Schema = {"type": "string"}
_TIME: Schema = {"type": "string", "format": "date-time"}
CATEGORY: Final = "composite"
"""Category of all kinds of composite resources, by which polyver finds them in discovery."""
_CRD = "apiextensions.k8s.io", "v1", "CustomResourceDefinition"
_LEGACY = "LegacyCluster"
_WEBHOOK = "spec.conversion.webhook"


Schema = Mapping[str, Any]


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
            previous=_object("revision", revision=_TEXT, digest=_TEXT),
        ),
        "step",
    ),
}


def injected(schema: Schema, *, legacy: bool, update_policy: str) -> dict[str, Any]:
    """Build the schema of a version, with the fields that all composite resources have.

    If the schema already has fields with the same names, these are replaced.
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


UpdatePolicy = Literal["Automatic", "Manual"]


@dataclass(frozen=True, slots=True)
class CompositeKind:
    """A kind of composite resources, with the fields of its definition that composing needs."""

    name: str
    group: str
    kind: str
    version: str
    """The referenceable version. Composite resources are read and composed in this version."""
    legacy: bool = True
    """True if the fields which select a Composition are directly in `spec`."""
    default: str = ""
    """Composition of composite resources that select none."""
    enforced: str = ""
    """The Composition that all composite resources must use. Empty if no Composition is enforced.
    """
    update_policy: UpdatePolicy = "Automatic"
    connection_keys: tuple[str, ...] = ()
    """Names of the connection details to publish. If there are none, all details are published."""

    @property
    def api_version(self) -> str:
        return f"{self.group}/{self.version}"


def read_definition(obj: ReadOnlyObject) -> CompositeKind:
    """Parse a CompositeResourceDefinition that `check_definition` accepts."""
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
    """Derive the kind of a composite resource from the resource itself, without its definition."""
    group, _, version = str(composite["apiVersion"]).rpartition("/")
    spec, metadata = mapping(composite.get("spec")), mapping(composite.get("metadata"))
    legacy = INSIDE not in spec and not metadata.get("namespace")
    kind = composite["kind"]
    return CompositeKind(f"the kind {kind}", group, kind, version, legacy=legacy)


def _is_legacy(spec: ReadOnlyObject) -> bool:
    return (spec.get("scope") or _LEGACY) == _LEGACY


def check_definition(obj: ReadOnlyObject) -> list[Refusal]:
    """Return all problems of a CompositeResourceDefinition. Each has the path of the field."""
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
    """Return the schema of a version, decoded in the same way as by the API server.

    Return {} if there is no schema.
    """
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
    """Return warnings about fields of a CompositeResourceDefinition that have no effect."""
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
    """Build the CustomResourceDefinition of the kind that a definition defines.

    If the definition sets no conversion strategy, `webhook` is used to convert. If the definition
    is invalid, its first Refusal is raised.
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
