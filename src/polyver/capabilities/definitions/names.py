"""Annotations, labels and finalizers, and what the revisions of a definition are called."""

from __future__ import annotations

from typing import Final

__all__ = [
    "API_VERSION",
    "APP_NAME",
    "AUTO_UPDATE",
    "FORCED",
    "IN_USE",
    "LOCK",
    "PUBLISH_VERSION",
    "RECORDED",
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
IN_USE: Final = "definition.polyver.dev/in-use"
"""The finalizer of what applications use."""
RECORDED: Final = "app.polyver.dev/revisions"
"""The finalizer of an application whose revisions are deleted with it."""
APP_NAME: Final = "app.oam.dev/name"
"""The label by which the revisions of an application are found."""
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
