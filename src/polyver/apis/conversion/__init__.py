"""Conversion between the versions of a kind, by two-way rules or by functions.

If a version cannot express a field, the field is preserved in an annotation or a reserved field of
the object. It is restored when the object is converted back.
"""

from polyver.apis.conversion._block import InvalidRules, RuleBlock
from polyver.apis.conversion._building import InvalidRule, Rules
from polyver.apis.conversion._converter import (
    Converter,
    FunctionEdge,
    NotConvertible,
    build_converter,
)
from polyver.apis.conversion._delta import positions
from polyver.apis.conversion._preserved_fields import (
    ANNOTATION,
    BESIDE,
    NOTHING_PRESERVED,
    CarryTooLarge,
    preserved_in_version,
    without_version,
)
from polyver.apis.conversion.hops import PrunedObject
from polyver.apis.conversion.paths import InvalidFieldPath
from polyver.apis.conversion.reading import (
    DeclaredConversion,
    DeclaredEdge,
    read_conversion,
    read_conversions,
)

__all__ = [
    "ANNOTATION",
    "BESIDE",
    "NOTHING_PRESERVED",
    "CarryTooLarge",
    "Converter",
    "DeclaredConversion",
    "DeclaredEdge",
    "FunctionEdge",
    "InvalidFieldPath",
    "InvalidRule",
    "InvalidRules",
    "NotConvertible",
    "PrunedObject",
    "RuleBlock",
    "Rules",
    "build_converter",
    "positions",
    "preserved_in_version",
    "read_conversion",
    "read_conversions",
    "without_version",
]
