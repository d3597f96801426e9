"""All CEL functions that a running program can call, and the choice between overloads."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from polyver.languages.cel._authorizer import AUTHORIZATION
from polyver.languages.cel._collections import COLLECTIONS
from polyver.languages.cel._conversions import CONVERSIONS, SIZES
from polyver.languages.cel._declarations import FUNCTIONS
from polyver.languages.cel._named_formats import NAMED_FORMATS
from polyver.languages.cel._networks import NETWORKS
from polyver.languages.cel._operators import INSERTS
from polyver.languages.cel._quantities import QUANTITIES
from polyver.languages.cel._semvers import SEMVERS
from polyver.languages.cel._strings import TEXTS
from polyver.languages.cel._times import TIMES
from polyver.languages.cel._types import CelType
from polyver.languages.cel._urls import URLS
from polyver.languages.cel._values import (
    CelEvaluationError,
    List,
    Map,
    Optional,
    no_overload,
    type_name,
)

__all__ = ["LIBRARY", "dispatch"]

Implementation = Callable[..., Any]
LIBRARY: dict[str, Implementation] = {
    **AUTHORIZATION,
    **COLLECTIONS,
    **CONVERSIONS,
    **INSERTS,
    **NAMED_FORMATS,
    **NETWORKS,
    **QUANTITIES,
    **SEMVERS,
    **SIZES,
    **TEXTS,
    **TIMES,
    **URLS,
}
_OPEN = frozenset(("dyn", "param", "error"))
_PROTO = {"duration": "google.protobuf.Duration", "timestamp": "google.protobuf.Timestamp"}


def _takes(wanted: CelType, value: Any) -> bool:
    """Report whether a value is of the wanted type.

    The items of a list have a type, too. To save time, only the first item is checked.
    """
    if wanted.kind in _OPEN:
        return True
    match wanted.kind:
        case "list":
            return isinstance(value, List) and all(
                _takes(wanted.params[0], each) for each in value.items[:1]
            )
        case "map":
            return isinstance(value, Map)
    if wanted.name == "optional_type":
        return isinstance(value, Optional)
    return type_name(value) == _PROTO.get(wanted.name, wanted.name)


_PLAIN = frozenset(("contains", "endsWith", "startsWith", "matches"))


def _no_overload_for(function: str, values: Sequence[Any]) -> CelEvaluationError:
    """Build the error for a call: the function has no overload for values of these types."""
    if function in _PLAIN:
        return no_overload()
    if function == "size":
        return CelEvaluationError("no such overload: size")
    kinds = ", ".join(map(type_name, values))
    return CelEvaluationError(f"no such overload: {function}({kinds})")


def dispatch(function: str, overloads: Sequence[str]) -> Callable[[Sequence[Any]], Any]:
    """Build a function that calls the first overload whose types match the arguments.

    >>> dispatch("size", ["size_string"])(["abc"])
    3
    """
    known = [each for each in FUNCTIONS[function] if len(overloads) > 1 or each.id in overloads]
    candidates = [(each.args, LIBRARY[each.id]) for each in known if each.id in LIBRARY]

    def call(values: Sequence[Any]) -> Any:
        for args, made in candidates:
            if len(args) == len(values) and all(map(_takes, args, values)):
                return made(*values)
        raise _no_overload_for(function, values)

    return call
