"""What serves the revisions of functions: processes beside this one, Deployments, or others."""

from polyver.engine.runtimes.port import ENDPOINT, Reason, Runtime, Served, Wanted

__all__ = ["ENDPOINT", "Reason", "Runtime", "Served", "Wanted"]
