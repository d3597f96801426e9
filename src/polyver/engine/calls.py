"""Ways to make calls of functions: in worker processes, and in threads for tests."""

from polyver.engine._calls import Calls, ThreadCalls
from polyver.engine._workers import Lend, Lent, WorkerCalls

__all__ = ["Calls", "Lend", "Lent", "ThreadCalls", "WorkerCalls"]
