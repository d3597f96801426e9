"""Ways to make calls of functions: in worker processes, and in threads for tests."""

from polyver.functions.controllers._calls import Calls, ThreadCalls
from polyver.functions.controllers._workers import Lend, Lent, WorkerCalls

__all__ = ["Calls", "Lend", "Lent", "ThreadCalls", "WorkerCalls"]
