"""Lineages of the capability functions, read from manifests."""

from polyver.capability import LineageReader
from polyver.functions.catalogue import lineages
from polyver.functions.policy import FUNCTIONS, selector

__all__ = ["READER"]

READER = LineageReader((FUNCTIONS,), lineages, selector)
