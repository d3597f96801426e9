"""Convert between plain data and objects of declared classes.

The conversion checks only types, and fills in no defaults. A field that is missing in the data is
None in the object. A field that is None in the object is not written to the data.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Any, ClassVar, Self, TypeVar

import msgspec

from polyver.apis.definition import Schema
from polyver.core import PolyverError
from polyver.kube.objects.codec import prepare
from polyver.languages.values.manifests import dotted, problem_of

__all__ = [
    "DeclaredObject",
    "NotAsDeclared",
    "Time",
    "from_object",
    "from_own",
    "is_part",
    "make_part",
    "to_object",
]

T = TypeVar("T")


class NotAsDeclared(PolyverError):
    """Data that does not fit a declared class. `at` is the path of the wrong field."""


class Time(datetime):
    """A time that is written in the notation in which it was read, such as with 'Z' at the end."""

    _text: str = ""

    @classmethod
    def read(cls, text: str) -> Self:
        found = datetime.fromisoformat(text)
        time = cls.combine(found.date(), found.timetz())
        time._text = text
        return time

    def __str__(self) -> str:
        return self._text or self.isoformat().replace("+00:00", "Z")


def is_part(cls: object) -> bool:
    """Report whether polyver built a class from a class that a user declared."""
    return isinstance(cls, _Declared) and "__declared__" in vars(cls)


class _Declared(type(msgspec.Struct)):  # type: ignore[misc]
    """The metaclass of the classes that polyver builds from declared classes.

    If a user derives a class from a built class, the metaclass returns another class instead: a
    plain class that is derived from the user's declared class. polyver then reads this plain class
    like any other declared class.
    """

    def __new__(
        cls, name: str, bases: tuple[type, ...], body: dict[str, Any], **options: Any
    ) -> Any:
        if any(is_part(base) for base in bases):
            plain = tuple(getattr(base, "__declared__", base) for base in bases)
            return type(name, plain, body)
        return super().__new__(cls, name, bases, body, **options)

    def __init__(self, *arguments: Any, **options: Any) -> None:
        pass


class DeclaredObject(msgspec.Struct, metaclass=_Declared, kw_only=True):
    """Base class of all built classes, for objects and their parts.

    Objects are created with keyword arguments and compared by value.
    """

    __schema__: ClassVar[Schema]
    """The schema of the class, for the API server."""
    __declared__: ClassVar[type]
    """The class that the user declared, from which polyver built this class."""


prepare(DeclaredObject)


def make_part(
    name: str, fields: Mapping[str, tuple[Any, Any]], names: Mapping[str, str], body: dict[str, Any]
) -> type[DeclaredObject]:
    """Build a class for parts of objects from fields with types and defaults.

    `names` has the name of each field in plain data. `body` has the other members of the class.
    """
    hints = {field: hint for field, (hint, _) in fields.items()}
    defaults = {field: default for field, (_, default) in fields.items()}
    made: type[DeclaredObject] = _Declared(
        name,
        (DeclaredObject,),
        {**body, "__annotations__": hints, **defaults},
        kw_only=True,
        omit_defaults=True,
        repr_omit_defaults=True,
        rename=dict(names),
    )
    prepare(made)
    return made


def from_object(cls: type[T], obj: Mapping[str, Any]) -> T:
    """Convert plain data to an object of a declared class; ignore fields that the class lacks.

    Changes to the object do not change the data.

    >>> from polyver import apis
    >>> kind = apis.Kind("Toy", group="ex.io")
    >>> @kind.version("v1")
    ... class Toy:
    ...     colour: str
    ...     size: int = 1
    >>> from_object(Toy, {"apiVersion": "ex.io/v1", "kind": "Toy", "colour": "red"})
    Toy(colour='red')
    """
    # Copy the data first. Without the copy, fields of type Any would be the same objects in the
    # data and in the result, so a change of the result would also change the data.
    return from_own(cls, msgspec.to_builtins(obj))


def from_own(cls: type[T], obj: Mapping[str, Any]) -> T:
    """Convert plain data to an object of a declared class without copying the data.

    The values of fields with the type Any are shared with the data.
    """
    said, wanted = obj.get("apiVersion"), getattr(cls, "apiVersion", None)
    if wanted and said not in (None, wanted):
        raise NotAsDeclared(f"{_named(obj)} is in {said}, not in {wanted}", at="apiVersion")
    try:
        return msgspec.convert(obj, cls, dec_hook=_read)
    except msgspec.ValidationError as error:
        fact, path, _ = problem_of(error, obj)
        raise NotAsDeclared(f"{_named(obj)}: {fact}", at=dotted(path)) from None


def to_object(instance: object) -> dict[str, Any]:
    """Convert an object of a declared class to plain data; leave out fields that are None.

    >>> from polyver import apis
    >>> kind = apis.Kind("Toy", group="ex.io")
    >>> @kind.version("v1")
    ... class Toy:
    ...     colour: str
    ...     size: int = 1
    >>> to_object(Toy(colour="red"))
    {'apiVersion': 'ex.io/v1', 'kind': 'Toy', 'colour': 'red'}
    """
    found: dict[str, Any] = plain(instance)
    version = getattr(instance, "apiVersion", None)
    return {"apiVersion": version, "kind": instance.kind, **found} if version else found  # type: ignore[attr-defined]


def plain(value: object) -> Any:
    """Convert an object of a declared class, or the value of a field, to plain data."""
    return msgspec.to_builtins(value, enc_hook=_written)


def _named(obj: Mapping[str, Any]) -> str:
    metadata = obj.get("metadata")
    name = metadata.get("name") if isinstance(metadata, Mapping) else None
    kind = obj.get("kind") or "the object"
    return f'{kind} "{name}"' if name else str(kind)


def _read(kind: type, value: Any) -> Any:
    if kind is Time and isinstance(value, str):
        return Time.read(value)
    if kind is Time:
        raise ValueError("expected a time as a string")
    raise NotImplementedError


def _written(value: Any) -> str:
    if isinstance(value, Time):
        return str(value)
    raise NotImplementedError
