"""Structural schemas of custom kinds: what they prune, fill in and refuse, as the real server does.

A schema is compiled once for each version of a CRD; then each object is walked over a few times.
"""

from polyver.objects.patterns import python_pattern
from polyver.objects.patterns._syntax import InvalidPattern
from polyver.objects.schema._default_rules import coerce_defaults
from polyver.objects.schema._definition import check_schema
from polyver.objects.schema._embedded import MalformedMetadata
from polyver.objects.schema._pointed import check_columns, check_scale, check_selectable
from polyver.objects.schema._schema import Schema, compile_schema, is_valid

__all__ = [
    "InvalidPattern",
    "MalformedMetadata",
    "Schema",
    "check_columns",
    "check_scale",
    "check_schema",
    "check_selectable",
    "coerce_defaults",
    "compile_schema",
    "is_valid",
    "python_pattern",
]
