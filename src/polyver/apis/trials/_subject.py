"""A kind to check: what converts its objects, and what is known of its versions."""

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
    """A kind with several versions, and what connects them."""

    converter: Converter
    schemas: Mapping[str, Schema] = field(default_factory=dict)
    """The openAPIV3Schema of each version, as far as they are known."""
    name: str = ""
    place: str = ""

    @classmethod
    def of(cls, kind: Kind | Converter | CheckedKind) -> CheckedKind:
        """What is to be checked of a kind; a Converter alone says nothing of its schemas."""
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
    """A schema without the field that nobody but conversion writes."""
    fields = {each: value for each, value in schema.get("properties", {}).items() if each != name}
    return {**schema, "properties": fields} if name else schema
