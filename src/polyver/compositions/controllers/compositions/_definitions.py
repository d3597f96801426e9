"""Controller of CompositeResourceDefinitions: applies the CRD of each kind that they define.

In this module, a definition is a CompositeResourceDefinition. If a Conversion object exists for the
kind, the Conversion takes precedence over `spec.conversion` of the definition. CRDs of other owners
are not changed. A definition whose kind still has objects is deleted only by force.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from polyver.apis.conversion_kind import CONVERSIONS
from polyver.capability import Refusal
from polyver.client import (
    CRDS,
    Change,
    Client,
    Clock,
    GroupVersionResource,
    SystemClock,
    find,
    precondition,
    timestamp,
)
from polyver.compositions._function_references import mapping
from polyver.compositions.controllers.compositions._snapshot import (
    DEFINITIONS,
    ClientCompositionLookup,
    state_of,
)
from polyver.compositions.controllers.packages import composites, keep_revision
from polyver.compositions.decisions import (
    APPLIER,
    check_conversion,
    check_crd,
    check_definition,
    check_stored,
    conversion_change,
    crd_content,
    definition_status,
    is_by_force,
    is_going,
    is_owned,
    lost_fields,
    no_longer_defined,
)
from polyver.compositions.names import DEFINED
from polyver.controllers.controller import Controller, Requeue, Watch, exactly
from polyver.controllers.events import Events
from polyver.controllers.finalizers import add_finalizer, has_finalizer, remove_finalizer
from polyver.controllers.statuses import write_status
from polyver.core import listed
from polyver.core.plain import Object
from polyver.kube.http.logs import Log
from polyver.kube.objects.kinds import ResourceKind
from polyver.kube.objects.status import ApiError

__all__ = ["CompositeDefinitionController"]

_CONVERSIONS = GroupVersionResource(
    CONVERSIONS.group, "v1alpha1", CONVERSIONS.names.plural, namespaced=False
)
_LATER = 10.0
"""Seconds until the next reconcile after a refusal, or while objects of a deleted definition
remain.
"""
_ORPHAN = "orphan"
"""The finalizer `orphan`. With it, Kubernetes deletes an object without deleting its dependents."""


class CompositeDefinitionController(Controller[str]):
    """Reconciles CompositeResourceDefinitions. The key is the name. The CRD has the same name."""

    name = "compositeresourcedefinitions"

    def __init__(
        self, client: Client, *, clock: Clock | None = None, log: Log | None = None
    ) -> None:
        self._client = client
        self._clock: Clock = clock or SystemClock()
        self._composed = ClientCompositionLookup(client)
        self._events = Events(client, self._clock, log or Log(), component="polyver")
        self._known: set[str] = set()

    @property
    def watches(self) -> Sequence[Watch[Any, str]]:
        return [
            Watch(kinds=exactly(DEFINITIONS), observe=self._observe, keep=state_of, metadata=True),
            Watch(
                kinds=exactly(CRDS),
                observe=self._observe_crd,
                keep=_resource_version,
                metadata=True,
            ),
            Watch(
                kinds=composites,
                observe=self._observe_composite,
                keep=keep_revision,
                needed=False,
            ),
        ]

    def _observe(self, kind: ResourceKind, change: Change[Any]) -> Iterable[str]:
        del kind
        if change.after is None:
            self._known.discard(change.key.name)
        else:
            self._known.add(change.key.name)
        return (change.key.name,) if change.before != change.after else ()

    def _observe_crd(self, kind: ResourceKind, change: Change[Any]) -> Iterable[str]:
        del kind
        changed = change.before != change.after and change.key.name in self._known
        return (change.key.name,) if changed else ()

    def _observe_composite(self, kind: ResourceKind, change: Change[str]) -> Iterable[str]:
        """Return the key of the definition of a deleted composite resource.

        The definition may be waiting until its last composite resource is deleted.
        """
        gone = change.after is None and kind.resource in self._known
        return (kind.resource,) if gone else ()

    async def reconcile(self, key: str) -> Requeue | None:
        obj = await find(self._client, DEFINITIONS, key)
        if obj is None:
            return None
        crd = await self._composed.crd(key)
        if is_going(obj):
            return await self._remove(obj, crd)
        refusals = check_definition(obj) or check_crd(obj, crd)
        if not refusals and (crd is None or not is_going(crd)):
            # Add the finalizer before the CRD is applied. Otherwise the CRD could remain after the
            # definition was deleted.
            obj = await add_finalizer(self._client, DEFINITIONS, obj, DEFINED)
            crd, refusals = await self._define(obj, crd)
        await self._tell(obj, crd, refusals)
        return Requeue(_LATER) if refusals else None

    # The CRD.

    async def _define(self, obj: Object, crd: Object | None) -> tuple[Object | None, list[Refusal]]:
        """Apply the CRD of a definition.

        Return the CRD, and refusals if it differs from the desired CRD.
        """
        try:
            if crd is not None and lost_fields(obj, crd):
                refusals = check_conversion(obj, crd, await self._composed.composites(crd))
                if refusals:
                    return crd, refusals
            if crd is not None and mapping(obj["spec"].get("conversion")).get("webhook"):
                # Set the webhook before the storage version changes. Otherwise the API server would
                # read stored objects without conversion.
                crd = await self._convert(obj, crd)
            if crd is not None and no_longer_defined(obj, crd):
                crd, refusals = await self._drop(obj, crd)
                if refusals:
                    return crd, refusals
            crd = await self._apply(crd_content(obj, crd), is_there=crd is not None)
            return await self._convert(obj, crd), []
        except Refusal as refusal:
            return crd, [refusal]
        except ApiError as error:
            if error.code not in (400, 403, 422):
                raise
            return crd, [Refusal("NotTaken", error.message)]

    async def _drop(self, obj: Object, crd: Object) -> tuple[Object, list[Refusal]]:
        """Remove from the CRD's `storedVersions` the versions that the definition no longer has.

        This is done only if the kind has no objects. Otherwise, return refusals.
        """
        refusals = check_stored(obj, crd, await self._composed.composites(crd))
        if refusals:
            return crd, refusals
        # After this apply, objects are stored in the new version. Check again, to find objects that
        # were created in the old version before this apply.
        crd = await self._apply(crd_content(obj, crd), is_there=True)
        refusals = check_stored(obj, crd, await self._composed.composites(crd))
        if refusals:
            return crd, refusals
        dropped = no_longer_defined(obj, crd)
        stored = [each for each in crd["status"]["storedVersions"] if each not in dropped]
        return await self._client.patch(
            CRDS,
            crd["metadata"]["name"],
            change={"metadata": precondition(crd), "status": {"storedVersions": stored}},
            subresource="status",
            manager=APPLIER,
        ), []

    async def _apply(self, content: Object, *, is_there: bool) -> Object:
        # Use force only if the CRD exists: then it belongs to polyver. If it does not exist,
        # another client may be creating a CRD of this name at the same time.
        return await self._client.apply(CRDS, content, manager=APPLIER, force=is_there)

    async def _convert(self, obj: Object, crd: Object) -> Object:
        """Set `spec.conversion` of the CRD as the definition requests it. Return the CRD.

        Do nothing if a Conversion object exists for the kind.
        """
        change = conversion_change(obj, crd)
        if change is None or await self._is_converted(crd["metadata"]["name"]):
            return crd
        change = {**change, "metadata": precondition(crd)}
        return await self._client.patch(
            CRDS, crd["metadata"]["name"], change=change, manager=APPLIER
        )

    async def _is_converted(self, name: str) -> bool:
        found = await find(self._client, _CONVERSIONS, name)
        return found is not None and not is_going(found)

    async def _tell(
        self,
        obj: Object,
        crd: Object | None,
        refusals: Sequence[Refusal],
        waits_for: Sequence[str] = (),
    ) -> None:
        now = timestamp(self._clock)
        status = definition_status(obj, crd, refusals, waits_for=waits_for, now=now)
        if await write_status(self._client, DEFINITIONS, obj, status, manager=APPLIER) is obj:
            return
        for each in refusals:
            await self._events.tell(obj, each.reason, str(each), type="Warning")

    # Deletion.

    async def _remove(self, obj: Object, crd: Object | None) -> Requeue | None:
        if crd is None or not is_owned(crd, obj):
            await remove_finalizer(self._client, DEFINITIONS, obj, DEFINED)
            return None
        if has_finalizer(obj, _ORPHAN):
            return None  # the CRD stays, and Kubernetes removes its owner reference
        there = [] if is_going(crd) else await self._composed.composites(crd)
        if there and not is_by_force(obj):
            await self._tell(obj, crd, (), there)
            return Requeue(_LATER)
        if not is_going(crd):
            await self._delete(obj, crd, there)
        await self._tell(obj, await self._composed.crd(crd["metadata"]["name"]), ())
        return None

    async def _delete(self, obj: Object, crd: Object, there: Sequence[str]) -> None:
        """Delete the CRD of a definition.

        The API server then deletes all objects of the kind. Objects exist only if the definition is
        deleted by force.
        """
        name, uid = crd["metadata"]["name"], crd["metadata"]["uid"]
        if there:
            message = f"deleted by force, with {listed(there, most=3)}"
            await self._events.tell(obj, "DeletedByForce", message, type="Warning")
        try:
            await self._client.delete(CRDS, name, uid=uid)
        except ApiError as error:
            if error.code != 404:
                raise


def _resource_version(kind: ResourceKind, obj: Object) -> Any:
    del kind
    return obj["metadata"]["resourceVersion"]
