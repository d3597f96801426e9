"""Rendering: makes the objects of an application from the templates of its resolved versions.

Nothing is applied here. For each template language there is an engine, which implements the
protocol `TemplateEngine`.
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
