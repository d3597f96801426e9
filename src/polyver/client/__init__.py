"""The interface of controllers to an API server, and its implementations."""

from polyver.client._clock import Backoff, Clock, SystemClock, Timer, chance, sleep, timestamp
from polyver.client._informer import Change, Informer, Key
from polyver.client.interface import (
    CRDS,
    Client,
    Discovery,
    EventType,
    Executed,
    GroupVersionResource,
    Listing,
    PatchType,
    PodClient,
    Propagation,
    WatchEvent,
    find,
    preferred,
)

__all__ = [
    "CRDS",
    "Backoff",
    "Change",
    "Client",
    "Clock",
    "Discovery",
    "EventType",
    "Executed",
    "GroupVersionResource",
    "Informer",
    "Key",
    "Listing",
    "PatchType",
    "PodClient",
    "Propagation",
    "SystemClock",
    "Timer",
    "WatchEvent",
    "chance",
    "find",
    "preferred",
    "sleep",
    "timestamp",
]
