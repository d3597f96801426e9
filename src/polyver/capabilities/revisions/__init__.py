"""revisions: several live revisions of a function, and compositions that choose."""

from polyver.capabilities import Capability
from polyver.capabilities.revisions._manifests import content_digest, lineages
from polyver.capabilities.revisions._policy import (
    COMPOSITIONS,
    COMPOSITIONS_MANUAL,
    REVISIONS,
    selector,
)

__all__ = ["CAPABILITY", "COMPOSITIONS", "COMPOSITIONS_MANUAL", "REVISIONS", "content_digest"]

CAPABILITY = Capability((REVISIONS, COMPOSITIONS, COMPOSITIONS_MANUAL), lineages, selector)
