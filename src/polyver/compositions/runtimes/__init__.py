"""Runtimes that serve the revisions of functions: processes, Deployments, external servers."""

from polyver.compositions.runtimes.interface import (
    ENDPOINT,
    DesiredRevision,
    Reason,
    Runtime,
    ServingStatus,
)
from polyver.compositions.runtimes.metrics import Figures

__all__ = ["ENDPOINT", "DesiredRevision", "Figures", "Reason", "Runtime", "ServingStatus"]
