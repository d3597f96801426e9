"""Blueprints: parsing, validation, and the choice of the function versions that phases call."""

from polyver.functions.blueprints._resolution import (
    ActionRefused,
    PhaseRefused,
    ResolvedAction,
    ResolvedPhase,
    resolution_of,
    resolve_action,
    resolve_phase,
    selector_of,
)
from polyver.functions.blueprints._spec import (
    ActionVersionRequest,
    Blueprint,
    BlueprintFinding,
    ParsedAction,
    Phase,
    blueprint_of,
    blueprints_in,
    requests_in,
)
from polyver.functions.blueprints._validation import (
    UNTIL,
    PhaseFunctionUse,
    check_blueprint,
    losses_at,
    losses_between,
    uses_in,
)

__all__ = [
    "UNTIL",
    "ActionRefused",
    "ActionVersionRequest",
    "Blueprint",
    "BlueprintFinding",
    "ParsedAction",
    "Phase",
    "PhaseFunctionUse",
    "PhaseRefused",
    "ResolvedAction",
    "ResolvedPhase",
    "blueprint_of",
    "blueprints_in",
    "check_blueprint",
    "losses_at",
    "losses_between",
    "requests_in",
    "resolution_of",
    "resolve_action",
    "resolve_phase",
    "selector_of",
    "uses_in",
]
