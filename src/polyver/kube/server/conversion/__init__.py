"""Conversion of custom resources: by webhook as the real server does it, and without one."""

from __future__ import annotations

from polyver.kube.server.conversion.cache import Cache
from polyver.kube.server.conversion.converters import ServedConversions
from polyver.kube.server.conversion.failures import (
    Unreadable,
    unreadable,
    unreadable_list,
    unreadable_update,
)
from polyver.kube.server.conversion.webhook import (
    Conversion,
    InProcess,
    Renaming,
    Webhook,
    conversion_of,
)

__all__ = [
    "Cache",
    "Conversion",
    "InProcess",
    "Renaming",
    "ServedConversions",
    "Unreadable",
    "Webhook",
    "conversion_of",
    "unreadable",
    "unreadable_list",
    "unreadable_update",
]
