"""Removes an installation from a cluster, in an order in which every API stays usable.

Objects of users and the CRDs of their kinds stay, unless the user runs the command with
--with-objects.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from polyver.apis.controllers.conversions import FINALIZER
from polyver.apis.conversion_kind import CONVERSIONS, versions_in_use
from polyver.app.installing.apply import owned, until
from polyver.app.installing.options import (
    CONFIGURATIONS,
    CRDS,
    NAME,
    OWN,
    ObjectName,
    kept_by_replicas,
)
from polyver.app.installing.ownership import converted_by, installed_in, is_kept
from polyver.cli.exit_codes import RequestRefused, UnreadableInput
from polyver.client import Client, GroupVersionResource, find
from polyver.controllers.finalizers import remove_finalizer
from polyver.core import listed
from polyver.core.plain import Object
from polyver.kube.objects.status import ApiError

__all__ = ["Remover"]

_ROLES = "ClusterRoleBinding"
_GONE_WITHIN = 120.0
"""The maximum number of seconds until an object is gone.

Pods need up to 45 s to end, and API servers need some seconds more.
"""
Part = tuple[Object, ObjectName]


@dataclass(frozen=True, slots=True)
class _ExistingInstallation:
    """The objects of an installation, and the CRDs of its kinds, that exist on the cluster."""

    parts: list[Part]
    """All objects of the installation except CRDs, and all objects that its replicas created."""
    crds: list[Part]
    """The CRDs that `polyver install` has applied."""
    converted: list[str]
    """All CRDs on the cluster that the removal does not delete, and whose conversion webhook is
    this installation, including CRDs of users. Each is the string `NAME (VERSIONS IN USE)`.
    """
    strange: list[ObjectName]
    """Objects of other owners with names that polyver uses for the objects of its replicas."""


@dataclass
class Remover:
    """Removes an installation, and calls `tell` with a message about each object."""

    client: Client
    place: str
    tell: Callable[[str], None]
    namespace: str
    dry_run: bool = False
    patience: float = _GONE_WITHIN

    async def remove(
        self, *, with_objects: bool = False, sure: bool = False, force: bool = False
    ) -> None:
        """Remove the installation.

        Raise an error if objects would be deleted and `sure` is False, or if API servers still need
        polyver for conversions and `force` is False.
        """
        try:
            await self._refuse_elsewhere()
            found = await self._look(with_objects=with_objects)
            self._refuse(found, force=force)
            if with_objects and not sure and not self.dry_run:
                await self._ask(found.crds)
            await self._remove(found, with_objects=with_objects)
        except ApiError as error:
            raise UnreadableInput(error.message, at=error.at or self.place) from None

    # Existing objects.

    async def _look(self, *, with_objects: bool) -> _ExistingInstallation:
        installed = await owned(self.client, self.namespace)
        kept, strange = await self._kept()
        crds = [each for each in installed if each[1].kind == CRDS]
        going = {name.name for _, name in crds} if with_objects else set()
        listing = await self.client.list(ObjectName(CRDS, "").resource)
        staying = [
            f"{each['metadata']['name']} ({', '.join(versions_in_use(each))})"
            for each in converted_by(listing.items, self.namespace)
            if each["metadata"]["name"] not in going
        ]
        parts = [each for each in installed if each[1].kind != CRDS]
        return _ExistingInstallation([*kept, *parts], crds, staying, strange)

    async def _kept(self) -> tuple[list[Part], list[ObjectName]]:
        kept, strange = [], []
        for name in kept_by_replicas(self.namespace):
            obj = await find(self.client, name.resource, name.name, name.namespace)
            if obj is not None and is_kept(obj):
                kept.append((obj, name))
            elif obj is not None:
                strange.append(name)
        return kept, strange

    # Checks.

    async def _refuse_elsewhere(self) -> None:
        """Raise an error if polyver is installed in another namespace."""
        binding = ObjectName(_ROLES, NAME)
        other = installed_in(await find(self.client, binding.resource, binding.name))
        if other and other != self.namespace:
            hint = f"write --namespace {other}"
            raise RequestRefused(
                f"polyver is installed in namespace {other}", at=self.place, hint=hint
            )

    def _refuse(self, found: _ExistingInstallation, *, force: bool) -> None:
        if not found.parts and not found.crds:
            fact = f"polyver is not installed in namespace {self.namespace}"
            raise RequestRefused(
                fact, at=self.place, hint="pass another namespace with --namespace"
            )
        if found.converted and not force:
            kinds = listed(found.converted, most=len(found.converted))
            fact = f"kinds that are converted by this installation need attention first: {kinds}"
            hint = (
                "nothing was removed; make each kind serve and store only one version and delete "
                "its Conversion, or name another webhook in its CustomResourceDefinition; with "
                "--force only the stored version of each can be read"
            )
            raise RequestRefused(fact, at=self.place, hint=hint)

    async def _ask(self, crds: Sequence[Part]) -> None:
        told = [f"{await self._count(crd)} of {name.name}" for crd, name in crds]
        fact = f"objects would be deleted with their definitions: {listed(told)}"
        raise RequestRefused(fact, at=self.place, hint="nothing was removed; use --yes to confirm")

    async def _count(self, crd: Object) -> int:
        count, more = 0, ""
        while True:
            page = await self.client.list(_resource(crd), limit=500, more=more, metadata=True)
            count, more = count + len(page.items), page.more
            if not more:
                return count

    # Removing.

    async def _remove(self, found: _ExistingInstallation, *, with_objects: bool) -> None:
        if with_objects:
            # Delete these objects while controllers run: the controllers remove their finalizers
            # from the objects, and the webhooks convert the objects.
            for part in found.crds:
                await self._delete(*part, wait=True)
        for part in _in_order(found.parts, (_ROLES, *CONFIGURATIONS)):
            await self._delete(*part)
        for part in _in_order(found.parts, ("Deployment",)):
            await self._delete(*part, wait=True)
        await self._free_conversions()
        rest = (*(each for each in OWN if each not in (_ROLES, "Deployment")), "Secret", "Lease")
        for part in _in_order(found.parts, rest):
            await self._delete(*part)
        if not self.dry_run:
            await self._again()
        await self._tell_what_stays(found, with_objects=with_objects)

    async def _delete(self, obj: Object, name: ObjectName, *, wait: bool = False) -> None:
        uid = obj["metadata"]["uid"]
        if self.dry_run:
            self.tell(f"{name} would be removed")
            return
        try:
            await self.client.delete(
                name.resource, name.name, name.namespace, uid=uid, propagation="Foreground"
            )
        except ApiError as error:
            if error.code not in (404, 409):
                # the object is gone, or was replaced by another object
                raise
        if wait:
            await self._until_gone(name, uid)
        self.tell(f"{name} removed")

    async def _until_gone(self, name: ObjectName, uid: str) -> None:
        reported, looks = "", 0

        async def is_gone() -> bool:
            nonlocal reported, looks
            if name == ObjectName(CRDS, CONVERSIONS.definition().name):
                await self._free_conversions()
            found = await find(self.client, name.resource, name.name, name.namespace)
            if found is None or found["metadata"]["uid"] != uid:
                return True
            left, looks = await self._left(found, name), looks + 1
            if left != reported and looks > 1:
                self.tell(f"{name}: waiting for {left}")
                reported = left
            return False

        if not await until(is_gone, self.patience):
            fact = f"{name} still exists after {self.patience:.0f} s, waiting for {reported}"
            hint = "the rest was not removed; run the same command again to continue"
            raise UnreadableInput(fact, at=self.place, hint=hint)

    async def _left(self, obj: Object, name: ObjectName) -> str:
        """Describe what the deletion of an object waits for, such as `its pods`, for messages."""
        if name.kind != CRDS:
            return "its pods"
        try:
            page = await self.client.list(_resource(obj), limit=500, metadata=True)
        except ApiError:
            return "its objects"
        if not page.items:
            return "the API server"
        held = [each for each in page.items if each["metadata"].get("finalizers")]
        count = f"{len(page.items)}{' or more' if page.more else ''} objects"
        return f"{count}; finalizers of {listed([*map(_held, held)], most=3)}" if held else count

    async def _free_conversions(self) -> None:
        """Remove polyver's finalizer from all Conversions.

        The controller that usually does this does not run any more.
        """
        if self.dry_run:
            return
        resource = GroupVersionResource(
            CONVERSIONS.group, "v1alpha1", CONVERSIONS.names.plural, namespaced=False
        )
        try:
            found = (await self.client.list(resource)).items
        except ApiError as error:
            if error.code != 404:
                raise
            return
        for each in found:
            await self._free(resource, each)

    async def _free(self, resource: GroupVersionResource, conversion: Object) -> None:
        try:
            await remove_finalizer(self.client, resource, conversion, FINALIZER)
        except ApiError as error:
            if error.code not in (404, 409):  # gone, or changed: it is checked again
                raise

    async def _again(self) -> None:
        """Delete again those objects that a replica may have created just before it ended."""
        for obj, name in (await self._kept())[0]:
            await self._delete(obj, name)

    async def _tell_what_stays(self, found: _ExistingInstallation, *, with_objects: bool) -> None:
        for name in found.strange:
            self.tell(f"{name} is kept: it has another owner")
        if not with_objects:
            for _, name in found.crds:
                self.tell(f"{name} is kept, with its objects")
        place = ObjectName("Namespace", self.namespace)
        if await find(self.client, place.resource, place.name) is not None:
            self.tell(f"{place} is kept")


def _in_order(parts: Sequence[Part], kinds: Sequence[str]) -> list[Part]:
    return [part for kind in kinds for part in parts if part[1].kind == kind]


def _resource(crd: Object) -> GroupVersionResource:
    spec = crd["spec"]
    version = next(each["name"] for each in spec["versions"] if each["served"])
    namespaced = spec["scope"] == "Namespaced"
    return GroupVersionResource(
        spec["group"], version, spec["names"]["plural"], namespaced=namespaced
    )


def _held(obj: Object) -> str:
    metadata = obj["metadata"]
    namespace = metadata.get("namespace", "")
    name = f"{namespace}/{metadata['name']}" if namespace else metadata["name"]
    return f"{name} ({', '.join(metadata['finalizers'])})"
