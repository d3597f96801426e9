"""The client of an API server that controllers use, and the values that it exchanges."""

from polyver.client._clock import Backoff, Clock, SystemClock, Timer, chance, sleep, timestamp
from polyver.client._concurrent import for_each
from polyver.client._informer import Change, Informer, Key
from polyver.client.client import Client, find
from polyver.client.types import (
    CRDS,
    Discovery,
    EventType,
    Executed,
    GroupVersionResource,
    Listing,
    PatchType,
    PodClient,
    Propagation,
    WatchEvent,
    precondition,
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
    "for_each",
    "precondition",
    "preferred",
    "sleep",
    "timestamp",
]
