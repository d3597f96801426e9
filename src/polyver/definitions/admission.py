"""Admission checks of definitions, their revisions and applications.

These checks do not refuse a write that changes only labels, or only annotations that no check
reads. The controllers check the same rules again, because kube-apiserver may have stored an object
without calling the admission webhook.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final, Protocol

from polyver.core import PolyverError
from polyver.core.plain import Object
from polyver.definitions import uses
from polyver.definitions.kinds import (
    APPLICATION_REVISIONS,
    APPLICATIONS,
    DEFINITIONS,
    GROUP,
    REVISIONS,
)
from polyver.definitions.names import API_VERSION, FORCED
from polyver.definitions.publishing import (
    Decision,
    DesiredDefinition,
    GatePolicy,
    KnownDefinitionRevision,
    check_writer,
    decide,
    forced_of,
    holders_of,
    in_use,
    known_revision,
    lineage_of,
    read_definition,
    removed_of,
)
from polyver.definitions.support import definition_warnings, unsupported_fields
from polyver.kube.objects.kinds import ResourceKind
from polyver.kube.objects.status import Cause, forbidden, invalid
from polyver.webhook.configurations import AdmissionRegistration

if TYPE_CHECKING:
    from polyver.kube.server.admission import AdmissionRequest

__all__ = [
    "DEFINITIONS_WANTED",
    "ApplicationChecks",
    "DefinitionChecks",
    "DefinitionLookup",
    "RevisionChecks",
]

_PLURALS: Final = {kind.names.plural: kind for kind in DEFINITIONS}
_WRITES = ("CREATE", "UPDATE")


def _wanted(name: str, kind: Any, *operations: str, mutates: bool = False) -> AdmissionRegistration:
    return AdmissionRegistration(
        name,
        group=GROUP,
        plural=kind.names.plural,
        # `exact`: the checks must get the object in the API version in which the client writes it.
        versions=tuple(kind.versions),
        operations=operations,
        mutates=mutates,
        exact=True,
    )


# Creating and updating definitions is covered already by the webhook rules for kinds with a
# conversion.
DEFINITIONS_WANTED: Final = (
    *(_wanted("records", kind, *_WRITES, mutates=True) for kind in DEFINITIONS),
    *(_wanted("removals", kind, "DELETE") for kind in DEFINITIONS),
    _wanted("checks", REVISIONS, "UPDATE", "DELETE"),
    _wanted("checks", APPLICATION_REVISIONS, "UPDATE"),
    _wanted("checks", APPLICATIONS, *_WRITES),
)
"""The resources and operations for which API servers must call the webhook of these checks.

