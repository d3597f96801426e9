"""Admission checks of packages and FunctionRevisions.

These checks do not refuse a write that changes only the metadata of a package. The controller
checks the same rules again, because kube-apiserver may have stored an object without calling the
admission webhook.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Final, Protocol

from polyver.compositions.kinds import FUNCTION_REVISIONS, FUNCTIONS, GROUP, PACKAGES, STORED
from polyver.compositions.names import FORCED
from polyver.compositions.packages import (
    StepFunctionUse,
    check_package,
    check_revision,
    function_of,
    ignored_fields,
    known_revision,
    read_function,
    users_of,
)
from polyver.core import PolyverError, listed
from polyver.core.plain import Object
from polyver.kube.objects.kinds import ResourceKind
from polyver.kube.objects.status import Cause, forbidden, invalid
from polyver.webhook.configurations import AdmissionRegistration

if TYPE_CHECKING:
    from polyver.kube.server.admission import AdmissionRequest

__all__ = [
    "PACKAGES_WANTED",
    "FunctionLookup",
    "FunctionRevisionChecks",
    "PackageChecks",
]

_PLURALS: Final = frozenset(kind.names.plural for kind in PACKAGES)
_WRITES = ("CREATE", "UPDATE")


def _wanted(plural: str, *operations: str) -> AdmissionRegistration:
    return AdmissionRegistration(
        "checks",
        group=GROUP,
        plural=plural,
        versions=(STORED,),
        operations=operations,
        mutates=False,
        scope="Cluster",
    )


PACKAGES_WANTED: Final = (
    *(_wanted(plural, *_WRITES, "DELETE") for plural in sorted(_PLURALS)),
    _wanted(FUNCTION_REVISIONS.names.plural, *_WRITES, "DELETE"),
)
"""The resources and operations for which API servers must call the webhook of these checks."""


class FunctionLookup(Protocol):
    """Reads the stored objects on which the checks of packages depend."""

    async def function(self, name: str) -> Object | None:
        """Return the Function with this name; None if it does not exist."""
        ...

    async def revisions(self, function: str) -> Sequence[Object]:
        """Return the FunctionRevisions of a Function."""
        ...

    async def uses(self, function: str) -> Sequence[StepFunctionUse]:
        """Return the steps of compositions that call a Function."""
        ...


async def _users(installed: FunctionLookup, function: str) -> Mapping[str, tuple[str, ...]]:
    """Return the steps that select each revision of a Function, by the name of the revision.

    The result is empty if `strictReferences` of the Function is false, because revisions in use may
    then be deactivated and deleted.
    """
    found = await installed.function(function)
    if found is None or not read_function(found).strict:
        return {}
    known = [*map(known_revision, await installed.revisions(function))]
    return users_of(function, known, await installed.uses(function))


class PackageChecks:
    """Refuses invalid packages, and the deletion of a Function that compositions use."""

    def __init__(self, installed: FunctionLookup, *, several: bool = True) -> None:
        self._installed = installed
        self._several = several

    def handles(self, kind: ResourceKind, operation: str) -> bool:
        known = kind.group == GROUP and kind.plural in _PLURALS
        return known and operation in (*_WRITES, "DELETE")

    async def mutate(self, review: AdmissionRequest) -> None:
        pass

    async def validate(self, review: AdmissionRequest) -> None:
        if review.subresource:
            return
        if review.operation == "DELETE":
            await self._check_removal(review)
            return
        new, old = review.object, review.old
        if new is None or (old is not None and old.get("spec") == new.get("spec")):
            return
        refusals = check_package(new, several=self._several)
        if refusals:
            raise invalid(review.kind, review.name, [*map(_cause, refusals)])
        if review.kind.plural == FUNCTIONS.names.plural:
            review.warnings += ignored_fields(new)
        else:
            fact = f"a {review.kind.kind} is validated and stored, but not installed"
            review.warnings.append(f"{fact}: only functions are installed")

    async def _check_removal(self, review: AdmissionRequest) -> None:
        if review.kind.plural == FUNCTIONS.names.plural:
            users = await _users(self._installed, review.name)
            _refuse_use(review, {name for each in users.values() for name in each})


class FunctionRevisionChecks:
    """Refuses all changes of a FunctionRevision, except changes of its state, number and metadata.

    In the metadata, the label with the name of the Function must not change. A revision that steps
    select must not be deactivated or deleted.
    """

    def __init__(self, installed: FunctionLookup) -> None:
        self._installed = installed

    def handles(self, kind: ResourceKind, operation: str) -> bool:
        known = (GROUP, FUNCTION_REVISIONS.names.plural)
        return (kind.group, kind.plural) == known and operation in (*_WRITES, "DELETE")

    async def mutate(self, review: AdmissionRequest) -> None:
        pass

    async def validate(self, review: AdmissionRequest) -> None:
        if review.subresource:
            return
        if review.operation == "DELETE":
            if review.old is not None:
                await self._check_use(review, review.old)
            return
        new, old = review.object, review.old
        if new is None or (old is not None and _is_same(new, old)):
            return
        found = await self._installed.revisions(function_of(old or new))
        others = [known_revision(each) for each in found if each["metadata"]["name"] != review.name]
        refusals = check_revision(new, old, others)
        if refusals:
            raise invalid(review.kind, review.name, [*map(_cause, refusals)])
        if old is not None and _is_deactivated(new, old) and not _is_forced(new, old):
            await self._check_use(review, old)

    async def _check_use(self, review: AdmissionRequest, old: Object) -> None:
        users = await _users(self._installed, function_of(old))
        _refuse_use(review, users.get(review.name, ()))


def _is_same(new: Object, old: Object) -> bool:
    return new["spec"] == old["spec"] and function_of(new) == function_of(old)


def _is_deactivated(new: Object, old: Object) -> bool:
    states = [each["spec"]["desiredState"] for each in (old, new)]
    return states == ["Active", "Inactive"]


def _is_forced(new: Object, old: Object) -> bool:
    """Report whether a write sets or changes the annotation that forces a deactivation."""
    said, before = ((each["metadata"].get("annotations") or {}).get(FORCED) for each in (new, old))
    return bool(said) and said != before


def _refuse_use(review: AdmissionRequest, users: Iterable[str]) -> None:
    if users := sorted(users):
        raise forbidden(review.kind, review.name, f"it is selected by {listed(users)}")


def _cause(error: PolyverError) -> Cause:
    hint = f"; {error.hint}" if error.hint else ""
    return Cause(error.at, f"Invalid value: {error.fact}{hint}")
