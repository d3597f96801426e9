"""The loop that runs controllers, and the controllers that every control plane has.

The controllers of a capability, such as `polyver.definitions`, are in its own Python package.
"""

from polyver.controllers._loop import Loop, LoopMetrics, QueueClosed, WorkQueue
from polyver.controllers._manager import ControllerManager
from polyver.controllers.controller import Controller, Requeue, Watch, every, exactly
from polyver.controllers.identity import ObjectIdentity, Owner, identity_of
from polyver.controllers.kubernetes.accounts import AccountController
from polyver.controllers.kubernetes.garbage import GarbageCollector
from polyver.controllers.kubernetes.migrations import MigrationController
from polyver.controllers.kubernetes.namespaces import NamespaceController
from polyver.controllers.lease import Leadership, Lease, Terms

__all__ = [
    "AccountController",
    "Controller",
    "ControllerManager",
    "GarbageCollector",
    "Leadership",
    "Lease",
    "Loop",
    "LoopMetrics",
    "MigrationController",
    "NamespaceController",
    "ObjectIdentity",
    "Owner",
    "QueueClosed",
    "Requeue",
    "Terms",
    "Watch",
    "WorkQueue",
    "every",
    "exactly",
    "identity_of",
]
