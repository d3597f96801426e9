"""The interface of a capability: its value, its lineages, and its contribution to polyver."""

from polyver.capability.lineages import FoundLineage, LineageReader, Refusal, condition_reason

__all__ = ["FoundLineage", "LineageReader", "Refusal", "condition_reason"]
