"""Conversion between the versions of a kind: rules both ways, and a carry for what they lose."""

from polyver.apis.conversion._block import Block, InvalidRules
from polyver.apis.conversion._building import InvalidRule, Rules
from polyver.apis.conversion._carry import CarryTooLarge
from polyver.apis.conversion._converter import (
    Converter,
    FunctionEdge,
    NotConvertible,
    build_converter,
)
from polyver.apis.conversion._keeping import ANNOTATION, BESIDE
from polyver.apis.conversion.hops import Known
from polyver.apis.conversion.paths import InvalidPath
from polyver.apis.conversion.reading import (
    Declared,
    DeclaredEdge,
    read_conversion,
    read_conversions,
)

__all__ = [
    "ANNOTATION",
    "BESIDE",
    "Block",
    "CarryTooLarge",
    "Converter",
    "Declared",
    "DeclaredEdge",
    "FunctionEdge",
    "InvalidPath",
    "InvalidRule",
    "InvalidRules",
    "Known",
    "NotConvertible",
    "Rules",
    "build_converter",
    "read_conversion",
    "read_conversions",
]
