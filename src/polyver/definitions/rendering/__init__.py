"""Rendering of an application, with its resolved versions, into objects.

It applies nothing. Each template language is implemented by an engine behind a small interface.
"""

from polyver.definitions.rendering._context import cluster_version
from polyver.definitions.rendering._engines import (
    Engines,
    TemplateDocument,
    TemplateEngine,
    TemplateInput,
    TemplateOutput,
    UnfitParameters,
)
from polyver.definitions.rendering._gotemplate import GoTemplates
from polyver.definitions.rendering._outputs import RenderedObject
from polyver.definitions.rendering._render import Rendered, RenderingObserver, render, revisions_of
from polyver.definitions.rendering._sources import Revisions

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
