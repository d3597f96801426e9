"""The lineages (kinds with their API versions) of the capability apis, read from manifests."""

from polyver.apis.manifests import lineages
from polyver.apis.policy import APIS, selector
from polyver.capability import LineageReader

__all__ = ["READER"]

READER = LineageReader((APIS,), lineages, selector)
