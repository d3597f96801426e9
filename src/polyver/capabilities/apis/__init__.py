"""apis: one kind, many API versions."""

from polyver.capabilities import Capability
from polyver.capabilities.apis._crds import INJECT_CA_FROM, client_data, conversion_data, crd_of
from polyver.capabilities.apis._definition import (
    Column,
    DefinedVersion,
    Definition,
    InvalidKind,
    Names,
    Scale,
    Webhook,
)
from polyver.capabilities.apis._manifests import definitions_of, lineage_of, lineages
from polyver.capabilities.apis._policy import APIS, selector

__all__ = [
    "APIS",
    "CAPABILITY",
    "INJECT_CA_FROM",
    "Column",
    "DefinedVersion",
    "Definition",
    "InvalidKind",
    "Names",
    "Scale",
    "Webhook",
    "client_data",
    "conversion_data",
    "crd_of",
    "definitions_of",
    "lineage_of",
]

CAPABILITY = Capability((APIS,), lineages, selector)
