"""Names: labels, annotations, finalizers, revisions and composed resources."""

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
    "PREVIOUS",
    "RESOURCE",
    "SERVED",
    "USED",
    "composed_name",
    "composition_revision_name",
    "revision_name",
]

PACKAGE: Final = "pkg.crossplane.io/package"
"""Label with the name of the package (Function) that a revision belongs to."""
ENDPOINT: Final = "polyver.dev/endpoint"
"""The address of an external server that serves a Function or a FunctionRevision: HOST:PORT, or
http://HOST:PORT without TLS, for development.
"""
COPIED: Final = "package.polyver.dev/copied-labels"
"""Annotation that lists the labels which a revision has copied from its Function. The list includes
`polyver.dev/endpoint` if the address was copied.
"""
FORCED: Final = "package.polyver.dev/forced"
"""Annotation that a client sets when it deactivates a revision in use."""
IN_USE: Final = "package.polyver.dev/in-use"
"""Finalizer of Functions and FunctionRevisions that compositions use."""
SERVED: Final = "package.polyver.dev/served"
"""Finalizer of a FunctionRevision that is served, or that may be served."""
USED: Final = "composition.polyver.dev/in-use"
"""Finalizer of Compositions and CompositionRevisions that composite resources use."""
DEFINED: Final = "composition.polyver.dev/defined"
"""Finalizer of a CompositeResourceDefinition whose kind is served, or may be served."""
DELETED_BY_FORCE: Final = "composition.polyver.dev/delete-by-force"
"""Annotation (`true`) that allows the deletion of an object although composite resources use it."""
ALLOW_DELETION: Final = "polyver.dev/allow-deletion"
"""Annotation (`true`) that allows a revision to delete composed resources. On a Composition or a
Function, it applies to the current revision.
"""
COMPOSITION: Final = "crossplane.io/composition-name"
"""Label with the name of the Composition that a revision belongs to."""
CONTENT: Final = "crossplane.io/composition-hash"
"""Label with the digest of the content of a CompositionRevision."""
COMPOSITE: Final = "crossplane.io/composite"
"""Label of composed resources: the prefix of their names, by default the name of the composite
resource.
"""
RESOURCE: Final = "crossplane.io/composition-resource-name"
"""Annotation of a composed resource with its name in the pipeline."""
PAUSED: Final = "crossplane.io/paused"
"""Annotation (`true`) of a composite resource that must not be reconciled."""
PREVIOUS: Final = "rollout.polyver.dev/previous-revision"
"""Annotation of a composite resource with the CompositionRevision that it used before its current
one. A rollback returns the composite resource to this revision.
"""
CROSSPLANE_HOLDS: Final = "composite.apiextensions.crossplane.io"
"""Finalizer that Crossplane adds to composite resources. polyver only removes it."""
CONNECTION: Final = "connection.crossplane.io/v1alpha1"
"""Type of Secrets with connection details."""
LONGEST_LABEL: Final = 63
"""Maximum length of a label value."""
LONGEST_NAME: Final = 50
"""Maximum length of a function's name. Services are named after revisions, and the name of a
Service has at most 63 characters.
"""
_DIGITS = 12
_HEXADECIMAL = re.compile(r"(?:[a-z0-9]+:)?([0-9a-f]{12,})")


def revision_name(function: str, digest: str) -> str:
    """Return the name of the function revision with this digest.

    The digest may be a package reference.

    >>> revision_name("function-a", "sha256:0123456789abcdef")
    'function-a-0123456789ab'
    """
    found = _HEXADECIMAL.fullmatch(digest)
    digits = found[1] if found else hashlib.sha256(digest.encode()).hexdigest()
    return f"{function}-{digits[:_DIGITS]}"


def composition_revision_name(composition: str, content: str) -> str:
    """Return the name of a CompositionRevision, from the digest of its content.

    >>> composition_revision_name("example", "0123456789abcdef")
    'example-0123456'
    """
    return f"{composition}-{content[:7]}"


def composed_name(prefix: str, uid: str, resource: str) -> str:
    """Return the default name of a composed resource. The name is the same in each reconcile.

    >>> composed_name("my-bucket", "7d3a", "bucket")
    'my-bucket-0e320350cff2'
    """
    digits = hashlib.sha256(f"{uid}/{resource}".encode()).hexdigest()[:_DIGITS]
    return f"{prefix[: LONGEST_LABEL - _DIGITS - 1].rstrip('-.')}-{digits}"
