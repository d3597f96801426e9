"""Conversion of custom resources between versions, by a webhook or a converter in this process."""

from __future__ import annotations

from polyver.kube.server.conversion.converters import ServedConversions
from polyver.kube.server.conversion.reviews import (
    UnreadableObject,
    unreadable,
    unreadable_list,
    unreadable_update,
)
from polyver.kube.server.conversion.strategies import (
    Cache,
    ConversionStrategy,
    InProcessConversion,
    RenamingConversion,
    WebhookConversion,
    conversion_of,
    in_turn,
)

__all__ = [
    "Cache",
    "ConversionStrategy",
    "InProcessConversion",
    "RenamingConversion",
    "ServedConversions",
    "UnreadableObject",
    "WebhookConversion",
    "conversion_of",
    "in_turn",
    "unreadable",
    "unreadable_list",
    "unreadable_update",
]
