"""A fast check that accepts most valid objects.

The schema is converted to a Python type, against which msgspec, a library in C, checks objects. An
object that msgspec accepts has no unknown field, no null that the schema forbids, and no error. An
object that msgspec refuses may still be valid; the full checks then decide.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import GenericAlias
from typing import Annotated, Any, Final, Literal, TypeAlias, Union

import msgspec
from msgspec import UNSET, UnsetType

from polyver.core.plain import Schema
from polyver.kube.objects.codec import prepare
from polyver.kube.objects.schema._checks import Checks
from polyver.kube.objects.schema._errors import ValidationReport
from polyver.kube.objects.schema.structure import NEW

__all__ = ["Quick"]

_Type: TypeAlias = Any
"""A Python type that is built from a schema at run time."""
_META: Final = ("apiVersion", "kind", "metadata")
_MOST: Final = 2**63 - 1
_SCALARS: Final = frozenset([str, int, float, bool])
_ALTERNATIVES: Final = ("anyOf", "oneOf", "allOf", "not")
_Anything: TypeAlias = dict[str, Any] | list[Any] | str | int | float | bool


class _Inexpressible(Exception):
    """Raised if no Python type can express a schema; then only the full checks are used."""


class _Leaf:
    """Base of the Python types for scalars that msgspec cannot check by itself.

    For each such value, msgspec calls `_look`, which runs the full checks of this one scalar.
    """

    checks: Checks
    one: _Leaf


class Quick:
    """A fast check of whole objects; an object that fails this check may still be valid."""

    def __init__(self, schema: Schema) -> None:
        try:
            self._type = _root(schema)
        except _Inexpressible:
            self._type = None
            return
        prepare(self._type)

    def fits(self, obj: dict[str, Any]) -> bool:
        if self._type is None:
            return False
        try:
            msgspec.convert(obj, self._type, dec_hook=_look)
        except (msgspec.ValidationError, OverflowError):
            return False
        return True


def _look(kind: type[_Leaf], value: Any) -> _Leaf:
    report = ValidationReport()
    if type(value) in _SCALARS:
        kind.checks.run(value, "", NEW, report)
        if not report.causes:
            return kind.one
    raise ValueError("the full check must report the error")


def _root(schema: Schema) -> _Type:
    """Build the Python type for a whole object; it accepts any mapping as `metadata`."""
    properties = schema.get("properties") or {}
    for name, kind in zip(_META, ("string", "string", "object"), strict=True):
        keys = {key for key in properties.get(name) or {} if key != "description"}
        if name in properties and (keys != {"type"} or properties[name]["type"] != kind):
            raise _Inexpressible
    rest = {name: each for name, each in properties.items() if name not in _META}
    known: dict[str, _Type] = {"apiVersion": str, "kind": str, "metadata": dict[str, Any]}
    return _struct({**schema, "properties": rest}, known)


def _type_of(schema: Schema) -> _Type:
    if schema.get("x-kubernetes-embedded-resource"):
        raise _Inexpressible
    match schema.get("type"):
        case "object":
            found = _object(schema)
        case "array":
            unsupported = ("enum", "x-kubernetes-preserve-unknown-fields", "uniqueItems")
            _refuse(schema, *unsupported, *_ALTERNATIVES)
            items = schema.get("items")
            if not isinstance(items, Mapping):
                raise _Inexpressible
            found = _sized(GenericAlias(list, (_type_of(items),)), schema, "Items")
        case None if _is_anything(schema):
            found = _Anything
        case _:
            return _scalar(schema)
    return found | None if schema.get("nullable") and not schema.get("enum") else found


def _is_anything(schema: Schema) -> bool:
    about = ("description", "nullable", "default", "title")
    return {key for key in schema if key not in about} == {"x-kubernetes-preserve-unknown-fields"}


def _scalar(schema: Schema) -> _Type:
    keywords = {*schema} - {"description", "title", "default", "example"}
    texts, least, most = schema.get("enum") or (), schema.get("minimum"), schema.get("maximum")
    match schema.get("type"):
        case "boolean" if keywords == {"type"}:
            return bool
        case "string" if keywords == {"type", "enum"} and all(
            isinstance(each, str) for each in texts
        ):
            return Literal[tuple(texts)]
        case "string" if keywords <= {"type", "minLength", "maxLength"}:
            return _sized(str, schema, "Length")
        case "integer" if keywords <= {"type", "minimum", "maximum"} and _are_integers(least, most):
            least, most = (-_MOST if least is None else least), (_MOST if most is None else most)
            return Annotated[int, msgspec.Meta(ge=int(least), le=int(most))]
    return _leaf(schema)


def _are_integers(*limits: float | None) -> bool:
    """Report whether all limits are integers in the range of int64; None stands for no limit."""
    return all(each is None or (each == int(each) and abs(each) <= _MOST) for each in limits)


def _leaf(schema: Schema) -> type[_Leaf]:
    class Leaf(_Leaf):
        """The Python type for one scalar schema.

        Each schema has its own class, because `_look` gets only the class and finds the checks in
        it.
        """

        checks = Checks(schema, None)

    Leaf.one = Leaf()
    return Leaf


def _object(schema: Schema) -> _Type:
    others = schema.get("additionalProperties")
    if others is None:
        if schema.get("x-kubernetes-preserve-unknown-fields") and not schema.get("properties"):
            _refuse(schema, "required", "minProperties", "maxProperties", "enum", *_ALTERNATIVES)
            return dict[str, Any]
        return _struct(schema, {})
    if not isinstance(others, Mapping):
        raise _Inexpressible
    _refuse(schema, "properties", "required", "enum", *_ALTERNATIVES)
    return _sized(GenericAlias(dict, (str, _type_of(others))), schema, "Properties")


def _struct(schema: Schema, known: Mapping[str, _Type]) -> _Type:
    _refuse(
        schema, "minProperties", "maxProperties", "enum", "additionalProperties", *_ALTERNATIVES
    )
    properties = schema.get("properties") or {}
    required = set(schema.get("required") or ())
    if not required <= {*properties, *known}:
        raise _Inexpressible
    types = {**known, **{name: _type_of(each) for name, each in properties.items()}}
    names = {f"field_{number}": name for number, name in enumerate(types)}
    fields = [
        (field, types[name]) if name in required else (field, Union[types[name], UnsetType], UNSET)  # noqa: UP007 - made at run time
        for field, name in names.items()
    ]
    return msgspec.defstruct(
        "Fields",
        # Fields with a default must come after fields without a default.
        sorted(fields, key=len),
        rename=names,
        forbid_unknown_fields=not schema.get("x-kubernetes-preserve-unknown-fields"),
        gc=False,
    )


def _sized(found: _Type, schema: Schema, what: str) -> _Type:
    least, most = schema.get(f"min{what}"), schema.get(f"max{what}")
    if least is None and most is None:
        return found
    return Annotated[found, msgspec.Meta(min_length=least, max_length=most)]


def _refuse(schema: Schema, *names: str) -> None:
    if any(name in schema for name in names):
        raise _Inexpressible
