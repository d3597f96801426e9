"""apis: one kind, many API versions."""

from polyver.capabilities import Capability
from polyver.capabilities.apis._manifests import lineages
from polyver.capabilities.apis._policy import APIS, selector

__all__ = ["APIS", "CAPABILITY"]

CAPABILITY = Capability((APIS,), lineages, selector)
