"""Custom kinds: the resources that are served for a CustomResourceDefinition (CRD)."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from functools import lru_cache
from typing import Any, Protocol

from polyver.core import KubeVersion
from polyver.core.plain import Object
from polyver.kube.objects.builtin import metadata_shape
from polyver.kube.objects.codec import encode_sorted
from polyver.kube.objects.kinds import CUSTOM_VERBS, ResourceKind, Subresource
from polyver.kube.objects.merge_order import go_text, go_type
from polyver.kube.objects.schema import Schema, compile_schema
from polyver.kube.objects.status import Cause, forbidden, invalid_field
from polyver.kube.objects.tables import custom_printer
from polyver.kube.objects.type_shapes import Shape
from polyver.kube.server.conversion import Cache, ConversionStrategy, conversion_of, in_turn
from polyver.kube.server.conversion.converters import ObjectConverter
from polyver.kube.server.discovery import storage_version_hash
from polyver.kube.server.resource import ServedResource
from polyver.kube.server.rules import KindRules, Names, ObjectView, ScaleView, dotted
from polyver.kube.store import StoreEntry
from polyver.languages.jsonpath import InvalidJsonPath, parse_path

__all__ = ["CustomRules", "compiled", "custom_resources", "stored_resource"]

_LARGE_SCHEMA = 128 * 1024
_SCALE = Subresource("scale", group="autoscaling", version="v1", kind="Scale")


class CustomRules(KindRules):
    """Rules for writes of a custom kind: the rules of all custom kinds, and those of its schema."""

    unconditional = False
    counts = True

    def __init__(
        self, kind: ResourceKind, schema: Schema, parts: Mapping[str, Any], *, terminating: bool
    ) -> None:
        scale = parts.get("scale") or {}
        self._kind = kind
        self._schema = schema
        self._replicas = names_of(scale.get("specReplicasPath", ""))
        self._status_replicas = names_of(scale.get("statusReplicasPath", ""))
        self.terminating = terminating
        self.has_status = "status" in parts
        self.costly = schema.costly

    def default(self, obj: Object) -> None:
        self._schema.default(obj)

    def settle(self, obj: Object, *, applied: bool) -> None:
        # A null that the schema does not allow passes validation where the schema states no type.
        # kube-apiserver drops this null when it reads the object. Only a server-side apply can
        # contain such a null.
        if applied:
            self._schema.default(obj)

    def prepare_create(self, obj: Object) -> None:
        if self.terminating:
            text = "create not allowed while custom resource definition is terminating"
            raise forbidden(self._kind, obj["metadata"].get("name", ""), text)
        if self.has_status:
            # The status of the request was dropped; the schema may have defaults for the status.
            self._schema.default(obj, drop_nulls=False)

    def check_create(self, obj: Object) -> list[Cause]:
        return [*self._schema.validate(obj), *self._count_problems(obj, self._replicas)]

    def check_update(self, obj: Object, old: Object) -> list[Cause]:
        return [*self._schema.validate_update(obj, old), *self._count_problems(obj, self._replicas)]

    def check_status(self, obj: Object, old: Object) -> list[Cause]:
        problems = self._count_problems(obj, self._status_replicas)
        return [*self._schema.validate_status(obj, old), *problems]

    def tolerated(self, obj: Object, old: Object) -> Iterable[str]:
        return self._schema.tolerated(obj, old)

    def _count_problems(self, obj: Object, path: Names) -> Iterable[Cause]:
        """Yield those problems of the replica count at `path` that its schema does not find."""
        if not path:
            return
        found, expected = _reached(obj, path)
        if found is None:
            return
        field = dotted(path)
        if expected != "int64" or isinstance(found, bool) or not isinstance(found, int):
            text = f"{go_text(found)} is of the type {go_type(found)}, expected {expected}"
            yield invalid_field(field, 0, f"{field} accessor error: {text}")
        elif found < 0:
            yield invalid_field(field, found, "should be a non-negative integer")
        elif found > _MOST_REPLICAS:
            text = f"should be less than or equal to {_MOST_REPLICAS}"
            yield invalid_field(field, found, text)

    def warnings(self, obj: Object, old: Object | None) -> Iterable[str]:
        before = (old or {"metadata": {}})["metadata"].get("finalizers") or ()
        known = {*before, *_KNOWN_FINALIZERS}
        for finalizer in obj["metadata"].get("finalizers") or ():
            if "/" not in finalizer and finalizer not in known:
                yield (
                    f'metadata.finalizers: "{finalizer}": prefer a domain-qualified finalizer name '
                    "to avoid accidental conflicts with other finalizer writers"
                )


def _reached(obj: object, path: Names) -> tuple[Any, str]:
    """Follow a field path; return the value at its end, and the Go type that this value must have.

    If a value on the path is not an object, return it with the Go type of an object. If a field is
    missing, return None.
    """
    for name in path:
        if not isinstance(obj, dict):
            return obj, "map[string]interface{}"
        if name not in obj:
            return None, ""
        obj = obj[name]
    return obj, "int64"


_KNOWN_FINALIZERS = ("orphan", "foregroundDeletion")
_MOST_REPLICAS = 2**31 - 1


def custom_resources(
    definition: Mapping[str, Any],
    entry: StoreEntry,
    *,
    settled: int = 0,
    served: ObjectConverter | None = None,
) -> list[ServedResource]:
    """Build the resources of a CRD: one for each served version.

    Stored objects with the revision `settled` or a later one fit the schema; 0 stands for the
    revision of the CRD. `served` is the converter in this process, if there is one.
    """
    family = _family(definition, entry, settled or entry.revision, served)
    versions = definition["spec"]["versions"]
    return [_resource(family, version) for version in versions if version["served"]]


def stored_resource(
    definition: Mapping[str, Any], entry: StoreEntry, served: ObjectConverter | None = None
) -> ServedResource:
    """Build the resource of a CRD in its storage version, even if this version is not served."""
    family = _family(definition, entry, entry.revision, served)
    return _resource(family, _stored_version(definition))


def _stored_version(definition: Mapping[str, Any]) -> Mapping[str, Any]:
    stored: Mapping[str, Any]
    stored = next(each for each in definition["spec"]["versions"] if each["storage"])
    return stored


def _family(
    definition: Mapping[str, Any], entry: StoreEntry, settled: int, served: ObjectConverter | None
) -> _Family:
    spec, stored = definition["spec"], _stored_version(definition)
    schemas = {
        f"{spec['group']}/{version['name']}": compiled(schema_of(version))
        for version in spec["versions"]
    }
    shapes = {version: _whole(schema.shape) for version, schema in schemas.items()}
    hashed = storage_version_hash(spec["group"], stored["name"], spec["names"]["kind"])
    kind = _kind(definition, stored, hashed)
    converter = conversion_of(spec.get("conversion"), kind, served)
    cache = Cache(converter)
    return _Family(definition, entry, settled, schemas, shapes, kind, converter, cache)


@dataclass(frozen=True, slots=True)
class _Family:
    """The data that all versions of a custom kind share, such as the schemas and the conversion."""

    definition: Mapping[str, Any]
    entry: StoreEntry
    settled: int
    schemas: Mapping[str, Schema]
    shapes: Mapping[str, Shape]
    stored: ResourceKind
    converter: ConversionStrategy
    cache: Cache


def compiled(schema: Mapping[str, Any]) -> Schema:
    """Compile a schema. Versions and CRDs with the same schema share the result."""
    written = encode_sorted(schema)
    given = _Given(hashlib.sha256(written).digest(), schema)
    return _compiled(given) if len(written) <= _LARGE_SCHEMA else _compiled_large(given)


@dataclass(frozen=True, slots=True)
class _Given:
    """A schema as a key of the caches below; only its digest is hashed and compared."""

    digest: bytes
    schema: Mapping[str, Any] = field(compare=False)


@lru_cache(maxsize=16)
def _compiled_large(given: _Given) -> Schema:
    """Compile a large schema; the cache is small, because the result takes much memory."""
    return compile_schema(given.schema)


@lru_cache(maxsize=256)
def _compiled(given: _Given) -> Schema:
    return compile_schema(given.schema)


def schema_of(version: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return the schema of a version; if it has none, a schema that keeps all fields."""
    found = (version.get("schema") or {}).get("openAPIV3Schema")
    return found or {"type": "object", "x-kubernetes-preserve-unknown-fields": True}


