"""The interface of a capability: its lineages, and its contribution to a control plane."""

from polyver.capability.lineages import FoundLineage, LineageReader, Refusal, condition_reason

__all__ = ["FoundLineage", "LineageReader", "Refusal", "condition_reason"]
