"""The schemas of kinds as components of an OpenAPI document.

Each named type becomes a component of its own, to which other schemas refer. So a type can contain
itself.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass

from polyver.kube.objects.kinds import ResourceKind
from polyver.kube.objects.type_shapes import Shape
from polyver.kube.server._openapi_types import (
    FIELDS,
    KINDS,
    META,
    REF,
    STANDARD,
    Schema,
    machinery,
    referring,
)

__all__ = ["Components", "CustomSchema", "component_name"]


@dataclass(frozen=True, slots=True)
class CustomSchema:
    """The schema and selectable fields of one version of a CustomResourceDefinition."""

    schema: Mapping[str, object]
    """The value of the field `openAPIV3Schema` in the CRD."""
    selectable: tuple[str, ...] = ()
    """The fields that a field selector may name, as paths such as `.spec.color`."""


_PACKAGES = {
    "": "io.k8s.api.core",
    "apiextensions.k8s.io": "io.k8s.apiextensions-apiserver.pkg.apis.apiextensions",
    "apiregistration.k8s.io": "io.k8s.kube-aggregator.pkg.apis.apiregistration",
}
_CORE = "io.k8s.api.core.v1."
# Types that several Go packages use. Every other type belongs to the Go package that uses it.
_SHARED_META = """
    Condition FieldSelectorRequirement GroupResource LabelSelector LabelSelectorRequirement
    ListMeta ObjectMeta
"""
_SHARED_CORE = """
    EventSource NodeSelector ObjectReference PersistentVolumeClaim PersistentVolumeSpec
    PodTemplateSpec Toleration TopologySelectorTerm TypedLocalObjectReference
"""
_SHARED_SCHEDULING = """
    WorkloadPodGroupDisruptionMode WorkloadPodGroupResourceClaim
    WorkloadPodGroupSchedulingConstraints WorkloadPodGroupSchedulingPolicy
"""
_ELSEWHERE = {
    **dict.fromkeys(_SHARED_META.split(), META),
    **dict.fromkeys(_SHARED_CORE.split(), _CORE),
    **dict.fromkeys(_SHARED_SCHEDULING.split(), "io.k8s.api.scheduling.v1alpha3."),
}
_BY_FORMAT = {
    "quantity": machinery("api.resource.Quantity"),
    "int-or-string": machinery("util.intstr.IntOrString"),
    "date-time": f"{META}Time",
    "microtime": f"{META}MicroTime",
    "raw": machinery("runtime.RawExtension"),
    "fields": f"{META}FieldsV1",
}
_PLAIN_FORMATS = {"int32", "int64", "double", "byte"}


def component_name(kind: ResourceKind, name: str = "") -> str:
    """Return the component name of a kind, or of the type `name` in the kind's group version."""
    return f"{_package(kind.group, kind.version, custom=kind.custom)}{name or kind.kind}"


def _package(group: str, version: str, *, custom: bool) -> str:
    if custom:
        return f"{'.'.join(reversed(group.split('.')))}.{version}."
    package = _PACKAGES.get(group) or f"io.k8s.api.{group.partition('.')[0]}"
    return f"{package}.{version}."


def _mark(kind: str, *versions: tuple[str, str]) -> Schema:
    """Build the extension `x-kubernetes-group-version-kind` for the schema of a kind.

    `versions` has each group and version in which the kind exists.
    """
    marks = [{"group": group, "kind": kind, "version": version} for group, version in versions]
    return {"x-kubernetes-group-version-kind": marks}


