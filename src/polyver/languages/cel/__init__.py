"""Rules in CEL: expressions that a schema has for the values at its places; and conditions.

They are read, typed by the schema, bounded in what they may cost, and evaluated, with the texts
of the real server for all that may be wrong with them. Most servers have no rule in any schema, so
all of it is loaded with the first one.
"""

from typing import TYPE_CHECKING

from polyver.core.loading import imported_on_use

if TYPE_CHECKING:
    from polyver.languages.cel._authorizer import Question
    from polyver.languages.cel._conditions import Condition, ConditionFailed, Facts
    from polyver.languages.cel._data import Place, to_value
    from polyver.languages.cel._expression import Environment, Expression, Uncompilable, Unusable
    from polyver.languages.cel._names import escape
    from polyver.languages.cel._program import Outcome
    from polyver.languages.cel._schema_types import MOST_BYTES, Declared, declared
    from polyver.languages.cel._values import NONE, Failure, Optional

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

__getattr__ = imported_on_use(
    __name__,
    {
        "polyver.languages.cel._authorizer": "Question",
        "polyver.languages.cel._conditions": "Condition ConditionFailed Facts",
        "polyver.languages.cel._data": "Place to_value",
        "polyver.languages.cel._expression": "Environment Expression Uncompilable Unusable",
        "polyver.languages.cel._names": "escape",
        "polyver.languages.cel._schema_types": "MOST_BYTES Declared declared",
        "polyver.languages.cel._program": "Outcome",
        "polyver.languages.cel._values": "NONE Failure Optional",
    },
)
