"""Lineages of the capability functions, read from manifests."""

from polyver.capability import LineageReader
from polyver.functions.catalogue import lineages
from polyver.functions.policy import FUNCTIONS, selector

__all__ = ["CAPABILITY"]

CAPABILITY = LineageReader((FUNCTIONS,), lineages, selector)
