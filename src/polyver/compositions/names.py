"""Labels, annotations and finalizers, and what revisions and composed resources are called."""

from __future__ import annotations

import hashlib
import re
from typing import Final

__all__ = [
    "ALLOW_DELETION",
    "COMPOSITE",
    "COMPOSITION",
    "CONNECTION",
    "CONTENT",
    "COPIED",
    "CROSSPLANE_HOLDS",
    "DEFINED",
    "DELETED_BY_FORCE",
    "ENDPOINT",
    "FORCED",
    "IN_USE",
    "LONGEST_LABEL",
    "LONGEST_NAME",
    "PACKAGE",
    "PAUSED",
    "RESOURCE",
    "SERVED",
    "USED",
    "composed_name",
    "composition_revision_name",
    "revision_name",
]

PACKAGE: Final = "pkg.crossplane.io/package"
"""The label by which the revisions of a package are found."""
ENDPOINT: Final = "polyver.dev/endpoint"
"""The annotation of a Function or a FunctionRevision that somebody else serves: HOST:PORT, or
http://HOST:PORT for one without TLS, as in development."""
COPIED: Final = "package.polyver.dev/copied-labels"
"""The annotation that tells which labels of a revision are its function's, and whether its
address is."""
FORCED: Final = "package.polyver.dev/forced"
"""The annotation by which somebody takes a revision away from those who use it."""
IN_USE: Final = "package.polyver.dev/in-use"
"""The finalizer of what compositions use."""
SERVED: Final = "package.polyver.dev/served"
"""The finalizer of a revision that is served, or may be."""
USED: Final = "composition.polyver.dev/in-use"
"""The finalizer of compositions and their revisions that composite resources use."""
DEFINED: Final = "composition.polyver.dev/defined"
"""The finalizer of a definition whose kind is served, or may be."""
DELETED_BY_FORCE: Final = "composition.polyver.dev/delete-by-force"
"""The annotation, `true`, of what may be deleted although composite resources use it."""
ALLOW_DELETION: Final = "polyver.dev/allow-deletion"
"""The annotation, `true`, of a revision that may delete what composite resources have; a
Composition or a Function may have it for its revisions."""
COMPOSITION: Final = "crossplane.io/composition-name"
"""The label by which the revisions of a composition are found."""
CONTENT: Final = "crossplane.io/composition-hash"
"""The label of a composition's revision that tells its content."""
COMPOSITE: Final = "crossplane.io/composite"
"""The label of composed resources that tells by which composite resource they are named."""
RESOURCE: Final = "crossplane.io/composition-resource-name"
"""The annotation of a composed resource that tells what it is called in the pipeline."""
PAUSED: Final = "crossplane.io/paused"
"""The annotation by which nothing is done about a composite resource, if it is "true"."""
CROSSPLANE_HOLDS: Final = "composite.apiextensions.crossplane.io"
"""The finalizer that Crossplane gives composite resources. Here they have none."""
CONNECTION: Final = "connection.crossplane.io/v1alpha1"
"""The type of secrets with connection details."""
LONGEST_LABEL: Final = 63
"""Characters that the value of a label may have."""
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


def composition_revision_name(composition: str, content: str) -> str:
    """What the revision of a composition with some content, in hexadecimal digits, is called.

    >>> composition_revision_name("example", "0123456789abcdef")
    'example-0123456'
    """
    return f"{composition}-{content[:7]}"


def composed_name(prefix: str, uid: str, resource: str) -> str:
    """What a composed resource is called if its function does not say: the same each time.

    >>> composed_name("my-bucket", "7d3a", "bucket")
    'my-bucket-0e320350cff2'
    """
    digits = hashlib.sha256(f"{uid}/{resource}".encode()).hexdigest()[:_DIGITS]
    return f"{prefix[: LONGEST_LABEL - _DIGITS - 1].rstrip('-.')}-{digits}"