def _whole(shape: Shape) -> Shape:
    """Add the fields apiVersion, kind and metadata to the shape of an object."""
    text = Shape(type="string")
    fields = {**shape.fields, "apiVersion": text, "kind": text, "metadata": metadata_shape()}
    return replace(shape, fields=fields)


def _resource(family: _Family, version: Mapping[str, Any]) -> ServedResource:
    definition = family.definition
    kind = _kind(definition, version, family.stored.storage_hash)
    schema = family.schemas[kind.api_version]
    parts = version.get("subresources") or {}
    rules = CustomRules(
        kind,
        schema,
        parts,
        terminating="deletionTimestamp" in definition["metadata"],
    )
    return ServedResource(
        kind=kind,
        rules=rules,
        printer=custom_printer(version.get("additionalPrinterColumns")),
        shape=family.shapes[kind.api_version],
        stored=family.stored,
        selectable=_selectable(version.get("selectableFields") or ()),
        since=family.entry.created,
        settled=family.settled,
        shapes=family.shapes,
        conform=schema.conform,
        schema=(version.get("schema") or {}).get("openAPIV3Schema") or {},
        warning=_deprecation(definition, version),
        parts=_parts(parts, rules),
        conversion=CustomConversion(
            kind, family.stored, family.schemas, family.converter, family.cache
        ),
    )


