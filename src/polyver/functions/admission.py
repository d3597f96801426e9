"""Admission checks of Blueprints and ActionSets.

A blueprint is checked only when its actions change. So a user can change its metadata even if the
blueprint uses a function version that was removed since the last check.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any, Final

from polyver.core import InvalidVersion, SemVer
from polyver.functions.blueprints import BlueprintFinding, blueprint_of, check_blueprint
from polyver.functions.controllers.gates import FunctionGates
from polyver.functions.kinds import ACTION_SETS, BLUEPRINTS
from polyver.kube.objects.kinds import ResourceKind
from polyver.kube.objects.status import Cause, forbidden, invalid
from polyver.webhook.configurations import AdmissionRegistration

if TYPE_CHECKING:
    from polyver.functions.registering import Functions
    from polyver.kube.server.admission import AdmissionRequest

__all__ = ["BLUEPRINTS_WANTED", "ActionSetChecks", "BlueprintChecks"]

_WRITES = ("CREATE", "UPDATE")
_UNDER_WAY = ("pending", "running")
_ONCE = "its spec is immutable; cancel or delete it, and create another ActionSet"
BLUEPRINTS_WANTED: Final = tuple(
    AdmissionRegistration(
        "checks",
        group=kind.group,
        plural=kind.names.plural,
        versions=tuple(kind.versions),
        operations=_WRITES,
        mutates=False,
    )
    for kind in (BLUEPRINTS, ACTION_SETS)
)
"""The resources and operations for which API servers must call the webhook of these checks."""


class BlueprintChecks:
    """Refuses blueprints that use unknown functions, unknown versions or invalid arguments."""

    def __init__(self, gates: FunctionGates) -> None:
        self._gates = gates

    def handles(self, kind: ResourceKind, operation: str) -> bool:
        known = (BLUEPRINTS.group, BLUEPRINTS.names.plural)
        return (kind.group, kind.plural) == known and operation in _WRITES

    async def mutate(self, review: AdmissionRequest) -> None:
        pass

    async def validate(self, review: AdmissionRequest) -> None:
        if review.object is None or review.subresource or _is_same(review, "actions"):
            return
        # Run the check in a thread: a large blueprint takes time, and must not block the event
        # loop.
        functions = await self._gates.functions()
        findings = await asyncio.to_thread(_findings, review.object, functions)
        causes = [
            Cause(each.field, f"Invalid value: {each.fact}{f'; {each.hint}' if each.hint else ''}")
            for each in findings
            if each.is_error
        ]
        if causes:
            raise invalid(review.kind, review.name, causes)
        review.warnings += [each.fact for each in findings if not each.is_unknown]


def _findings(obj: dict[str, Any], functions: Functions) -> list[BlueprintFinding]:
    blueprint, _ = blueprint_of(obj)
    if blueprint is None:
        # the object violates the schema, and the API server refuses it for that reason
        return []
    return list(check_blueprint(blueprint, functions))


class ActionSetChecks:
    """Refuses an invalid preferred version, and changes to the spec of a running ActionSet.

    An ActionSet runs only once, with the spec that it had when it started.
    """

    def handles(self, kind: ResourceKind, operation: str) -> bool:
        known = (ACTION_SETS.group, ACTION_SETS.names.plural)
        return (kind.group, kind.plural) == known and operation in _WRITES

    async def mutate(self, review: AdmissionRequest) -> None:
        pass

    async def validate(self, review: AdmissionRequest) -> None:
        if review.object is None or review.subresource or _is_same(review, "spec"):
            return
        state = ((review.old or {}).get("status") or {}).get("state")
        if state in _UNDER_WAY:
            raise forbidden(review.kind, review.name, f"it is {state}: {_ONCE}")
        if state:
            review.warnings.append(f"the ActionSet has ended ({state}); this edit has no effect")
        spec: dict[str, Any] = review.object.get("spec") or {}
        causes = []
        for number, action in enumerate(spec.get("actions") or ()):
            try:
                SemVer.complete(action.get("preferredVersion") or "0")
            except InvalidVersion as error:
                field = f"spec.actions[{number}].preferredVersion"
                causes.append(Cause(field, f"Invalid value: {error.fact}"))
        if causes:
            raise invalid(review.kind, review.name, causes)


def _is_same(review: AdmissionRequest, field: str) -> bool:
    """Report whether a write leaves the field `field` of the object unchanged."""
    assert review.object is not None
    return review.old is not None and review.old.get(field) == review.object.get(field)
