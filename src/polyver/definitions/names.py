"""Names of annotations, labels, finalizers and revisions."""

from __future__ import annotations

from typing import Final

__all__ = [
    "ALLOW_DELETION",
    "API_VERSION",
    "APPLIED_BY",
    "APPLYING",
    "APP_COMPONENT",
    "APP_NAME",
    "APP_NAMESPACE",
    "AUTO_UPDATE",
    "FORCED",
    "IN_USE",
    "LOCK",
    "PUBLISH_VERSION",
    "RECORDED",
    "RENDERED",
    "REVISION_NAME",
    "SYSTEM_NAMESPACE",
    "TYPES",
    "name_label",
    "revision_name",
]

REVISION_NAME: Final = "definitionrevision.oam.dev/name"
API_VERSION: Final = "definition.polyver.dev/api-version"
"""Annotation with the API version in which a definition was created."""
AUTO_UPDATE: Final = "app.oam.dev/autoUpdate"
PUBLISH_VERSION: Final = "app.oam.dev/publishVersion"
LOCK: Final = "app.polyver.dev/lock"
"""Annotation with the locked versions of an application. The application uses exactly these
versions.
"""
FORCED: Final = "definition.polyver.dev/remove-by-force"
"""Annotation of a definition: the versions that may be removed although applications use them."""
ALLOW_DELETION: Final = "polyver.dev/allow-deletion"
"""Annotation of a DefinitionRevision that allows a move to this revision to delete objects of
applications. polyver copies the annotation from the definition to its newest revision.
"""
IN_USE: Final = "definition.polyver.dev/in-use"
"""Finalizer of definitions and revisions that applications use."""
RECORDED: Final = "app.polyver.dev/revisions"
"""Finalizer of applications: polyver deletes their revisions and their objects in other namespaces.
"""
APP_NAME: Final = "app.oam.dev/name"
"""Label with the name of an application, on its revisions and applied objects."""
APP_NAMESPACE: Final = "app.oam.dev/namespace"
APP_COMPONENT: Final = "app.oam.dev/component"
"""Labels of applied objects. They name the application's namespace and the component."""
RENDERED: Final = "app.polyver.dev/rendered"
"""Label of all objects that were applied for applications."""
APPLYING: Final = "app.polyver.dev/applying"
"""Annotation of an application: the digest of the inputs that polyver is applying, or has applied
last.
"""
APPLIED_BY: Final = "polyver-applications"
"""Field manager with which the objects of applications are applied."""
SYSTEM_NAMESPACE: Final = "vela-system"
"""Namespace of definitions that applications in all namespaces can use."""

TYPES: Final = {
    "ComponentDefinition": "Component",
    "TraitDefinition": "Trait",
    "PolicyDefinition": "Policy",
    "WorkflowStepDefinition": "WorkflowStep",
}
"""The names that revisions and statuses use for the kinds of definitions."""


def name_label(kind: str) -> str:
    """Return the key of the label with which revisions of this kind name their definition."""
    # These are the labels of KubeVela; the label for traits does not follow the pattern.
    return "trait.oam.dev/name" if kind == "TraitDefinition" else f"{kind.lower()}.oam.dev/name"


def revision_name(definition: str, version: object) -> str:
    """Build the name of the DefinitionRevision of a version.

    >>> revision_name("web", "3.4.0")
    'web-v3.4.0'
    """
    return f"{definition}-v{version}"
