"""functions: versioned functions that blueprints call."""

from polyver.capabilities import Capability
from polyver.capabilities.functions._catalogue import Catalogue, catalogues, lineages
from polyver.capabilities.functions._policy import FUNCTIONS, selector

__all__ = ["CAPABILITY", "FUNCTIONS", "Catalogue", "catalogues"]

CAPABILITY = Capability((FUNCTIONS,), lineages, selector)
