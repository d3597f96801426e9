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
"""Annotation of a definition that lists versions to remove even if applications use them."""
ALLOW_DELETION: Final = "polyver.dev/allow-deletion"
"""Annotation of a DefinitionRevision: a move to this revision may delete objects of applications.

A user may also set it on the definition; polyver then copies it to the newest revision.
"""
IN_USE: Final = "definition.polyver.dev/in-use"
"""Finalizer of definitions and revisions. It prevents their deletion while applications use them.
"""
RECORDED: Final = "app.polyver.dev/revisions"
"""Finalizer of applications.

Before an application is deleted, polyver deletes its revisions and its objects in other namespaces.
"""
APP_NAME: Final = "app.oam.dev/name"
"""Label of revisions and applied objects, with the name of their application."""
APP_NAMESPACE: Final = "app.oam.dev/namespace"
APP_COMPONENT: Final = "app.oam.dev/component"
"""Label of applied objects, with the name of their component."""
RENDERED: Final = "app.polyver.dev/rendered"
"""Label of all objects that polyver applied for applications."""
APPLYING: Final = "app.polyver.dev/applying"
"""Annotation of an application: a digest of the inputs that polyver applies now or applied last."""
APPLIED_BY: Final = "polyver-applications"
"""The field manager that polyver uses to apply the objects of applications."""
SYSTEM_NAMESPACE: Final = "vela-system"
"""Namespace of definitions that applications in all namespaces can use."""

TYPES: Final = {
    "ComponentDefinition": "Component",
    "TraitDefinition": "Trait",
    "PolicyDefinition": "Policy",
    "WorkflowStepDefinition": "WorkflowStep",
}
"""The kinds of definitions, with the names that they have in revisions and statuses."""


def name_label(kind: str) -> str:
    """Return the key of the label, on revisions of a definition, that has the definition's name."""
    # These are the labels of KubeVela; the label for traits does not follow the pattern.
    return "trait.oam.dev/name" if kind == "TraitDefinition" else f"{kind.lower()}.oam.dev/name"


def revision_name(definition: str, version: object) -> str:
    """Build the name of the DefinitionRevision of a version.

    >>> revision_name("web", "3.4.0")
    'web-v3.4.0'
    """
    return f"{definition}-v{version}"
