"""Regular expressions as the real server understands them, matched in bounded time.

Schemas have them as `pattern`, and rules in CEL as arguments of functions.
"""

from polyver.objects.patterns._matching import (
    Match,
    Pattern,
    compile_pattern,
    python_pattern,
    read_pattern,
)
from polyver.objects.patterns._syntax import InvalidPattern

__all__ = [
    "InvalidPattern",
    "Match",
    "Pattern",
    "compile_pattern",
    "python_pattern",
    "read_pattern",
]
