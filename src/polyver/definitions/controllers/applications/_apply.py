"""Applies the rendered objects of applications, but never changes objects of other owners.

`ApplicationOutputs` is an index of all applied objects in their current state. To keep it up to
date, the controller watches the kinds of these objects; the watches report only objects with
polyver's label.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final
from weakref import WeakValueDictionary

from msgspec import Struct

from polyver.client import Client, GroupVersionResource, Key
from polyver.controllers.owned_objects.index import AppliedObjects as _Outputs
from polyver.controllers.owned_objects.index import number_of
from polyver.controllers.owned_objects.inventory import AppliedObject, part_of
from polyver.core.plain import Object
from polyver.definitions.names import APP_NAME, APP_NAMESPACE, APPLIED_BY, RENDERED
from polyver.definitions.rendered_objects import Placed, fields_digest, name_of, others_in, stranger
from polyver.definitions.status import applied_resource
from polyver.kube.objects.health import Health, health_of
from polyver.kube.objects.kinds import ResourceKind
from polyver.kube.objects.owners import controller_of
from polyver.kube.objects.status import ApiError

__all__ = [
    "ApplicationApplier",
    "ApplicationApplyProblem",
    "ApplicationApplyResult",
    "ApplicationOutputs",
    "ObservedApplicationObject",
    "part_in",
    "problem_of",
    "seen_in",
]

_TRIED_AGAIN: Final = (408, 429)


@dataclass(frozen=True, slots=True)
class ApplicationApplyProblem:
    """The reason why an object could not be applied."""

    reason: str
    message: str
    error: Exception | None = None
    """The error of the API server if it is transient; otherwise None."""

    def __str__(self) -> str:
        return self.message


@dataclass(slots=True)
class ApplicationApplyResult:
    """The result of applying the objects of an application."""

    resources: list[dict[str, str]] = field(default_factory=list)
    """Entries of `appliedResources` in the status."""
    problems: list[ApplicationApplyProblem] = field(default_factory=list)
    taken_back: list[str] = field(default_factory=list)
    """One message for each object in which polyver reverted changes of other clients."""
    is_over: bool = True
    """False if another client changed one of the objects after polyver had applied it.

    The application must then be reconciled again.
    """


class ApplicationApplier:
    """Applies the objects of applications, and records the resulting objects in `outputs`."""

    def __init__(self, client: Client, outputs: ApplicationOutputs) -> None:
        self._client = client
        self._outputs = outputs
        self._locks: WeakValueDictionary[AppliedObject, asyncio.Lock] = WeakValueDictionary()
        """One lock per object, for the time in which polyver reads, checks and applies the object.

        All applications share one field manager. Without the locks, if two applications rendered
        the same object at the same time, the second apply would overwrite the object of the first
        application without a conflict.
        """
        self.count = 0
        """Number of objects applied so far."""

    async def apply(self, application: Object, placed: Sequence[Placed]) -> ApplicationApplyResult:
        """Apply all rendered objects. If one cannot be applied, still apply the others."""
        self._outputs.use({(each.kind.group, each.kind.kind) for each in placed})
        found = ApplicationApplyResult()
        for each in placed:
            lock = self._locks.setdefault(part_of(each.object), asyncio.Lock())
            try:
                async with lock:
                    made = await self._one(application, each, found)
            except ApiError as error:
                found.problems.append(problem_of(f"{name_of(each.object)} ({each.at})", error))
                continue
            if made is not None:
                found.resources.append(applied_resource(each, made))
        return found

    async def rehearse(
        self, application: Object, placed: Sequence[Placed]
    ) -> list[ApplicationApplyProblem]:
        """Apply the objects as a dry run.

        Return one problem for each object that belongs to another owner, or that the API server
        refuses.
        """
        found = []
        made = {each.object["metadata"]["name"] for each in placed if each.kind.kind == "Namespace"}
        for each in placed:
            if each.object["metadata"].get("namespace") in made:
                # the namespace does not exist yet, so a dry run in this namespace would fail
                continue
            try:
                problem = await self._rehearse(application, each)
            except ApiError as error:
                problem = problem_of(f"{name_of(each.object)} ({each.at})", error)
            if problem is not None:
                found.append(problem)
        return found

    async def _rehearse(
        self, application: Object, placed: Placed
    ) -> ApplicationApplyProblem | None:
        resource, part = GroupVersionResource.of(placed.kind), part_of(placed.object)
        _, owner = await self._existing(application, resource, part)
        if owner:
            return _taken(placed, owner)
        try:
            await self._client.apply(
                resource, placed.object, manager=APPLIED_BY, force=True, dry_run=True
            )
        except ApiError as error:
            # The error is ignored if a webhook does not support dry runs. The webhook is called
            # when the object is applied.
            if error.code != 400 or "dry run" not in error.message:
                raise
        return None

    async def _one(
        self, application: Object, placed: Placed, found: ApplicationApplyResult
    ) -> Object | None:
        resource, part = GroupVersionResource.of(placed.kind), part_of(placed.object)
        is_there, owner = await self._existing(application, resource, part)
        if owner:
            found.problems.append(_taken(placed, owner))
            return None
        with self._outputs.expected(part):
            try:
                made = await self._client.apply(resource, placed.object, manager=APPLIED_BY)
            except ApiError as error:
                if error.code != 409 or error.reason != "Conflict":
                    raise
                # Other clients have changed fields of the application: revert their changes.
                found.taken_back.append(f"{name_of(placed.object)}: {error.message}")
                made = await self._client.apply(
                    resource, placed.object, manager=APPLIED_BY, force=True
                )
        if not is_there and others_in(made):
            # Another client has created the object after the lookup. Remove our fields from this
            # object.
            bare = {name: placed.object[name] for name in ("apiVersion", "kind")}
            named = {"name": part.name, "namespace": part.namespace or None}
            kept = {name: text for name, text in named.items() if text}
            await self._client.apply(resource, {**bare, "metadata": kept}, manager=APPLIED_BY)
            found.problems.append(_taken(placed, f"other users of {others_in(made)[0]}"))
            return None
        self.count += 1
        found.is_over &= self._outputs.note(part, made)
        return made

    async def _existing(
        self, application: Object, resource: GroupVersionResource, part: AppliedObject
    ) -> tuple[bool, str]:
        """Return whether an object exists, and the name of its owner.

        The name is empty if the object does not exist, or if it belongs to this application.
        """
        metadata, seen = application["metadata"], self._outputs.of(part)
        key = Key(metadata["namespace"], metadata["name"])
        if seen is not None and seen.application == key and seen.owner in ("", metadata["uid"]):
            return True, ""
        try:
            there = await self._client.get(resource, part.name, part.namespace, metadata=True)
        except ApiError as error:
            if error.code != 404:
                raise
            return False, ""
        return True, stranger(there, application)


def _taken(placed: Placed, whose: str) -> ApplicationApplyProblem:
    fact = f"{name_of(placed.object)} ({placed.at}) already exists and belongs to {whose}"
    return ApplicationApplyProblem(
        "Taken", f"{fact}; give it another name, or delete the existing object"
    )


def problem_of(what: str, error: ApiError) -> ApplicationApplyProblem:
    """Build the problem that reports `error`, the API server's response to a request for an object.

    `what` names the object, such as `ConfigMap default/a`.
    """
    message = f"{what}: {error.message}"
    passing = error.code >= 500 or error.code in _TRIED_AGAIN
    return ApplicationApplyProblem(error.reason or "Refused", message, error if passing else None)


# The index of applied objects.

_GONE: Final = Health(False, "does not exist")


class ObservedApplicationObject(Struct, frozen=True, gc=False):
    """The fields of an applied object that the index ApplicationOutputs stores."""

    application: Key
    owner: str
    """The uid of the owner reference with `controller: true`; empty if there is no such reference.
    """
    uid: str
    fields: str
    health: Health
    revision: int

    def differs(self, other: ObservedApplicationObject | None) -> bool:
        """Report whether a change from `other` to this state requires a reconcile.

        `other` is None if the object was not in the index before.
        """
        if other is None:
            return True
        mine, theirs = ((x.uid, x.owner, x.fields, x.health) for x in (self, other))
        return mine != theirs


def seen_in(kind: ResourceKind | None, obj: Object) -> ObservedApplicationObject:
    """Read the fields for the index from an applied object.

    `kind` is None if the object is the response to an apply. Otherwise a watch or a list has
    returned the object.
    """
    if kind is not None:
        # API servers leave out the apiVersion and the kind of the items of a list.
        obj = {**obj, "apiVersion": kind.api_version, "kind": kind.kind}
    metadata = obj["metadata"]
    labels: Mapping[str, str] = metadata.get("labels") or {}
    return ObservedApplicationObject(
        application=Key(labels.get(APP_NAMESPACE, ""), labels.get(APP_NAME, "")),
        owner=controller_of(obj),
        uid=metadata.get("uid", ""),
        fields=fields_digest(obj),
        health=health_of(obj),
        revision=number_of(obj),
    )


def part_in(applied: Mapping[str, Any]) -> AppliedObject:
    """Return the identity of the object that an entry of `appliedResources` describes."""
    group = applied["apiVersion"].rpartition("/")[0]
    return AppliedObject(group, applied["kind"], applied.get("namespace", ""), applied["name"])


class ApplicationOutputs(_Outputs[ObservedApplicationObject, Key]):
    """Index of the applied objects of all applications."""

    def __init__(self, changed: Callable[[], None]) -> None:
        """Create an index. It calls `changed` each time the set of kinds to watch has changed."""
        super().__init__(
            changed, keep=seen_in, whose=lambda seen: seen.application, labels=RENDERED
        )

    def health(self, applied: Mapping[str, Any]) -> Health:
        """Return the health of the object that an entry of `appliedResources` describes."""
        seen = self.of(part_in(applied))
        return seen.health if seen is not None else _GONE

    def is_as_applied(self, applied: Mapping[str, Any], key: Key) -> bool:
        """Report whether an object still exists as the application `key` has applied it.

        `applied` is the entry of this object in `appliedResources`.
        """
        seen = self.of(part_in(applied))
        return seen is not None and seen.application == key and seen.fields == applied.get("fields")
