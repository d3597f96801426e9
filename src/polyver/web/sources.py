"""The interface by which a capability contributes to the page."""

from polyver.web._informers import PageInformers, PageSource, WatchedCollection
from polyver.web._rollout_model import (
    PageCheck,
    PageCommand,
    PageEvent,
    PageExample,
    PageGroup,
    PagePreflight,
    PageRollout,
    PageRolloutPolicy,
    PageRolloutStep,
    PublisherKey,
)
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
    "PageCheck",
    "PageCommand",
    "PageEvent",
    "PageExample",
    "PageGroup",
    "PageInformers",
    "PageLineage",
    "PageModel",
    "PagePreflight",
    "PageRollout",
    "PageRolloutPolicy",
    "PageRolloutStep",
    "PageRun",
    "PageRunStep",
    "PageSource",
    "PageTable",
    "PublisherKey",
    "ReleaseDetails",
    "UnresolvedRequest",
    "WatchedCollection",
]
