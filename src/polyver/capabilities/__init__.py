"""Four kinds of building block, each stated in the core's words: they decide and never act."""

from polyver.capabilities._capability import (
    Capability,
    Found,
    Refusal,
    condition_reason,
)

__all__ = ["Capability", "Found", "Refusal", "condition_reason"]
