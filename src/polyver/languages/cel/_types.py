"""Types of CEL expressions: their names, and the rules by which a type is assignable to another."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

__all__ = [
    "BOOL",
    "BYTES",
    "DOUBLE",
    "DURATION",
    "DYN",
    "ERROR",
    "INT",
    "NULL",
    "STRING",
    "TIMESTAMP",
    "UINT",
    "CelType",
    "TypeMapping",
    "list_of",
    "map_of",
    "most_general",
    "optional_of",
    "param",
    "struct",
    "type_of",
    "unwrapped",
]


@dataclass(frozen=True, slots=True)
class CelType:
    """A type: its kind, its name and its type parameters."""

    kind: str
    name: str
    params: tuple[CelType, ...] = ()

    def __str__(self) -> str:
        if not self.params:
            return _SHOWN_NAMES.get(self.name, self.name)
        return f"{self.name}({', '.join(map(str, self.params))})"

    @property
    def is_dyn(self) -> bool:
        return self.kind == "dyn"

    @property
    def is_dyn_or_error(self) -> bool:
        return self.kind in ("dyn", "error")


_SHOWN_NAMES = {"null_type": "null"}
BOOL, BYTES, DOUBLE, INT, STRING, UINT = (
    CelType(name, name) for name in ("bool", "bytes", "double", "int", "string", "uint")
)
DURATION, TIMESTAMP = CelType("duration", "duration"), CelType("timestamp", "timestamp")
NULL = CelType("null", "null_type")
DYN = CelType("dyn", "dyn")
ERROR = CelType("error", "!error!")


def list_of(item: CelType) -> CelType:
    return CelType("list", "list", (item,))


def map_of(key: CelType, value: CelType) -> CelType:
    return CelType("map", "map", (key, value))


def optional_of(inside: CelType) -> CelType:
    return CelType("opaque", "optional_type", (inside,))


def type_of(inside: CelType | None = None) -> CelType:
    return CelType("type", "type", (inside,) if inside else ())


def param(name: str) -> CelType:
    """Return the type parameter with this name, such as `A` in `list(A)`."""
    return CelType("param", name)


def struct(name: str) -> CelType:
    return CelType("struct", name)


def unwrapped(found: CelType) -> tuple[CelType, bool]:
    """Return the type inside an optional type and True, or the type itself and False."""
    if found.name == "optional_type":
        return found.params[0], True
    return found, False


_PLAIN = frozenset(
    ("bool", "bytes", "double", "int", "string", "uint", "duration", "timestamp", "struct")
)
_NULLABLE = frozenset(("opaque", "struct", "duration", "timestamp"))


class TypeMapping:
    """The types that the type parameters of a function stand for, while a call is checked."""

    def __init__(self, known: dict[CelType, CelType] | None = None) -> None:
        self._known = known or {}

    def assignable(self, one: Sequence[CelType], other: Sequence[CelType]) -> bool:
        """Report whether each type is assignable to the type at the same position in `other`.

        If all are assignable, remember which types the type parameters stand for. Otherwise change
        nothing.
        """
        tried = TypeMapping(dict(self._known))
        if len(one) != len(other) or not all(map(tried._assignable, one, other)):
            return False
        self._known = tried._known
        return True

    def substitute(self, found: CelType, *, to_dyn: bool = False) -> CelType:
        """Replace the type parameters in a type by the types for which they stand.

        With `to_dyn`, a parameter that stands for no type yet becomes `dyn`.
        """
        known = self._known.get(found)
        if known is not None:
            return self.substitute(known, to_dyn=to_dyn)
        if to_dyn and found.kind == "param":
            return DYN
        if not found.params:
            return found
        inside = tuple(self.substitute(each, to_dyn=to_dyn) for each in found.params)
        return CelType(found.kind, found.name, inside)

    def _assignable(self, one: CelType, other: CelType) -> bool:
        if other.kind == "param":
            valid, had = self._substitutes(one, other)
            if valid or had:
                return valid
        if one.kind == "param":
            return self._substitutes(other, one)[0]
        if one.is_dyn_or_error or other.is_dyn_or_error:
            return True
        if "null" in (one.kind, other.kind):
            real = other if one.kind == "null" else one
            return real.kind in _NULLABLE or real.kind == "null"
        if one.kind in _PLAIN or one.kind == "type":
            return one.kind == other.kind and (one.kind == "type" or one.name == other.name)
        return (
            one.kind == other.kind
            and one.name == other.name
            and len(one.params) == len(other.params)
            and all(map(self._assignable, one.params, other.params))
        )

    def _substitutes(self, one: CelType, other: CelType) -> tuple[bool, bool]:
        """Let the parameter `other` stand for the type `one`, if possible.

        Return two flags: whether that is possible, and whether `other` already stood for a type.
        """
        if one == other:
            return True, True
        known = self._known.get(other)
        if known is None:
            if not self._free_of(other, one):
                return False, False
            self._known[other] = one
            return True, False
        if one == known:
            return True, True
        if not self._assignable(one, known):
            return False, True
        general = most_general(one, known)
        if self._free_of(other, general):
            self._known[other] = general
        return True, True

    def _free_of(self, found: CelType, within: CelType) -> bool:
        if found == within:
            return False
        if within.kind == "param":
            known = self._known.get(within)
            return known is None or self._free_of(found, known)
        return all(self._free_of(found, each) for each in within.params)


def most_general(one: CelType, other: CelType) -> CelType:
    """Return the more general of two types."""
    return one if _says_no_more(one, other) else other


def _says_no_more(one: CelType, other: CelType) -> bool:
    if one.is_dyn or one.kind == "param":
        return True
    if other.is_dyn or other.kind == "param" or one.kind != other.kind:
        return False
    if one.kind == "type":
        return True
    return (
        one.name == other.name
        and len(one.params) == len(other.params)
        and all(map(_says_no_more, one.params, other.params))
    )
