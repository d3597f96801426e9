"""What controllers know of an API server, wherever it runs."""

from polyver.client._clock import Backoff, Clock, SystemClock, Timer, chance, sleep, timestamp
from polyver.client._informer import Change, Informer, Key
from polyver.client.interface import (
    CRDS,
    Client,
    Discovery,
    Event,
    EventType,
    Executed,
    Listing,
    PatchType,
    PodClient,
    Propagation,
    Resource,
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
    "Event",
    "EventType",
    "Executed",
    "Informer",
    "Key",
    "Listing",
    "PatchType",
    "PodClient",
    "Propagation",
    "Resource",
    "SystemClock",
    "Timer",
    "chance",
    "find",
    "preferred",
    "sleep",
    "timestamp",
]
