"""Implementations of calls: in worker processes, and in threads for tests."""

from polyver.functions.controllers._calls import FunctionCaller, ThreadCalls
from polyver.functions.controllers._workers import Lend, WorkerAccess, WorkerCalls

__all__ = ["FunctionCaller", "Lend", "ThreadCalls", "WorkerAccess", "WorkerCalls"]
