"""Build a class for objects, and its schema, from a class that a user declared."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NotRequired, TypedDict

import msgspec

from polyver.apis.declaring._field_schemas import FieldSchema, apply, described, read_hint
from polyver.apis.declaring._fields import (
    DeclaredField,
    Fields,
    docstring,
    fields_of,
    flavour,
    shown_name,
)
from polyver.apis.declaring._markers import ABSENT, FieldOptions, marks_of
from polyver.apis.declaring._objects import DeclaredObject, is_part, make_part, plain
from polyver.apis.definition import InvalidKind

__all__ = ["ClassReader"]

_ROOT = {"apiVersion": {"type": "string"}, "kind": {"type": "string"}}
_ROOT |= {"metadata": {"type": "object"}}
_FORGOTTEN = "dict weakref annotations module qualname doc firstlineno static_attributes"
_FORGOTTEN += " polyver_marks annotate annotate_func annotations_cache slots orig_bases parameters"
_DROPPED = {f"__{name}__" for name in _FORGOTTEN.split()}


class ClassReader:
    """Reads a declared class, and the classes that its fields name."""

    def __init__(self, names: Mapping[str, Any]) -> None:
        """Create a reader.

        `names` are the names in scope at the class; they resolve type hints that are strings.
        """
        self._names = names
        self._open: list[type] = []
        self._read: dict[type, FieldSchema] = {}

    def read(self, cls: type, at: str) -> FieldSchema:
        """Read a class that is the type hint of a field; return its schema and the built class."""
        if is_part(cls):
            assert issubclass(cls, DeclaredObject)
            return FieldSchema(dict(cls.__schema__), cls, at)
        if cls in self._open:
            fact = f"{shown_name(cls)} contains itself, which a schema cannot express"
            raise InvalidKind(fact, at=at, hint="use apis.Anything for that field")
        if cls not in self._read:
            self._check(cls, at)
            place = self._typed_dict(cls) if flavour(cls) == "typed dict" else self.part(cls)
            self._read[cls] = place
        found = self._read[cls]
        return FieldSchema(dict(found.schema), found.python, at)

    def _check(self, cls: type, at: str) -> None:
        around = [vars(base).values() for each in self._open for base in each.__mro__]
        if flavour(cls) != "plain" or any(cls in values for values in around):
            return
        fact = f"{shown_name(cls)} is not a type for a field"
        hint = "if it is your class, decorate it with @apis.part" if _is_ours(cls) else ""
        raise InvalidKind(fact, at=at, hint=hint)

    def part(self, cls: type) -> FieldSchema:
        """Read a class for parts of objects; return its schema and the built class."""
        places = self._places(cls)
        schema = self._schema(cls, places, {})
        return FieldSchema(schema, self._made(cls, places, schema, {}), shown_name(cls))

    def _typed_dict(self, cls: type) -> FieldSchema:
        places = self._places(cls)
        fields = {place.name: NotRequired[place.python | None] for place in places.values()}
        made = TypedDict(cls.__name__, fields)  # type: ignore[misc]
        return FieldSchema(self._schema(cls, places, {}), made, shown_name(cls))

    def whole(
        self, cls: type, *, status: bool | None, about: dict[str, Any]
    ) -> type[DeclaredObject]:
        """Build the class of whole objects, which have metadata, apiVersion and kind.

        `about` are further members of the built class.
        """
        places = self._places(cls)
        for name, wanted in _ROOT.items():
            found = places.pop(name, None)
            if found and (found.schema.get("type") != wanted["type"] or is_part(found.python)):
                hint = "omit it, or write dict[str, Any]" if name == "metadata" else ""
                raise found.wrong(f"{name} has the same type in all kinds", hint)
        if status is not False and "status" in places:
            # API servers drop the status when a client creates an object, so the status cannot be
            # required.
            places["status"].optional = True
        schema = self._schema(cls, places, _ROOT)
        metadata = FieldSchema({}, dict[str, Any], shown_name(cls), optional=True, name="metadata")
        return self._made(cls, {"metadata": metadata, **places}, schema, about)

    def _places(self, cls: type) -> dict[str, FieldSchema]:
        if "__init__" in vars(cls) and flavour(cls) == "plain":
            fact = "a class of objects cannot define __init__: objects are created with keywords"
            raise InvalidKind(fact, at=shown_name(cls))
        self._open.append(cls)
        places = {each.name: self._place(each, cls) for each in fields_of(cls, self._names)}
        self._open.pop()
        keys = [place.name for place in places.values()]
        for name, place in places.items():
            if keys.count(place.name) > 1:
                raise InvalidKind(f"two fields have the name {place.name}", at=place.at)
            if name in ("__schema__", "__declared__"):
                raise InvalidKind(f"{name} cannot be a field", at=place.at)
        return places

    def _place(self, given: DeclaredField, cls: type) -> FieldSchema:
        at = f"{shown_name(cls)}.{given.name}"
        place = read_hint(given.hint, at, self)
        place.schema = described(place.schema, given.doc)
        if isinstance(given.default, FieldOptions):
            apply(place, given.default)
        elif given.default is not ABSENT:
            place.default = given.default
        place.name = place.name or given.key
        if place.default is None:
            place.optional = True
        elif place.default is not ABSENT:
            place.schema["default"] = _data(place)
        return place

    def _schema(
        self, cls: type, places: Mapping[str, FieldSchema], more: Mapping[str, Any]
    ) -> dict[str, Any]:
        fields = {**more, **{place.name: place.schema for place in places.values()}}
        needed = [
            place.name
            for place in places.values()
            if not place.optional and place.default is ABSENT
        ]
        schema: dict[str, Any] = {"type": "object"}
        schema |= {"properties": fields} if fields else {}
        schema |= {"required": needed} if needed else {}
        whole = FieldSchema(described(schema, docstring(cls)), cls, shown_name(cls))
        for mark in marks_of(cls):
            apply(whole, mark)
        return whole.schema

    def _made(
        self,
        cls: type,
        places: Mapping[str, FieldSchema],
        schema: dict[str, Any],
        about: dict[str, Any],
    ) -> type[DeclaredObject]:
        body = {**self._body(cls, places), **about, "__schema__": schema, "__declared__": cls}
        body |= {"__module__": cls.__module__, "__qualname__": cls.__qualname__}
        body["__doc__"] = vars(cls).get("__doc__")
        fields = {name: _held(place) for name, place in places.items()}
        keys = {name: place.name for name, place in places.items() if name != place.name}
        return make_part(cls.__name__, fields, keys, body)

    def _body(self, cls: type, places: Mapping[str, FieldSchema]) -> dict[str, Any]:
        """Return the members of a class that are not its fields, such as methods and properties."""
        ours = [base for base in reversed(cls.__mro__) if base not in (object, Fields)]
        if flavour(cls) != "plain":
            ours = []
        body = {name: value for base in ours for name, value in vars(base).items()}
        return {
            name: self._read[value].python if _is_in(value, self._read) else value
            for name, value in body.items()
            if name not in _DROPPED and name not in places and name not in _ROOT
        }


def _is_in(value: object, known: Mapping[type, FieldSchema]) -> bool:
    return isinstance(value, type) and value in known


def _is_ours(cls: type) -> bool:
    return bool(vars(cls).get("__annotations__"))


def _held(place: FieldSchema) -> tuple[Any, Any]:
    """Return the type of a field in the built class, and the value of a missing field."""
    if not place.takes_null:
        return place.python | None, None
    if place.python is Any:
        return Any, ABSENT
    return place.python | None | msgspec.UnsetType, ABSENT


def _data(place: FieldSchema) -> Any:
    """Convert the default of a field to plain data."""
    try:
        data = plain(place.default)
        if msgspec.json.decode(msgspec.json.encode(data)) == data:
            return data
    except (TypeError, NotImplementedError, ValueError):
        pass
    fact = f"the default {place.default!r} is not JSON data"
    raise place.wrong(fact, "use a value that JSON can express")
