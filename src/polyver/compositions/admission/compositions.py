"""Admission checks of CompositeResourceDefinitions, Compositions and CompositionRevisions.

These checks do not refuse a write that changes only metadata, with one exception: they check
changes to the labels of a CompositionRevision. The controllers check the same rules again, because
kube-apiserver may have stored an object without calling the admission webhook.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Final, Protocol

from polyver.compositions.decisions import (
    check_composition,
    check_composition_revision,
    check_conversion,
    check_crd,
    check_definition,
    check_stored,
    composition_of,
    composition_warnings,
    is_by_force,
    is_ours,
    is_owned,
    known_composition_revision,
    lost_fields,
    no_longer_defined,
    unheeded_fields,
)
from polyver.compositions.kinds import (
    COMPOSITION_GROUP,
    COMPOSITION_KINDS,
    COMPOSITION_REVISIONS,
    COMPOSITION_STORED,
    COMPOSITIONS,
    DEFINITIONS,
)
from polyver.compositions.names import DELETED_BY_FORCE
from polyver.core import PolyverError, listed
from polyver.core.plain import Object
from polyver.kube.objects.kinds import ResourceKind
from polyver.kube.objects.status import Cause, forbidden, invalid
from polyver.webhook.configurations import AdmissionRegistration

if TYPE_CHECKING:
    from polyver.kube.server.admission import AdmissionRequest

__all__ = [
    "COMPOSITIONS_WANTED",
    "CompositeDefinitionChecks",
    "CompositionChecks",
    "CompositionLookup",
    "CompositionRevisionChecks",
]

_OPERATIONS = ("CREATE", "UPDATE", "DELETE")
COMPOSITIONS_WANTED: Final = tuple(
    AdmissionRegistration(
        "checks",
        group=COMPOSITION_GROUP,
        plural=kind.names.plural,
        versions=(COMPOSITION_STORED,),
        operations=_OPERATIONS,
        mutates=False,
        scope="Cluster",
    )
    for kind in COMPOSITION_KINDS
)
"""The resources and operations for which API servers must call the webhook of these checks."""


class CompositionLookup(Protocol):
    """Reads the stored objects on which the checks of compositions depend."""

    async def crd(self, definition: str) -> Object | None:
        """Return the CRD of a CompositeResourceDefinition, which has the same name.

        Return None if there is no such CRD.
        """
        ...

    async def composites(self, crd: Object) -> Sequence[str]:
        """Return the names of a few objects of a CRD's kind; empty if there are no objects."""
        ...

    async def revisions(self, composition: str) -> Sequence[Object]:
        """Return the CompositionRevisions of a Composition."""
        ...

    async def users(self, revisions: Iterable[Object]) -> Mapping[str, Sequence[str]]:
        """Return the composite resources that use each of these revisions, by revision name."""
        ...


class _Checks:
    """Base of the admission checks of one kind: one check for changes, one for deletions."""

    plural: str

    def handles(self, kind: ResourceKind, operation: str) -> bool:
        known = (COMPOSITION_GROUP, self.plural)
        return (kind.group, kind.plural) == known and operation in _OPERATIONS

    async def mutate(self, review: AdmissionRequest) -> None:
        pass

    async def validate(self, review: AdmissionRequest) -> None:
        if review.subresource:
            return
        if review.operation == "DELETE":
            if review.old is not None and not is_by_force(review.old):
                await self._check_removal(review, review.old)
            return
        new, old = review.object, review.old
        if new is not None and (old is None or self._is_changed(new, old)):
            await self._check(review, new)

    def _is_changed(self, new: Object, old: Object) -> bool:
        return bool(new["spec"] != old["spec"])

    async def _check(self, review: AdmissionRequest, new: Object) -> None:
        raise NotImplementedError

    async def _check_removal(self, review: AdmissionRequest, old: Object) -> None:
        raise NotImplementedError


