"""Draft a Conversion from the schemas of the versions of a kind."""

from polyver.apis.suggesting._drafting import SuggestedRule
from polyver.apis.suggesting._edges import SuggestedConversion, SuggestedEdge, suggest
from polyver.apis.suggesting._text import suggestion_data, suggestion_text

__all__ = [
    "SuggestedConversion",
    "SuggestedEdge",
    "SuggestedRule",
    "suggest",
    "suggestion_data",
    "suggestion_text",
]
