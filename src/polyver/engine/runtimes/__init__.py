"""What serves the revisions of functions: processes beside this one, Deployments, or others."""

from polyver.engine.runtimes.port import Runtime, Served, Wanted

__all__ = ["Runtime", "Served", "Wanted"]
