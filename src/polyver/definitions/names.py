"""Annotations, labels and finalizers, and names of revisions."""

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
"""Annotation of an application with its locked versions; the application uses no others."""
FORCED: Final = "definition.polyver.dev/remove-by-force"
"""Annotation with the versions that may be removed although applications use them."""
ALLOW_DELETION: Final = "polyver.dev/allow-deletion"
"""Annotation of a DefinitionRevision that may delete objects of applications that move to it. It is
copied from the definition when the revision is created.
"""
IN_USE: Final = "definition.polyver.dev/in-use"
"""Finalizer of definitions and revisions that applications use."""
RECORDED: Final = "app.polyver.dev/revisions"
"""Finalizer of an application whose revisions are deleted with it."""
APP_NAME: Final = "app.oam.dev/name"
"""Label with the name of an application, on its revisions and applied objects."""
APP_NAMESPACE: Final = "app.oam.dev/namespace"
APP_COMPONENT: Final = "app.oam.dev/component"
"""Labels of applied objects: their application's namespace, and their component."""
RENDERED: Final = "app.polyver.dev/rendered"
"""Label of all objects that applications applied."""
APPLYING: Final = "app.polyver.dev/applying"
"""Annotation with the digest of the inputs that are being applied, or were applied last."""
APPLIED_BY: Final = "polyver-applications"
"""Field manager of applied objects."""
SYSTEM_NAMESPACE: Final = "vela-system"
"""Namespace of definitions for all namespaces."""

TYPES: Final = {
    "ComponentDefinition": "Component",
    "TraitDefinition": "Trait",
    "PolicyDefinition": "Policy",
    "WorkflowStepDefinition": "WorkflowStep",
}
"""Names of the kinds of definitions in revisions."""


def name_label(kind: str) -> str:
    """Return the label with the definition's name on its revisions."""
    # KubeVela's names for them, one of which is irregular.
    return "trait.oam.dev/name" if kind == "TraitDefinition" else f"{kind.lower()}.oam.dev/name"


def revision_name(definition: str, version: object) -> str:
    """Return the name of a version's revision.

    >>> revision_name("web", "3.4.0")
    'web-v3.4.0'
    """
    return f"{definition}-v{version}"
