"""The lineages of definitions, read from manifests."""

from polyver.capability import LineageReader
from polyver.definitions._manifests import lineages
from polyver.definitions.versions import DEFINITIONS_LEGACY, SEMANTIC_POLICIES, selector

__all__ = ["READER"]

READER = LineageReader((*SEMANTIC_POLICIES, DEFINITIONS_LEGACY), lineages, selector)
