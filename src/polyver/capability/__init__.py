"""The interface of a capability: one value, its lineages, and its contribution."""

from polyver.capability.lineages import FoundLineage, LineageReader, Refusal, condition_reason

__all__ = ["FoundLineage", "LineageReader", "Refusal", "condition_reason"]
