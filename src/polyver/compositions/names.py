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
"""Label of a revision, with the name of the package (Function) that it belongs to."""
ENDPOINT: Final = "polyver.dev/endpoint"
"""Annotation with the address of an external server that serves a Function or a FunctionRevision.

The address is HOST:PORT or, without TLS and only for development, http://HOST:PORT.
"""
COPIED: Final = "package.polyver.dev/copied-labels"
"""Annotation of a FunctionRevision that lists the labels which polyver copied from its Function.

The list includes `polyver.dev/endpoint` if polyver copied that address too.
"""
FORCED: Final = "package.polyver.dev/forced"
"""Annotation of a FunctionRevision that a client has deactivated although it was in use.

The client sets the annotation in the same write in which it deactivates the revision.
"""
IN_USE: Final = "package.polyver.dev/in-use"
"""Finalizer of Functions and FunctionRevisions that compositions use.

It prevents their deletion.
"""
SERVED: Final = "package.polyver.dev/served"
"""Finalizer of a FunctionRevision that a runtime serves, or may still serve."""
USED: Final = "composition.polyver.dev/in-use"
"""Finalizer of Compositions and CompositionRevisions that composite resources use.

It prevents their deletion.
"""
DEFINED: Final = "composition.polyver.dev/defined"
"""Finalizer of a CompositeResourceDefinition whose kind is served, or may still be served."""
DELETED_BY_FORCE: Final = "composition.polyver.dev/delete-by-force"
"""Annotation (`true`) of an object that a user may delete although composite resources use it."""
ALLOW_DELETION: Final = "polyver.dev/allow-deletion"
"""Annotation (`true`) of a revision: a move to this revision may delete composed resources.

On a Composition or a Function, the annotation is for the current revision.
"""
COMPOSITION: Final = "crossplane.io/composition-name"
"""Label of a revision, with the name of the Composition that it belongs to."""
CONTENT: Final = "crossplane.io/composition-hash"
"""Label of a CompositionRevision, with the digest of its content."""
COMPOSITE: Final = "crossplane.io/composite"
"""Label of composed resources, with the prefix of their names.

By default, the prefix is the name of the composite resource.
"""
RESOURCE: Final = "crossplane.io/composition-resource-name"
"""Annotation of a composed resource, with its name in the pipeline."""
PAUSED: Final = "crossplane.io/paused"
"""Annotation (`true`) of a composite resource that polyver must not reconcile."""
PREVIOUS: Final = "rollout.polyver.dev/previous-revision"
"""Annotation of a composite resource, with the CompositionRevision that it used before.

If a rollout rolls the current revision back, the composite resource returns to this revision.
"""
CROSSPLANE_HOLDS: Final = "composite.apiextensions.crossplane.io"
"""Finalizer that Crossplane adds to composite resources. polyver never adds it, only removes it."""
CONNECTION: Final = "connection.crossplane.io/v1alpha1"
"""Type of the Secrets that contain connection details."""
LONGEST_LABEL: Final = 63
"""Maximum number of characters in the value of a label."""
LONGEST_NAME: Final = 50
"""Maximum number of characters in the name of a Function.

The name of a revision has 13 more characters than the name of its Function. On a cluster, the
Service of the revision has the same name, and may have at most 63 characters.
"""
_DIGITS = 12
_HEXADECIMAL = re.compile(r"(?:[a-z0-9]+:)?([0-9a-f]{12,})")


def revision_name(function: str, digest: str) -> str:
    """Return the name of the function revision whose content has this digest.

    The digest may also be a package reference.

    >>> revision_name("function-a", "sha256:0123456789abcdef")
    'function-a-0123456789ab'
    """
    found = _HEXADECIMAL.fullmatch(digest)
    digits = found[1] if found else hashlib.sha256(digest.encode()).hexdigest()
    return f"{function}-{digits[:_DIGITS]}"


def composition_revision_name(composition: str, content: str) -> str:
    """Return the name of the CompositionRevision whose content has this digest.

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
