"""The shape of a capability: its lineages, and its contribution to a control plane."""

from polyver.capability.lineages import Capability, Found, Refusal, condition_reason

__all__ = ["Capability", "Found", "Refusal", "condition_reason"]
