"""Lineages of the capability compositions, read from manifests."""

from polyver.capability import LineageReader
from polyver.compositions._manifests import lineages
from polyver.compositions._policy import COMPOSITIONS, COMPOSITIONS_MANUAL, REVISIONS, selector

__all__ = ["CAPABILITY"]

CAPABILITY = LineageReader((REVISIONS, COMPOSITIONS, COMPOSITIONS_MANUAL), lineages, selector)
