"""The one loop for every controller, and the controllers that every control plane has.

Those of a capability are in modules of their own, which are loaded with it.
"""

from polyver.controllers._engine import Engine
from polyver.controllers._loop import Loop, Metrics
from polyver.controllers._queue import QueueClosed, WorkQueue
from polyver.controllers.controller import Controller, Result, Watch, every, exactly
from polyver.controllers.identity import Identity, Owner, identity_of
from polyver.controllers.kubernetes.accounts import AccountController
from polyver.controllers.kubernetes.garbage import GarbageCollector
from polyver.controllers.kubernetes.namespaces import NamespaceController
from polyver.controllers.lease import Leadership, Lease, Terms

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