class Components:
    """The schemas of one OpenAPI document, by component name."""

    def __init__(self) -> None:
        self.schemas: dict[str, Schema] = {}

    def add(self, kind: ResourceKind, schema: Shape | CustomSchema | None) -> None:
        """Add the schema of a kind, and the schema of its list kind if it can be listed."""
        name = component_name(kind)
        extra: Schema = {}
        if isinstance(schema, CustomSchema):
            if schema.selectable:
                fields = [{"fieldPath": path.removeprefix(".")} for path in schema.selectable]
                extra = {"x-kubernetes-selectable-fields": fields}
            made = self._custom_schema(schema.schema)
            properties = made.get("properties")
            own = properties if isinstance(properties, dict) else {}
            made |= {"type": "object", "properties": {**own, **self._typed()}}
        else:
            made = self._built_in(kind.kind, schema or Shape(type="object"), name)
        mark = _mark(kind.kind, (kind.group, kind.version))
        self.schemas[name] = {**made, **mark, **extra}
        if "list" in kind.verbs:
            self.schemas[component_name(kind, kind.list_kind)] = {**self._list(kind), **extra}

    def add_part(self, group: str, version: str, kind: str, shape: Shape | None) -> str:
        """Add the schema of a subresource whose kind is not the kind of the object, such as Scale.

        Return the component name.
        """
        name = f"{_package(group, version, custom=False)}{kind}"
        if name not in self.schemas:
            made = self._built_in(kind, shape or Shape(type="object"), name)
            self.schemas[name] = {**made, **_mark(kind, (group, version))}
        return name

    def add_requests(self, kinds: Collection[ResourceKind]) -> None:
        """Add the schemas of the bodies of patch and delete requests, if a kind has these verbs.

        Patch requests use Patch. Delete requests use DeleteOptions and Status.
        """
        verbs = {verb for kind in kinds for verb in kind.verbs}
        if "patch" in verbs:
            self._use(f"{META}Patch")
        if verbs & {"delete", "deletecollection"}:
            versions = dict.fromkeys([("", "v1"), *((each.group, each.version) for each in kinds)])
            self._use_marked("Status", ("", "v1"))
            self._use_marked("DeleteOptions", *versions)

    def sorted(self) -> dict[str, Schema]:
        return dict(sorted(self.schemas.items()))

    def _use(self, name: str) -> Schema:
        if name not in self.schemas:
            self.schemas[name] = STANDARD[name]
            for reference in _references(STANDARD[name]):
                self._use(reference)
        return referring(name)

    def _use_marked(self, kind: str, *versions: tuple[str, str]) -> None:
        name = f"{META}{kind}"
        self._use(name)
        self.schemas[name] = {**self.schemas[name], **_mark(kind, *versions)}

    def _built_in(self, kind: str, shape: Shape, name: str) -> Schema:
        made = self._struct(shape, name.rpartition(".")[0] + ".")
        properties = made.get("properties")
        described = {
            field: _described(schema, FIELDS.get(field, ""))
            for field, schema in (properties.items() if isinstance(properties, dict) else ())
        }
        words = {"description": KINDS[kind]} if kind in KINDS else {}
        return {**words, **made, "properties": {**self._typed(), **described}}

    def _typed(self) -> Schema:
        metadata = _described(self._use(f"{META}ObjectMeta"), FIELDS["metadata"])
        return {
            "apiVersion": {"description": FIELDS["apiVersion"], "type": "string"},
            "kind": {"description": FIELDS["kind"], "type": "string"},
            "metadata": metadata,
        }

    def _list(self, kind: ResourceKind) -> Schema:
        metadata = _described(self._use(f"{META}ListMeta"), FIELDS["metadata"])
        items = {
            "description": FIELDS["items"],
            "type": "array",
            "items": referring(component_name(kind)),
        }
        return {
            "description": f"Objects of the kind {kind.kind}.",
            "type": "object",
            "required": ["items"],
            "properties": {**self._typed(), "items": items, "metadata": metadata},
            **_mark(kind.list_kind, (kind.group, kind.version)),
        }

    def _struct(self, shape: Shape, package: str) -> Schema:
        fields = {
            name: self._field(name, field, shape, package) for name, field in shape.fields.items()
        }
        return {
            "type": "object",
            **({"required": list(shape.required)} if shape.required else {}),
            **({"properties": fields} if fields else {}),
            **({"x-kubernetes-map-type": "atomic"} if shape.atomic else {}),
        }

    def _field(self, name: str, shape: Shape, owner: Shape, package: str) -> Schema:
        made = self._schema_of(shape, package)
        strategy = ["merge"] if shape.merges else []
        if name in owner.retained:
            strategy.append("retainKeys")
        if not strategy:
            return made
        key = {"x-kubernetes-patch-merge-key": shape.merge_key} if shape.merge_key else {}
        neighbours = {**key, "x-kubernetes-patch-strategy": ",".join(strategy)}
        return {**({"allOf": [made]} if "$ref" in made else made), **neighbours}

    def _schema_of(self, shape: Shape, package: str) -> Schema:
        form = "int-or-string" if shape.int_or_string else shape.format
        if form in _BY_FORMAT:
            return self._use(_BY_FORMAT[form])
        if shape.type == "array":
            return self._array(shape, package)
        if shape.type == "object" and shape.values is not None:
            atomic = {"x-kubernetes-map-type": "atomic"} if shape.atomic else {}
            values = self._schema_of(shape.values, package)
            return {"type": "object", "additionalProperties": values, **atomic}
        if shape.type in ("object", "any"):
            return self._named(shape, package)
        shown = {"format": form} if form in _PLAIN_FORMATS else {}
        return {"type": shape.type, **shown}

    def _array(self, shape: Shape, package: str) -> Schema:
        keys = {"x-kubernetes-list-map-keys": list(shape.keys)} if shape.keys else {}
        items = self._schema_of(shape.items, package) if shape.items is not None else {}
        return {
            "type": "array",
            "items": items,
            **keys,
            "x-kubernetes-list-type": shape.list_type,
        }

    def _named(self, shape: Shape, package: str) -> Schema:
        short = shape.name.rpartition(".")[2]
        if not short[:1].isupper():
            return self._struct(shape, package) if shape.type == "object" else {}
        package = _ELSEWHERE.get(short, package)
        name = f"{package}{short}"
        if name in STANDARD:
            return self._use(name)
        if package == _CORE and short in KINDS:
            return referring(self.add_part("", "v1", short, shape))
        if name not in self.schemas:
            self.schemas[name] = {}  # set first, because a type may contain itself
            self.schemas[name] = self._struct(shape, package) if shape.type == "object" else {}
        return referring(name)

    def _custom_schema(self, schema: Mapping[str, object]) -> Schema:
        """Convert the schema of a custom kind, and add fields such as apiVersion and metadata."""
        made: Schema = dict(schema)
        if isinstance(fields := schema.get("properties"), Mapping):
            made["properties"] = {
                name: self._custom_schema(inner) if isinstance(inner, Mapping) else inner
                for name, inner in fields.items()
            }
        for key in ("additionalProperties", "items"):
            if isinstance(inner := schema.get(key), Mapping):
                made[key] = self._custom_schema(inner)
        if schema.get("x-kubernetes-int-or-string"):
            made.setdefault("anyOf", [{"type": "integer"}, {"type": "string"}])
        if schema.get("x-kubernetes-embedded-resource"):
            self._embed(made)
        return made

    def _embed(self, made: Schema) -> None:
        properties = made.get("properties")
        own = properties if isinstance(properties, dict) else {}
        required = made.get("required")
        needed = required if isinstance(required, list) else []
        made["properties"] = {**own, **self._typed()}
        made["required"] = list(dict.fromkeys([*needed, "kind", "apiVersion"]))


def _described(schema: Schema, description: str) -> Schema:
    if not description:
        return schema
    if "$ref" in schema:
        return {"description": description, "allOf": [schema]}
    return {"description": description, **schema}


def _references(schema: object) -> Iterable[str]:
    if isinstance(schema, dict):
        for key, value in schema.items():
            if key == "$ref":
                yield str(value).removeprefix(REF)
            else:
                yield from _references(value)
    elif isinstance(schema, list):
        for item in schema:
            yield from _references(item)
