"""What serves the revisions of functions: processes beside this one, Deployments, or others."""

from polyver.compositions.runtimes.figures import Figures
from polyver.compositions.runtimes.port import ENDPOINT, Reason, Runtime, Served, Wanted

__all__ = ["ENDPOINT", "Figures", "Reason", "Runtime", "Served", "Wanted"]
