"""Rendering: from an application and the versions it uses to the objects that it means.

Nothing is applied here. What a template is written in is the business of an engine, and each engine
is behind one small interface.
"""

from polyver.definitions.rendering._context import cluster_version
from polyver.definitions.rendering._engines import (
    Document,
    Documents,
    Engine,
    Engines,
    Given,
    UnfitParameters,
)
from polyver.definitions.rendering._gotemplate import GoTemplates
from polyver.definitions.rendering._outputs import Output
from polyver.definitions.rendering._render import Progress, Rendered, render, revisions_of
from polyver.definitions.rendering._sources import Revisions

__all__ = [
    "Document",
    "Documents",
    "Engine",
    "Engines",
    "Given",
    "GoTemplates",
    "Output",
    "Progress",
    "Rendered",
    "Revisions",
    "UnfitParameters",
    "cluster_version",
    "render",
    "revisions_of",
]
