"""Validation of the versions of a CRD as in kube-apiserver, and warnings about their schemas.

Before it validates a CRD, kube-apiserver moves fields that are the same in all versions to the
spec. Therefore an error may name a field that the CRD does not contain, such as `spec.validation`.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from polyver.core.plain import Object, Schema
from polyver.kube.objects.codec import encode_sorted
from polyver.kube.objects.schema import check_columns, check_scale, check_schema, check_selectable
from polyver.kube.objects.schema.printed_schema import declared
from polyver.kube.objects.status import Cause, invalid_field, required
from polyver.languages.values.formats import text_format
from polyver.languages.values.names import dns_1035_label_problems
from polyver.languages.values.strings import json_text, quoted

__all__ = ["DefinitionVersions", "has_defaults", "schemas_of", "warnings_of"]

_MOVED = ("schema", "subresources", "additionalPrinterColumns", "selectableFields")
_MOST_TEXT = 256


@dataclass(frozen=True, slots=True)
class DefinitionVersions:
    """The versions of a CRD, and the fields that are the same in all versions."""

    given: Sequence[Object] | None
    """The versions, without the fields in `shared`; None or empty if the CRD has no versions."""
    shared: Object

    @classmethod
    def of(cls, spec: Mapping[str, Any]) -> DefinitionVersions:
        versions = spec.get("versions")
        if not versions:
            return cls(versions, {})
        shared = {name: versions[0].get(name) for name in _MOVED if _is_shared(name, versions)}
        given = [{k: v for k, v in each.items() if k not in shared} for each in versions]
        return cls(given, {name: value for name, value in shared.items() if value is not None})

    def check_schemas_given(self) -> Iterable[Cause]:
        """Yield a cause for each version without a schema."""
        if _schema(self.shared) is not None:
            return
        for number, version in enumerate(self.given or ()):
            if _schema(version) is None:
                yield required(f"spec.versions[{number}].schema.openAPIV3Schema")

    def check_each(self) -> Iterable[Cause]:
        """Yield the problems of each version, such as an invalid name or an invalid schema."""
        for number, version in enumerate(self.given or ()):
            path, name = f"spec.versions[{number}]", version["name"]
            if problems := dns_1035_label_problems(name):
                yield invalid_field(f"{path}.name", name, ",".join(problems))
            yield from _check_deprecation(version, f"{path}.deprecationWarning")
            schema, status = _schema(version), self._has_status(name)
            if schema is not None:
                yield from check_schema(schema, f"{path}.schema.openAPIV3Schema", status=status)
            yield from _check_parts(version, schema, path)

    def _has_status(self, name: str) -> bool:
        """Report whether the first version with this name has a status subresource."""
        versions = self.given or ()
        if not any("subresources" in each for each in versions):
            return _has_status(self.shared)
        return _has_status(next(each for each in versions if each["name"] == name))

    def check_set(self) -> Iterable[Cause]:
        """Yield the problems of the versions as a whole, such as two storage versions."""
        versions = self.given or ()
        names = [each["name"] for each in versions]
        if len(set(names)) < len(names):
            yield self._refused("must contain unique version names")
        if sum(each["storage"] for each in versions) != 1:
            yield self._refused("must have exactly one version marked as storage version")
        if names[:1] not in ([], [""]) and (problems := dns_1035_label_problems(names[0])):
            yield invalid_field("spec.version", names[0], ",".join(problems))

    def _refused(self, problem: str) -> Cause:
        shown = "null"
        if self.given is not None:
            shown = f"[{','.join(map(_declared, self.given))}]"
        return Cause("spec.versions", f"Invalid value: {shown}: {problem}")

    def check_shared(self) -> Iterable[Cause]:
        """Yield the problems of the fields in `shared`, with paths such as `spec.validation`."""
        schema = _schema(self.shared)
        if schema is not None:
            status = any(map(_has_status, (self.shared, *(self.given or ()))))
            yield from check_schema(schema, "spec.validation.openAPIV3Schema", status=status)
        yield from _check_parts(self.shared, schema, "spec")


def _is_shared(name: str, versions: Sequence[Object]) -> bool:
    first = encode_sorted(versions[0].get(name))
    return all(encode_sorted(each.get(name)) == first for each in versions)


def _schema(version: Mapping[str, Any]) -> Object | None:
    schema: Object | None = (version.get("schema") or {}).get("openAPIV3Schema")
    return schema


def _has_status(version: Mapping[str, Any]) -> bool:
    return (version.get("subresources") or {}).get("status") is not None


def _check_parts(version: Object, schema: Object | None, path: str) -> Iterable[Cause]:
    scale = (version.get("subresources") or {}).get("scale")
    if scale is not None:
        yield from check_scale(scale, f"{path}.subresources.scale")
    columns = version.get("additionalPrinterColumns") or ()
    yield from check_columns(columns, f"{path}.additionalPrinterColumns")
    fields = version.get("selectableFields") or ()
    if fields and schema is not None:
        yield from check_selectable(fields, schema, f"{path}.selectableFields")
    elif fields:
        # It is also an error if only the schema, or only the selectable fields, are the same in all
        # versions.
        text = "validations.schema is included"
        if path != "spec":
            text = "`version.schema.openAPIV3Schema` is not included"
        yield invalid_field(f"{path}.selectableFields", "", f"may only be set when {text}")


def _check_deprecation(version: Object, path: str) -> Iterable[Cause]:
    text: str | None = version.get("deprecationWarning")
    if text is None:
        return
    for problem in _text_problems(text, deprecated=bool(version.get("deprecated"))):
        yield Cause(path, f"Invalid value: {json_text(text)}: {problem}")


def _text_problems(text: str, *, deprecated: bool) -> Iterable[str]:
    if not deprecated:
        yield "can only be set for deprecated versions"
        return
    if len(text.encode()) > _MOST_TEXT:
        yield f"must be <= {_MOST_TEXT} characters long"
    if not text:
        yield "must not be an empty string"
    for number, char in enumerate(text):
        if not char.isprintable():
            at = len(text[:number].encode())
            problem = f"non-printable character found at index {at}"
            yield f"must only contain printable UTF-8 characters; {problem}"
            return


# Format a version as kube-apiserver prints it: with all fields, in the order of its Go structure.

_COLUMN = {"name": "", "type": "", "format": "", "description": "", "priority": 0, "jsonPath": ""}
_SCALE = {"specReplicasPath": "", "statusReplicasPath": "", "labelSelectorPath": None}


def _declared(version: Mapping[str, Any]) -> str:
    schema, parts = _schema(version), version.get("subresources")
    fields = version.get("selectableFields")
    shown = {
        "Name": json_text(version["name"]),
        "Served": json_text(version["served"]),
        "Storage": json_text(version["storage"]),
        "Deprecated": json_text(bool(version.get("deprecated"))),
        "DeprecationWarning": json_text(version.get("deprecationWarning")),
        "Schema": "null",
        "Subresources": "null" if parts is None else _parts_declared(parts),
        "AdditionalPrinterColumns": _list_declared(version.get(_MOVED[2]), _COLUMN),
        "SelectableFields": _list_declared(fields, {"jsonPath": ""}),
    }
    if version.get("schema") is not None:
        shown["Schema"] = _pairs(
            {"OpenAPIV3Schema": "null" if schema is None else declared(schema)}
        )
    return _pairs(shown)


def _parts_declared(parts: Mapping[str, Any]) -> str:
    status, scale = parts.get("status"), parts.get("scale")
    shown = {"Status": "null" if status is None else "{}"}
    return _pairs(shown | {"Scale": "null" if scale is None else _one_declared(scale, _SCALE)})


def _list_declared(items: Sequence[Mapping[str, Any]] | None, fields: Mapping[str, Any]) -> str:
    if items is None:
        return "null"
    return f"[{','.join(_one_declared(item, fields) for item in items)}]"


def _one_declared(item: Mapping[str, Any], fields: Mapping[str, Any]) -> str:
    return _pairs({_named(key): json_text(item.get(key, empty)) for key, empty in fields.items()})


def _named(field: str) -> str:
    return "JSONPath" if field == "jsonPath" else f"{field[:1].upper()}{field[1:]}"


def _pairs(shown: Mapping[str, str]) -> str:
    return "{" + ",".join(f'"{name}":{value}' for name, value in shown.items()) + "}"


def schemas_of(spec: Mapping[str, Any]) -> Iterable[Object]:
    """Yield the schemas of all versions."""
    for version in spec.get("versions") or ():
        schema = _schema(version)
        if schema is not None:
            yield schema


_NUMBERS = {"integer": ("int32", "int64"), "number": ("float", "double")}


def warnings_of(spec: Schema, old: Schema | None) -> Iterator[str]:
    """Yield the warnings about the spec of a CRD that its old spec did not have.

    There are warnings about formats that are not checked, and about sets of objects or arrays.
    """
    known = {*_oddities(old)} if old else set()
    yield from (text for text in _oddities(spec) if text not in known)


def _oddities(spec: Schema) -> Iterator[str]:
    for schema in schemas_of(spec):
        for each in _walk(schema):
            if each.get("format") and not _is_checked(each["format"], each.get("type") or ""):
                yield f"unrecognized format {quoted(each['format'])}"
    kinds = {_set_of(each) for schema in schemas_of(spec) for each in _walk(schema)}
    for kind in sorted(kinds & {"object", "array"}):
        text = "is not supported by server-side apply or CEL validation rules"
        yield f'x-kubernetes-list-type: set for items of type "{kind}" {text}'


def _set_of(schema: Schema) -> str:
    """Return the type of the items if a schema describes a list of type set; otherwise ""."""
    items = schema.get("items")
    if schema.get("x-kubernetes-list-type") == "set" and isinstance(items, Mapping):
        return items.get("type") or ""
    return ""


def _is_checked(name: str, kind: str) -> bool:
    if kind in ("", "string"):
        return text_format(name) is not None
    return name in _NUMBERS.get(kind, ())


def _walk(schema: Schema) -> Iterator[Schema]:
    """Yield a schema and all schemas inside it."""
    yield schema
    for name in ("allOf", "anyOf", "oneOf"):
        for each in schema.get(name) or ():
            yield from _walk(each)
    for name in ("items", "not", "additionalProperties"):
        if isinstance(schema.get(name), Mapping):
            yield from _walk(schema[name])
    fields = schema.get("properties") or {}
    for name in sorted(fields):
        yield from _walk(fields[name])


def has_defaults(spec: Schema) -> bool:
    """Report whether the schema of any version contains a default."""
    return any(
        each.get("default") is not None for schema in schemas_of(spec) for each in _walk(schema)
    )
