"""apis: one kind, many API versions."""

from polyver.capabilities import Capability
from polyver.capabilities.apis._crds import conversion_data, crd_of
from polyver.capabilities.apis._definition import (
    Column,
    DefinedVersion,
    Definition,
    InvalidKind,
    Names,
    Scale,
)
from polyver.capabilities.apis._manifests import definitions_of, lineage_of, lineages
from polyver.capabilities.apis._policy import APIS, selector

__all__ = [
    "APIS",
    "CAPABILITY",
    "Column",
    "DefinedVersion",
    "Definition",
    "InvalidKind",
    "Names",
    "Scale",
    "conversion_data",
    "crd_of",
    "definitions_of",
    "lineage_of",
]

CAPABILITY = Capability((APIS,), lineages, selector)
