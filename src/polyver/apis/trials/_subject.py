"""A kind to check: the converter of its objects, and the schemas of its versions."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from polyver.apis.conversion import Converter
from polyver.apis.declaring import Kind

__all__ = ["CheckedKind"]

Schema = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class CheckedKind:
    """A kind with several versions, and its converter."""

    converter: Converter
    schemas: Mapping[str, Schema] = field(default_factory=dict)
    """The openAPIV3Schema of each version that has one."""
    name: str = ""
    place: str = ""

    @classmethod
    def of(cls, kind: Kind | Converter | CheckedKind) -> CheckedKind:
        """Return the subject for a kind; a Converter alone has no schemas."""
        if isinstance(kind, CheckedKind):
            return kind
        if isinstance(kind, Converter):
            return cls(kind, name=f"{kind.kind} of {kind.group}")
        definition, converter = kind.definition(), kind.converter
        if converter is None:
            names = [version.name for version in definition.versions]
            converter = Converter(definition.group, definition.kind, names[:1], [])
        schemas = {
            version.name: _without(version.schema, kind.carry)
            for version in definition.versions
            if version.schema is not None
        }
        return cls(converter, schemas, definition.name, kind.place)


def _without(schema: Schema, name: str) -> Schema:
    """Return a schema without the field that is reserved for preserved fields."""
    fields = {each: value for each, value in schema.get("properties", {}).items() if each != name}
    return {**schema, "properties": fields} if name else schema
