"""What serves the revisions of functions: processes beside this one, Deployments, or others."""

from polyver.compositions.runtimes.interface import ENDPOINT, Reason, Runtime, Served, Wanted
from polyver.compositions.runtimes.metrics import Figures

__all__ = ["ENDPOINT", "Figures", "Reason", "Runtime", "Served", "Wanted"]
