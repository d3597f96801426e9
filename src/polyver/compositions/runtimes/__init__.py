"""Runtimes that serve function revisions: processes, Deployments, or external servers."""

from polyver.compositions.runtimes.interface import (
    ENDPOINT,
    DesiredRevision,
    FunctionReach,
    Reason,
    Runtime,
    ServingStatus,
)
from polyver.compositions.runtimes.metrics import Figures

__all__ = [
    "ENDPOINT",
    "DesiredRevision",
    "Figures",
    "FunctionReach",
    "Reason",
    "Runtime",
    "ServingStatus",
]
