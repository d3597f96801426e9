"""Rendering: from an application and the versions it uses to the objects that it means.

Nothing is applied here. What a template is written in is the business of an engine, and each engine
is behind one small interface.
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
