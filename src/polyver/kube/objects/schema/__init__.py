"""Structural schemas of custom resources: pruning, defaulting and validation as in kube-apiserver.

The schema of each version of a CustomResourceDefinition is compiled once; the compiled schema then
prunes, defaults and validates any number of objects.
"""

from polyver.kube.objects.schema._declared_paths import check_columns, check_scale, check_selectable
from polyver.kube.objects.schema._default_rules import coerce_defaults
from polyver.kube.objects.schema._definition import check_schema
from polyver.kube.objects.schema._embedded_resources import MalformedMetadata
from polyver.kube.objects.schema._schema import Schema, compile_schema, is_valid
from polyver.languages.regexp import python_pattern
from polyver.languages.regexp.syntax import InvalidPattern

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