class CompositeDefinitionChecks(_Checks):
    """Refuses invalid CompositeResourceDefinitions.

    Also refuses to remove a kind that still has objects, or to remove a version in which objects
    may be stored.
    """

    plural = DEFINITIONS.names.plural

    def __init__(self, composed: CompositionLookup) -> None:
        self._composed = composed

    async def _check(self, review: AdmissionRequest, new: Object) -> None:
        _refuse(review, check_definition(new))
        crd = await self._composed.crd(review.name)
        if review.old is None:
            # The new definition has no uid yet. So an existing CRD with its name belongs to another
            # owner.
            review.warnings += [] if crd is None else [str(e) for e in check_crd(_new(new), crd)]
        elif crd is not None and is_ours(crd, review.old):
            risky = no_longer_defined(new, crd) or lost_fields(new, crd)
            there = await self._composed.composites(crd) if risky else ()
            _refuse(review, check_stored(new, crd, there) or check_conversion(new, crd, there))
        review.warnings += unheeded_fields(new)

    async def _check_removal(self, review: AdmissionRequest, old: Object) -> None:
        crd = await self._composed.crd(review.name)
        if crd is not None and is_owned(crd, old):
            _refuse_use(review, await self._composed.composites(crd), "this would also delete {}")


class CompositionChecks(_Checks):
    """Refuses invalid Compositions, and the deletion of Compositions that are in use.

    A Composition is in use if composite resources use one of its revisions.
    """

    plural = COMPOSITIONS.names.plural

    def __init__(self, composed: CompositionLookup, *, several: bool = True) -> None:
        self._composed = composed
        self._several = several

    async def _check(self, review: AdmissionRequest, new: Object) -> None:
        _refuse(review, check_composition(new, several=self._several))
        review.warnings += composition_warnings(new)

    async def _check_removal(self, review: AdmissionRequest, old: Object) -> None:
        del old
        users = await self._composed.users(await self._composed.revisions(review.name))
        _refuse_use(review, {each for some in users.values() for each in some}, "it is used by {}")


class CompositionRevisionChecks(_Checks):
    """Refuses changes to the spec of a CompositionRevision, except to its number.

    Also refuses changes to two labels: the name of the Composition, and the digest of the content.
    Also refuses the deletion of a revision that composite resources use.
    """

    plural = COMPOSITION_REVISIONS.names.plural

    def __init__(self, composed: CompositionLookup, *, several: bool = True) -> None:
        self._composed = composed
        self._several = several

    def _is_changed(self, new: Object, old: Object) -> bool:
        labels = (each["metadata"].get("labels") for each in (new, old))
        return super()._is_changed(new, old) or len({str(each) for each in labels}) > 1

    async def _check(self, review: AdmissionRequest, new: Object) -> None:
        found = await self._composed.revisions(composition_of(review.old or new))
        others = [
            known_composition_revision(each)
            for each in found
            if each["metadata"]["name"] != review.name
        ]
        refusals = check_composition_revision(new, review.old, others, several=self._several)
        _refuse(review, refusals)

    async def _check_removal(self, review: AdmissionRequest, old: Object) -> None:
        users = await self._composed.users([old])
        _refuse_use(review, users.get(review.name, ()), "it is used by {}")


def _new(obj: Object) -> Object:
    return {**obj, "metadata": {**obj["metadata"], "uid": obj["metadata"].get("uid", "")}}


def _refuse(review: AdmissionRequest, refusals: Sequence[PolyverError]) -> None:
    if refusals:
        raise invalid(review.kind, review.name, [*map(_cause, refusals)])


def _refuse_use(review: AdmissionRequest, users: Iterable[str], how: str) -> None:
    if users := sorted(users):
        hint = f"the annotation {DELETED_BY_FORCE}=true deletes it anyway"
        problem = f"{how.format(listed(users))}; {hint}"
        raise forbidden(review.kind, review.name, problem)


def _cause(error: PolyverError) -> Cause:
    hint = f"; {error.hint}" if error.hint else ""
    return Cause(error.at, f"Invalid value: {error.fact}{hint}")
