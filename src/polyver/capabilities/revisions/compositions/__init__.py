"""Compositions: kinds of composite resources, revisions, and who gets what, decided on plain data.

Admission asks before a write, controllers afterwards; both ask the same functions.
"""

from polyver.capabilities.revisions.compositions._checks import (
    check_composition,
    check_pipeline,
    composition_warnings,
)
from polyver.capabilities.revisions.compositions._choosing import (
    Candidate,
    Chosen,
    Composite,
    candidate_of,
    choose_composition,
    choose_revision,
    composite_entry,
    read_composite,
    references_patch,
)
from polyver.capabilities.revisions.compositions._defining import (
    APPLIER,
    check_crd,
    check_stored,
    conversion_change,
    crd_content,
    definition_status,
    is_by_force,
    is_going,
    is_ours,
    no_longer_defined,
)
from polyver.capabilities.revisions.compositions._definitions import (
    CATEGORY,
    Defined,
    check_definition,
    definition_crd,
    read_definition,
    unheeded_fields,
)
from polyver.capabilities.revisions.compositions._revisions import (
    Changes,
    KnownRevision,
    check_composition_revision,
    composition_changes,
    composition_lineage,
    composition_of,
    composition_revision_object,
    composition_revision_patch,
    known_composition_revision,
    revisions_after,
)
from polyver.capabilities.revisions.compositions._steps import (
    Installed,
    Secret,
    Step,
    resolve_steps,
)

__all__ = [
    "APPLIER",
    "CATEGORY",
    "Candidate",
    "Changes",
    "Chosen",
    "Composite",
    "Defined",
    "Installed",
    "KnownRevision",
    "Secret",
    "Step",
    "candidate_of",
    "check_composition",
    "check_composition_revision",
    "check_crd",
    "check_definition",
    "check_pipeline",
    "check_stored",
    "choose_composition",
    "choose_revision",
    "composite_entry",
    "composition_changes",
    "composition_lineage",
    "composition_of",
    "composition_revision_object",
    "composition_revision_patch",
    "composition_warnings",
    "conversion_change",
    "crd_content",
    "definition_crd",
    "definition_status",
    "is_by_force",
    "is_going",
    "is_ours",
    "known_composition_revision",
    "no_longer_defined",
    "read_composite",
    "read_definition",
    "references_patch",
    "resolve_steps",
    "revisions_after",
    "unheeded_fields",
]
