"""What serves the revisions of functions: processes beside this one, Deployments, or others."""

from polyver.engine.runtimes.port import ENDPOINT, Runtime, Served, Wanted

__all__ = ["ENDPOINT", "Runtime", "Served", "Wanted"]
