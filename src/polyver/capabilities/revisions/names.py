"""Labels, annotations and finalizers of packages, and what their revisions are called."""

from __future__ import annotations

import hashlib
import re
from typing import Final

__all__ = [
    "COPIED",
    "ENDPOINT",
    "FORCED",
    "IN_USE",
    "LONGEST_NAME",
    "PACKAGE",
    "SERVED",
    "revision_name",
]

PACKAGE: Final = "pkg.crossplane.io/package"
"""The label by which the revisions of a package are found."""
ENDPOINT: Final = "polyver.dev/endpoint"
"""The annotation of a Function or a FunctionRevision that somebody else serves: HOST:PORT, or
http://HOST:PORT for one without TLS, as in development."""
COPIED: Final = "package.polyver.dev/copied-labels"
"""The annotation that tells which labels of a revision are its function's."""
FORCED: Final = "package.polyver.dev/forced"
"""The annotation by which somebody takes a revision away from those who use it."""
IN_USE: Final = "package.polyver.dev/in-use"
"""The finalizer of what compositions use."""
SERVED: Final = "package.polyver.dev/served"
"""The finalizer of a revision that is served, or may be."""
LONGEST_NAME: Final = 50
"""Services are named after revisions, and have names of 63 characters at most."""
_DIGITS = 12
_HEXADECIMAL = re.compile(r"(?:[a-z0-9]+:)?([0-9a-f]{12,})")


def revision_name(function: str, digest: str) -> str:
    """What the revision with some content is called; a digest may be a mere reference.

    >>> revision_name("function-a", "sha256:0123456789abcdef")
    'function-a-0123456789ab'
    """
    found = _HEXADECIMAL.fullmatch(digest)
    digits = found[1] if found else hashlib.sha256(digest.encode()).hexdigest()
    return f"{function}-{digits[:_DIGITS]}"
