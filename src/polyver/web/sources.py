"""The interface by which a capability contributes to the page."""

from polyver.web._informers import PageInformers, PageSource, WatchedCollection
from polyver.web.view_model import (
    LineageKey,
    LineageRequest,
    PageLineage,
    PageModel,
    PageRun,
    PageRunStep,
    PageTable,
    ReleaseDetails,
    UnresolvedRequest,
)

__all__ = [
    "LineageKey",
    "LineageRequest",
    "PageInformers",
    "PageLineage",
    "PageModel",
    "PageRun",
    "PageRunStep",
    "PageSource",
    "PageTable",
    "ReleaseDetails",
    "UnresolvedRequest",
    "WatchedCollection",
]
