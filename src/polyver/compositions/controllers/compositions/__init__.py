"""Definitions of composite resources and Compositions at work: kinds served, revisions made."""

from polyver.compositions.controllers.compositions._composed import (
    COMPOSITION_REVISIONS,
    COMPOSITIONS,
    DEFINITIONS,
    ComposedOn,
)
from polyver.compositions.controllers.compositions._compositions import CompositionController
from polyver.compositions.controllers.compositions._definitions import CompositeDefinitionController

__all__ = [
    "COMPOSITIONS",
    "COMPOSITION_REVISIONS",
    "DEFINITIONS",
    "ComposedOn",
    "CompositeDefinitionController",
    "CompositionController",
]
