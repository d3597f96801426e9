"""CEL (Common Expression Language), for rules in schemas, match conditions and conversions.

An expression is parsed, its types are checked against a schema, its maximum cost is estimated, and
then it is evaluated for objects. Errors have kube-apiserver's messages. The modules are imported
when they are first used, because most servers have no CEL rule in any schema.
"""

from typing import TYPE_CHECKING

from polyver.core.loading import imported_on_use

if TYPE_CHECKING:
    from polyver.languages.cel._authorizer import AuthorizationQuery
    from polyver.languages.cel._conditions import (
        ConditionFailed,
        ConditionVariables,
        MatchCondition,
    )
    from polyver.languages.cel._data import CelSchema, to_value
    from polyver.languages.cel._expression import CelEnvironment, Expression, Uncompilable, Unusable
    from polyver.languages.cel._names import escape
    from polyver.languages.cel._program import CelResult
    from polyver.languages.cel._schema_types import MOST_BYTES, DeclaredType, declared
    from polyver.languages.cel._types import CelType
    from polyver.languages.cel._value_expressions import ValueExpression, fits_schema
    from polyver.languages.cel._values import NONE, CelEvaluationError, Optional

__all__ = [
    "MOST_BYTES",
    "NONE",
    "AuthorizationQuery",
    "CelEnvironment",
    "CelEvaluationError",
    "CelResult",
    "CelSchema",
    "CelType",
    "ConditionFailed",
    "ConditionVariables",
    "DeclaredType",
    "Expression",
    "MatchCondition",
    "Optional",
    "Uncompilable",
    "Unusable",
    "ValueExpression",
    "declared",
    "escape",
    "fits_schema",
    "to_value",
]

__getattr__ = imported_on_use(
    __name__,
    {
        "polyver.languages.cel._authorizer": "AuthorizationQuery",
        "polyver.languages.cel._conditions": "MatchCondition ConditionFailed ConditionVariables",
        "polyver.languages.cel._data": "CelSchema to_value",
        "polyver.languages.cel._expression": "CelEnvironment Expression Uncompilable Unusable",
        "polyver.languages.cel._names": "escape",
        "polyver.languages.cel._schema_types": "MOST_BYTES DeclaredType declared",
        "polyver.languages.cel._program": "CelResult",
        "polyver.languages.cel._types": "CelType",
        "polyver.languages.cel._value_expressions": "ValueExpression fits_schema",
        "polyver.languages.cel._values": "NONE CelEvaluationError Optional",
    },
)
