"""Rules in CEL: expressions that a schema has for the values at its places; and conditions.

They are read, typed by the schema, bounded in what they may cost, and evaluated, with the texts
of the real server for all that may be wrong with them. Most servers have no rule in any schema, so
all of it is loaded with the first one.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from polyver.objects.cel._authorizing import Question
    from polyver.objects.cel._conditions import Condition, ConditionFailed, Facts
    from polyver.objects.cel._data import Place, to_value
    from polyver.objects.cel._expression import Environment, Expression, Uncompilable, Unusable
    from polyver.objects.cel._names import escape
    from polyver.objects.cel._places import MOST_BYTES, Declared, declared
    from polyver.objects.cel._program import Outcome
    from polyver.objects.cel._values import NONE, Failure, Optional

__all__ = [
    "MOST_BYTES",
    "NONE",
    "Condition",
    "ConditionFailed",
    "Declared",
    "Environment",
    "Expression",
    "Facts",
    "Failure",
    "Optional",
    "Outcome",
    "Place",
    "Question",
    "Uncompilable",
    "Unusable",
    "declared",
    "escape",
    "to_value",
]

_HOMES = {
    "_authorizing": "Question",
    "_conditions": "Condition ConditionFailed Facts",
    "_data": "Place to_value",
    "_expression": "Environment Expression Uncompilable Unusable",
    "_names": "escape",
    "_places": "MOST_BYTES Declared declared",
    "_program": "Outcome",
    "_values": "NONE Failure Optional",
}
_HOME = {name: module for module, names in _HOMES.items() for name in names.split()}


def __getattr__(name: str) -> object:
    if name not in _HOME:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    found: object = getattr(import_module(f"{__name__}.{_HOME[name]}"), name)
    globals()[name] = found
    return found
