"""Regular expressions as the real server understands them, matched in bounded time.

Schemas have them as `pattern`, and rules in CEL as arguments of functions.
"""

from polyver.objects.patterns._groups import Match
from polyver.objects.patterns._matching import (
    Pattern,
    compile_pattern,
    python_pattern,
    read_pattern,
)
from polyver.objects.patterns._searching import Search, read_search
from polyver.objects.patterns._syntax import InvalidPattern

__all__ = [
    "InvalidPattern",
    "Match",
    "Pattern",
    "Search",
    "compile_pattern",
    "python_pattern",
    "read_pattern",
    "read_search",
]