@dataclass(frozen=True, slots=True)
class CustomConversion:
    """Conversion of objects from and to one version of a custom kind.

    Each version has its own schema.
    """

    kind: ResourceKind
    storage: ResourceKind
    schemas: Mapping[str, Schema]
    converter: ConversionStrategy
    cache: Cache

    async def shown(self, obj: Object, *, kept: bool = False) -> Object:
        """Convert a stored object to this version; with `kept`, the result may come from a cache.

        Before the conversion, the object is pruned and gets defaults by the schema of the version
        in which it is stored.
        """
        if obj["apiVersion"] in self.schemas:
            schema = self.schemas[obj["apiVersion"]]
            await in_turn(obj, lambda: schema.conform(obj))
        return await self._pruned(
            obj, self.kind.api_version, self.cache if kept else self.converter
        )

    async def stored(self, obj: Object) -> Object:
        if self.storage.version == self.kind.version:
            return obj
        stored = await self._pruned(obj, self.storage.api_version, self.converter)
        await in_turn(obj, lambda: self.schemas[self.storage.api_version].default(stored))
        return stored

    async def _pruned(self, obj: Object, api_version: str, converter: Converting) -> Object:
        if obj["apiVersion"] == api_version:
            return obj
        converted = await converter.convert(obj, api_version)
        await in_turn(converted, lambda: self.schemas[api_version].prune(converted))
        return converted

    async def convert(self, obj: Object, api_version: str) -> Object:
        if obj["apiVersion"] == api_version:
            return obj
        return await self.converter.convert(obj, api_version)

    async def close(self) -> None:
        """Close the cache and the converter, which all versions of a kind share."""
        await self.cache.close()
        await self.converter.close()


class Converting(Protocol):
    """Converts objects to another version; implemented by the strategies and by their cache."""

    async def convert(self, obj: Object, api_version: str) -> Object: ...


def _kind(definition: Mapping[str, Any], version: Mapping[str, Any], hashed: str) -> ResourceKind:
    spec, names = definition["spec"], definition["status"]["acceptedNames"]
    parts = version.get("subresources") or {}
    subresources = [Subresource("status")] if "status" in parts else []
    subresources += [_SCALE] if parts.get("scale") else []
    return ResourceKind(
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
    )


def _deprecation(definition: Mapping[str, Any], version: Mapping[str, Any]) -> str:
    """Return the warning for requests in a deprecated version; "" for any other version."""
    if not version.get("deprecated"):
        return ""
    if version.get("deprecationWarning") is not None:
        return str(version["deprecationWarning"])
    spec, name = definition["spec"], version["name"]
    kept = [each["name"] for each in spec["versions"] if _is_recommended(each)]
    better = [each for each in map(KubeVersion.parse, kept) if each > KubeVersion.parse(name)]
    group, kind = spec["group"], spec["names"]["kind"]
    instead = f"; use {group}/{max(better)} {kind}" if better else ""
    return f"{group}/{name} {kind} is deprecated{instead}"


def _is_recommended(version: Mapping[str, Any]) -> bool:
    return version["served"] and not version.get("deprecated")


def _parts(parts: Mapping[str, Any], rules: KindRules) -> Mapping[str, ObjectView]:
    scale = parts.get("scale")
    if not scale:
        return {}
    return {
        "scale": ScaleView(
            rules,
            replicas=names_of(scale["specReplicasPath"]),
            status_replicas=names_of(scale["statusReplicasPath"]),
            selector=names_of(scale.get("labelSelectorPath") or ""),
        )
    }


def names_of(path: str) -> Names:
    """Split a simple JSONPath, such as `.spec.replicas`, into its field names."""
    return tuple(path.lstrip(".").split(".")) if path else ()


def _selectable(fields: Iterable[Mapping[str, str]]) -> Mapping[str, Callable[[Object], str]]:
    return {field["jsonPath"].lstrip("."): _text_of(field["jsonPath"]) for field in fields}


def _text_of(path: str) -> Callable[[Object], str]:
    try:
        parsed = parse_path(path)
    except InvalidJsonPath:
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
