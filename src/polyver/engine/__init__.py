"""The one loop for every controller, and the controllers that every control plane has.

Those of a capability are in modules of their own, which are loaded with it.
"""

from polyver.engine._controller import Controller, Result, Watch, every, exactly
from polyver.engine._engine import Engine
from polyver.engine._identity import Identity, Owner, identity_of
from polyver.engine._loop import Loop, Metrics
from polyver.engine._queue import QueueClosed, WorkQueue
from polyver.engine.accounts import AccountController
from polyver.engine.garbage import GarbageCollector
from polyver.engine.lease import Leadership, Lease, Terms
from polyver.engine.namespaces import NamespaceController

__all__ = [
    "AccountController",
    "Controller",
    "Engine",
    "GarbageCollector",
    "Identity",
    "Leadership",
    "Lease",
    "Loop",
    "Metrics",
    "NamespaceController",
    "Owner",
    "QueueClosed",
    "Result",
    "Terms",
    "Watch",
    "WorkQueue",
    "every",
    "exactly",
    "identity_of",
]
