"""Regular expressions of Go's package `regexp`, matched in linear time.

Schemas use them in `pattern`, CEL rules and templates in functions.
"""

from polyver.languages.regexp._match import (
    CompiledPattern,
    compile_pattern,
    python_pattern,
    read_pattern,
)
from polyver.languages.regexp._search import Match, Search, read_search
from polyver.languages.regexp.syntax import InvalidPattern

__all__ = [
    "CompiledPattern",
    "InvalidPattern",
    "Match",
    "Search",
    "compile_pattern",
    "python_pattern",
    "read_pattern",
    "read_search",
]
