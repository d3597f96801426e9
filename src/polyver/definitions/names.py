"""Annotations, labels and finalizers, and what the revisions of a definition are called."""

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
"""The API version in which a definition was created."""
AUTO_UPDATE: Final = "app.oam.dev/autoUpdate"
PUBLISH_VERSION: Final = "app.oam.dev/publishVersion"
LOCK: Final = "app.polyver.dev/lock"
"""The annotation of an application that gets what is locked there, or nothing."""
FORCED: Final = "definition.polyver.dev/remove-by-force"
"""The annotation that names the versions which may be removed although applications use them."""
ALLOW_DELETION: Final = "polyver.dev/allow-deletion"
"""The annotation of a DefinitionRevision that may delete objects of applications that move to it.

A definition may have it, too: it is copied to the revisions that are made of it."""
IN_USE: Final = "definition.polyver.dev/in-use"
"""The finalizer of what applications use."""
RECORDED: Final = "app.polyver.dev/revisions"
"""The finalizer of an application whose revisions are deleted with it."""
APP_NAME: Final = "app.oam.dev/name"
"""The label by which the revisions of an application are found, and what it applied."""
APP_NAMESPACE: Final = "app.oam.dev/namespace"
APP_COMPONENT: Final = "app.oam.dev/component"
"""Labels of what an application applied: whose it is, and which component's."""
RENDERED: Final = "app.polyver.dev/rendered"
"""The label by which all that applications applied is found."""
APPLYING: Final = "app.polyver.dev/applying"
"""An annotation: what is applied, or was last, as `appliedDigest` has it once all of it is."""
APPLIED_BY: Final = "polyver-applications"
"""Who applies it, as the server knows the owners of fields."""
SYSTEM_NAMESPACE: Final = "vela-system"
"""Where definitions for all namespaces are."""

TYPES: Final = {
    "ComponentDefinition": "Component",
    "TraitDefinition": "Trait",
    "PolicyDefinition": "Policy",
    "WorkflowStepDefinition": "WorkflowStep",
}
"""What revisions call the kinds of definitions."""


def name_label(kind: str) -> str:
    """The label by which the revisions of a definition are found."""
    # KubeVela's names for them, one of which is not like the others.
    return "trait.oam.dev/name" if kind == "TraitDefinition" else f"{kind.lower()}.oam.dev/name"


def revision_name(definition: str, version: object) -> str:
    """What the revision of a version is called.

    >>> revision_name("web", "3.4.0")
    'web-v3.4.0'
    """
    return f"{definition}-v{version}"
