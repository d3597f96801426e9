"""Decides which revisions of a definition to create and to remove, and what to refuse.

The functions use plain data and do no I/O. Admission calls them before a write of a definition; the
controller calls them after the write.
"""

from polyver.definitions.publishing._plan import (
    Decision,
    ForcedRemoval,
    GatePolicy,
    check_gate,
    decide,
    in_use,
)
from polyver.definitions.publishing._revisions import (
    KnownDefinitionRevision,
    holders_of,
    known_revision,
    known_revisions,
    lineage_of,
    removed_of,
    revision_object,
)
from polyver.definitions.publishing._spec import (
    DesiredDefinition,
    Refusal,
    VersionEntry,
    check_writer,
    created_with,
    forced_of,
    other_writer,
    parameters_of,
    read_definition,
    read_parameters,
    wrapped,
)
from polyver.definitions.publishing._status import adoption_of, status_of, with_adoption

__all__ = [
    "Decision",
    "DesiredDefinition",
    "ForcedRemoval",
    "GatePolicy",
    "KnownDefinitionRevision",
    "Refusal",
    "VersionEntry",
    "adoption_of",
    "check_gate",
    "check_writer",
    "created_with",
    "decide",
    "forced_of",
    "holders_of",
    "in_use",
    "known_revision",
    "known_revisions",
    "lineage_of",
    "other_writer",
    "parameters_of",
    "read_definition",
    "read_parameters",
    "removed_of",
    "revision_object",
    "status_of",
    "with_adoption",
    "wrapped",
]