Writes of definitions have no entry for validation here, because the webhook rules for kinds with a
conversion include them.
"""


class DefinitionLookup(Protocol):
    """Reads the stored objects on which the checks depend."""

    async def revisions(self, kind: str, namespace: str, name: str) -> Sequence[Object]:
        """Return the DefinitionRevisions of a definition."""
        ...

    async def holders(self, namespace: str) -> Sequence[Object]:
        """Return all DefinitionRevisions of a namespace.

        The checks read only their metadata, so the other fields may be missing.
        """
        ...

    async def uses(self, kind: str, namespace: str, name: str) -> Sequence[uses.DefinitionUse]:
        """Return the references that applications have to a definition."""
        ...

    async def definition(self, kind: str, namespace: str, name: str) -> Object | None:
        """Return a definition in v2beta1, or None if it does not exist."""
        ...


class DefinitionChecks:
    """Records the API version in which a definition is created, and refuses invalid definitions."""

    def __init__(self, published: DefinitionLookup, *, gate: GatePolicy = "refuse") -> None:
        self._published = published
        self._gate = gate

    def handles(self, kind: ResourceKind, operation: str) -> bool:
        known = kind.group == GROUP and kind.plural in _PLURALS
        return known and operation in (*_WRITES, "DELETE")

    async def mutate(self, review: AdmissionRequest) -> None:
        if review.object is None or review.subresource or review.operation == "DELETE":
            return
        note(review.object, review.old, review.kind.version)

    async def validate(self, review: AdmissionRequest) -> None:
        if review.subresource:
            return
        if review.operation == "DELETE":
            await self._check_removal(review)
            return
        new, old = review.object, review.old
        if new is None:
            return
        if old is not None and old.get("spec") == new.get("spec"):
            forced = [_annotations(each).get(FORCED) for each in (old, new)]
            if forced[0] == forced[1]:
                return  # the write changes neither the spec nor the versions to remove by force
        decision = await self.decided(new, old, review.kind.version)
        if decision.refusals:
            raise invalid(review.kind, review.name, [*map(_cause, decision.refusals)])
        review.warnings += [*decision.warnings, *map(str, decision.forced)]

    async def decided(self, new: Object, old: Object | None, version: str) -> Decision:
        """Decide which versions a write of a definition publishes and removes.

        If the write must be refused, the decision contains the refusals.
        """
        refused = check_writer(new, old, version) if old is not None else []
        definition, problems = read_definition(new)
        if refused or problems:
            return Decision(refusals=(*refused, *problems))
        names = definition.kind, definition.namespace, definition.name
        known = [*filter(None, map(known_revision, await self._published.revisions(*names)))]
        holders = holders_of(await self._published.holders(definition.namespace))
        removed = removed_of(old, definition, known) if old is not None else []
        # Run this in a thread: comparing many schemas takes time, and must not block the event
        # loop.
        decision = await asyncio.to_thread(
            decide, definition, known, removed, holders=holders, gate=self._gate
        )
        if decision.remove:
            found = await self._published.uses(*names)
            decision = in_use(decision, found, definition.forced)
        warnings = (*decision.warnings, *definition_warnings(definition.kind, decision))
        return replace(decision, warnings=warnings)

    async def _check_removal(self, review: AdmissionRequest) -> None:
        if review.old is None:
            return
        definition, _ = read_definition(review.old)
        names = definition.kind, definition.namespace, definition.name
        found = map(known_revision, await self._published.revisions(*names))
        _refuse_use(review, definition, [*filter(None, found)], await self._published.uses(*names))


def _annotations(obj: Object) -> Object:
    return obj["metadata"].get("annotations") or {}


def note(obj: Object, old: Object | None, version: str) -> None:
    """Set the annotation that records the API version in which a definition was created.

    If the client has set this annotation itself, its value is replaced.
    """
    metadata = obj["metadata"]
    before = ((old or {}).get("metadata") or {}).get("annotations") or {}
    first = version if old is None else before.get(API_VERSION)
    if first is not None:
        metadata["annotations"] = {**(metadata.get("annotations") or {}), API_VERSION: first}


def _refuse_use(
    review: AdmissionRequest,
    definition: DesiredDefinition,
    known: Sequence[KnownDefinitionRevision],
    found: Sequence[uses.DefinitionUse],
    *,
    only: str = "",
) -> None:
    """Refuse to delete revisions that applications use.

    `only` is the name of the revision to delete. If it is empty, the whole definition is deleted,
    with all its revisions in `known`.
    """
    going = tuple(each for each in known if not only or each.name == only)
    before = lineage_of(definition, known)
    decision = in_use(Decision(remove=going, before=before), found, definition.forced)
    if decision.refusals:
        told = "; ".join(each.fact for each in decision.refusals)
        raise forbidden(review.kind, review.name, told)
    review.warnings += map(str, decision.forced)


def _cause(error: PolyverError) -> Cause:
    hint = f"; {error.hint}" if error.hint else ""
    return Cause(error.at, f"Invalid value: {error.fact}{hint}")


class RevisionChecks:
    """Refuses to change the spec of a revision, and to delete a DefinitionRevision in use."""

    def __init__(self, published: DefinitionLookup) -> None:
        self._published = published

    def handles(self, kind: ResourceKind, operation: str) -> bool:
        if kind.group != GROUP:
            return False
        if kind.plural == REVISIONS.names.plural:
            return operation in ("UPDATE", "DELETE")
        return kind.plural == APPLICATION_REVISIONS.names.plural and operation == "UPDATE"

    async def mutate(self, review: AdmissionRequest) -> None:
        pass

    async def validate(self, review: AdmissionRequest) -> None:
        if review.subresource or review.old is None:
            return
        if review.operation == "DELETE":
            await self._check_removal(review, review.old)
        elif review.object is not None and review.object.get("spec") != review.old.get("spec"):
            cause = Cause("spec", "Invalid value: a revision is immutable; create another one")
            raise invalid(review.kind, review.name, [cause])

    async def _check_removal(self, review: AdmissionRequest, old: Object) -> None:
        [(kind, name)] = holders_of([old]).values()
        if not kind:
            return
        names = kind, review.namespace, name
        known = filter(None, map(known_revision, await self._published.revisions(*names)))
        definition = await self._definition(*names)
        found = await self._published.uses(*names)
        _refuse_use(review, definition, [*known], found, only=review.name)

    async def _definition(self, kind: str, namespace: str, name: str) -> DesiredDefinition:
        """Read a definition, for the check whether one of its revisions may be deleted.

        The field `forced` of the result has the versions that the annotation
        `definition.polyver.dev/remove-by-force` lists. It lacks the versions that the definition
        still publishes, unless the definition is being deleted.
        """
        obj = await self._published.definition(kind, namespace, name)
        if obj is None:
            return DesiredDefinition(kind, namespace, name, (), whole=True)
        found, _ = read_definition(obj)
        return replace(found, entries=(), forced=forced_of(found, obj))


class ApplicationChecks:
    """Refuses applications with contradictory annotations, an invalid lock or an unsuitable name.

    An application with unsupported fields is accepted with a warning, but the controller applies
    none of its objects.
    """

    def handles(self, kind: ResourceKind, operation: str) -> bool:
        known = (GROUP, APPLICATIONS.names.plural)
        return (kind.group, kind.plural) == known and operation in _WRITES

    async def mutate(self, review: AdmissionRequest) -> None:
        pass

    async def validate(self, review: AdmissionRequest) -> None:
        if review.object is None or review.subresource:
            return
        found = [*map(str, unsupported_fields(review.object))]
        if review.old is not None and review.old.get("spec") == review.object.get("spec"):
            # Warn again only if the write changes one of the unsupported fields.
            known = {*map(str, unsupported_fields(review.old))}
            found = [each for each in found if each not in known]
        review.warnings += [f"{each}; the application is not applied" for each in found]
        if review.old is not None and _annotations(review.old) == _annotations(review.object):
            # a value that was stored without these checks must not make all later writes fail
            return
        try:
            uses.check_application(review.object)
        except PolyverError as error:
            raise invalid(review.kind, review.name, [_cause(error)]) from None
