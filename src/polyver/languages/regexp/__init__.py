"""Regular expressions as the real server understands them, matched in bounded time.

Schemas have them as `pattern`, and rules in CEL as arguments of functions.
"""

from polyver.languages.regexp._groups import Match
from polyver.languages.regexp._match import (
    CompiledPattern,
    compile_pattern,
    python_pattern,
    read_pattern,
)
from polyver.languages.regexp._search import Search, read_search
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
