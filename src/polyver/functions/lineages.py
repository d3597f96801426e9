"""The lineages of blueprint functions, read from the catalogues in manifests."""

from polyver.capability import LineageReader
from polyver.functions.catalogue import lineages
from polyver.functions.policy import FUNCTIONS, selector

__all__ = ["READER"]

READER = LineageReader((FUNCTIONS,), lineages, selector)
