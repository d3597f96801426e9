"""Controllers of CompositeResourceDefinitions and Compositions."""

from polyver.compositions.controllers.compositions._compositions import CompositionController
from polyver.compositions.controllers.compositions._definitions import CompositeDefinitionController
from polyver.compositions.controllers.compositions._snapshot import (
    COMPOSITION_REVISIONS,
    COMPOSITIONS,
    DEFINITIONS,
    ClientCompositionLookup,
)

__all__ = [
    "COMPOSITIONS",
    "COMPOSITION_REVISIONS",
    "DEFINITIONS",
    "ClientCompositionLookup",
    "CompositeDefinitionController",
    "CompositionController",
]
