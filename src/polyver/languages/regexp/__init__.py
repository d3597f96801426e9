"""Regular expressions of Go's package `regexp`, matched in linear time.

Such expressions are used in the keyword `pattern` of schemas, and in functions of CEL and of Go
templates.
"""

from polyver.languages.regexp._match import (
    CompiledPattern,
    compile_pattern,
    python_pattern,
    read_pattern,
)
from polyver.languages.regexp._search import Match, Search, read_search
from polyver.languages.regexp.syntax import InvalidPattern
from polyver.languages.regexp.templates import StringTemplate, UnfixedPattern, read_template

__all__ = [
    "CompiledPattern",
    "InvalidPattern",
    "Match",
    "Search",
    "StringTemplate",
    "UnfixedPattern",
    "compile_pattern",
    "python_pattern",
    "read_pattern",
    "read_search",
    "read_template",
]
