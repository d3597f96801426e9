"""Rendering of an application, with its resolved versions, into objects.

It applies nothing. Each template language is implemented by an engine behind a small interface.
"""

from polyver.definitions.rendering._engines import (
    Engines,
    GoTemplates,
    TemplateDocument,
    TemplateEngine,
    TemplateInput,
    TemplateOutput,
    UnfitParameters,
)
from polyver.definitions.rendering._render import (
    Rendered,
    RenderedObject,
    RenderingObserver,
    Revisions,
    cluster_version,
    render,
    revisions_of,
)

__all__ = [
    "Engines",
    "GoTemplates",
    "Rendered",
    "RenderedObject",
    "RenderingObserver",
    "Revisions",
    "TemplateDocument",
    "TemplateEngine",
    "TemplateInput",
    "TemplateOutput",
    "UnfitParameters",
    "cluster_version",
    "render",
    "revisions_of",
]
