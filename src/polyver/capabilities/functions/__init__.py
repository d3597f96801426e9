"""functions: versioned functions that blueprints call."""

from polyver.capabilities import Capability
from polyver.capabilities.functions._catalogue import (
    Catalogue,
    catalogues,
    lineages,
    read_catalogue,
)
from polyver.capabilities.functions._editing import (
    Edited,
    EditRefused,
    add_release,
    deprecate,
    promote,
    remove,
)
from polyver.capabilities.functions._policy import FUNCTIONS, selector

__all__ = [
    "CAPABILITY",
    "FUNCTIONS",
    "Catalogue",
    "EditRefused",
    "Edited",
    "add_release",
    "catalogues",
    "deprecate",
    "promote",
    "read_catalogue",
    "remove",
]

CAPABILITY = Capability((FUNCTIONS,), lineages, selector)
