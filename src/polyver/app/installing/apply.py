"""Applies the manifests of an installation to a cluster, after it has checked all of them.

If a check fails, nothing is written. The manifests are applied with server-side apply, so a second
`polyver install` with the same options changes nothing.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable, Iterable, Sequence
from dataclasses import dataclass, field

from polyver.app.installing.options import (
    CRDS,
    INSTALLER,
    LABELS,
    NAME,
    OWN,
    RUNNER,
    Installation,
    ObjectName,
    kept_by_replicas,
    named,
)
from polyver.app.installing.ownership import conflicts, installed_in, is_installed, is_kept, refusal
from polyver.cli.exit_codes import RequestRefused, UnreadableInput
from polyver.client import Client, find
from polyver.core.plain import Object
from polyver.kube.objects.status import ApiError

__all__ = ["Installer", "owned", "until"]

_LOOK_AGAIN = 0.1
_SERVED_WITHIN = 30.0
_MANAGED_BY = "app.kubernetes.io/managed-by"


@dataclass
class Installer:
    """Applies the objects of an installation, and calls `tell` with a message about each object."""

    client: Client
    place: str
    """The server, and the source of its address, such as a kubeconfig; for errors."""
    tell: Callable[[str], None]
    adopt: bool = False
    patience: float = 300.0
    """The maximum number of seconds to wait until new replicas have replaced the old replicas."""
    _found: dict[ObjectName, Object | None] = field(default_factory=dict)
    _forced: set[ObjectName] = field(default_factory=set)

    async def install(self, installation: Installation, wanted: Sequence[Object]) -> None:
        """Check all objects, and then apply them.

        At the end, remove the objects that an earlier installation had and this one does not have.
        """
        for each in wanted:
            self._found[named(each)] = await self._find(named(each))
        self._refuse_second(installation)
        self._refuse_going()
        await self._look_ahead(wanted, await self._taken(installation))
        first, later = self._in_order(wanted)
        for each in first:
            await self._apply(each)
        if later:
            await self._rolled_out(ObjectName("Deployment", NAME, installation.namespace))
            for each in later:
                await self._apply(each)
        await self._prune(installation, {named(each) for each in wanted})

    async def _find(self, name: ObjectName) -> Object | None:
        try:
            return await find(self.client, name.resource, name.name, name.namespace)
        except ApiError as error:
            raise self._failure(name, "read", error, "nothing was applied") from None

    # Checks.

    def _refuse_second(self, installation: Installation) -> None:
        """Raise an error if polyver is already installed in another namespace.

        Conversions are cluster-scoped, so one installation serves all of them.
        """
        other = installed_in(self._found[ObjectName("ClusterRoleBinding", NAME)])
        if other and other != installation.namespace:
            fact = f"polyver is installed in namespace {other}"
            hint = f"nothing was applied; run `polyver uninstall --namespace {other}` first"
            raise RequestRefused(fact, at=self.place, hint=hint)

    def _refuse_going(self) -> None:
        for name, obj in self._found.items():
            if obj is not None and "deletionTimestamp" in obj["metadata"]:
                hint = "nothing was applied; try again when it is deleted"
                raise RequestRefused(f"{name} is being deleted", at=self.place, hint=hint)

    async def _taken(self, installation: Installation) -> list[Object]:
        """Return objects of other owners with names that `polyver run` needs for its objects."""
        if self.adopt:
            return []
        names = kept_by_replicas(installation.namespace)
        found = [await self._find(name) for name in names]
        return [each for each in found if each is not None and not is_kept(each)]

    async def _look_ahead(self, wanted: Iterable[Object], taken: Sequence[Object]) -> None:
        """Apply all objects as a dry run. Raise an error if the server would refuse one of them.

        If a namespace does not exist yet, its objects are skipped, because their dry run would
        fail.
        """
        strange, changed = [*taken], {}
        for each in wanted:
            name = named(each)
            obj = self._found[name]
            if obj is not None and not is_installed(obj) and not self._is_used(name):
                if not self.adopt:
                    strange.append(obj)
                    continue
                self._forced.add(name)
            if self._can_be_tried(name) and (fields := await self._tried(each, name)):
                changed[name] = fields
        if problem := refusal(strange, changed, self.place):
            raise problem

    def _is_used(self, name: ObjectName) -> bool:
        """Report whether an object is a Namespace that `polyver install` did not create.

        Such a Namespace is used, but not changed.
        """
        obj = self._found[name]
        return name.kind == "Namespace" and obj is not None and not is_installed(obj)

    def _can_be_tried(self, name: ObjectName) -> bool:
        there = (
            not name.namespace or self._found[ObjectName("Namespace", name.namespace)] is not None
        )
        return there and not self._is_used(name)

    async def _tried(self, content: Object, name: ObjectName) -> dict[str, list[str]]:
        """Apply an object as a dry run. Return the conflicting fields, by the owner of the fields.

        Conflicts that polyver overrides are not returned: with `--adopt`, these are all conflicts;
        otherwise, only conflicts with `polyver run`.
        """
        try:
            await self._applied(content, name, dry_run=True)
        except ApiError as error:
            fields = conflicts(error)
            if fields is None:
                raise self._failure(name, "applied", error, "nothing was applied") from None
            if not self.adopt and {*fields} != {RUNNER}:
                return fields
            self._forced.add(name)
            await self._tried(content, name)
        return {}

    # Writing.

    def _in_order(self, wanted: Sequence[Object]) -> tuple[list[Object], list[Object]]:
        """Divide the objects into those to apply first, and those to apply after the rollout.

        The rollout replaces the old replicas. CRDs that get new versions are applied after it,
        because only the new replicas can convert these versions.
        """
        later = [each for each in wanted if self._gets_versions(each)]
        return [each for each in wanted if each not in later], later

    def _gets_versions(self, content: Object) -> bool:
        if content["kind"] != CRDS or not content["spec"].get("conversion"):
            return False
        found = self._found[named(content)]
        return found is not None and not _versions(content) <= _versions(found)

    async def _apply(self, content: Object) -> None:
        name = named(content)
        before = self._found[name]
        if self._is_used(name):
            self.tell(f"{name} is used unchanged")
            return
        try:
            after = await self._applied(content, name)
        except ApiError as error:
            raise self._failure(name, "applied", error, "what was told before is") from None
        if name.kind == CRDS:
            await self._served(name)
        if before is None:
            self.tell(f"{name} created")
        else:
            same = _revision(before) == _revision(after)
            self.tell(f"{name} {'unchanged' if same else 'changed'}")

    async def _applied(self, content: Object, name: ObjectName, *, dry_run: bool = False) -> Object:
        force = name in self._forced
        return await self.client.apply(
            name.resource, content, manager=INSTALLER, force=force, dry_run=dry_run
        )

    async def _served(self, name: ObjectName) -> None:
        async def is_served() -> bool:
            conditions = (await self._find(name) or {}).get("status", {}).get("conditions") or ()
            found = {each["type"]: each for each in conditions}
            if found.get("NamesAccepted", {}).get("status") == "False":
                fact = f"{name} is not accepted: {found['NamesAccepted'].get('message', '')}"
                raise UnreadableInput(fact, at=self.place)
            return bool(found.get("Established", {}).get("status") == "True")

        if not await until(is_served, _SERVED_WITHIN):
            fact = f"{name} is not served after {_SERVED_WITHIN:.0f} s"
            raise UnreadableInput(fact, at=self.place)

    async def _rolled_out(self, name: ObjectName) -> None:
        async def is_done() -> bool:
            obj = await self._find(name)
            return obj is not None and _is_rolled_out(obj)

        if await is_done():
            return
        self.tell(f"{name}: waiting for replicas that support the new versions")
        if not await until(is_done, self.patience):
            fact = f"{name} is not up to date after {self.patience:.0f} s"
            hint = "definitions with new versions are unchanged; check the pods and try again"
            raise UnreadableInput(fact, at=self.place, hint=hint)

    async def _prune(self, installation: Installation, wanted: set[ObjectName]) -> None:
        for obj, name in await owned(self.client, installation.namespace):
            if name in wanted:
                continue
            if name.kind == CRDS:
                self.tell(f"{name} of an earlier installation is kept, with its objects")
                continue
            await self._remove(name, obj["metadata"]["uid"])
            self.tell(f"{name} removed")

    async def _remove(self, name: ObjectName, uid: str) -> None:
        try:
            await self.client.delete(name.resource, name.name, name.namespace, uid=uid)
        except ApiError as error:
            if error.code not in (404, 409):
                # the object is gone, or was replaced by another object
                raise self._failure(name, "removed", error, "everything else is done") from None

    def _failure(self, name: ObjectName, act: str, error: ApiError, hint: str) -> UnreadableInput:
        at = error.at or self.place
        return UnreadableInput(f"{name} cannot be {act}: {error.message}", at=at, hint=hint)


async def owned(client: Client, namespace: str) -> list[tuple[Object, ObjectName]]:
    """List the objects that `polyver install` has applied. CRDs are last in the list."""
    found: list[tuple[Object, ObjectName]] = []
    for kind in (*OWN, CRDS):
        resource = ObjectName(kind, "").resource
        selector = f"{_MANAGED_BY}={LABELS[_MANAGED_BY]}"
        inside = namespace if resource.namespaced else ""
        there = (await client.list(resource, inside, labels=selector)).items
        found += [(obj, named(obj, kind)) for obj in there if is_installed(obj)]
    return found


async def until(holds: Callable[[], Awaitable[bool]], patience: float) -> bool:
    """Call `holds` until it returns True; return False after `patience` seconds."""
    end = time.monotonic() + patience
    while not await holds():
        if time.monotonic() > end:
            return False
        await asyncio.sleep(_LOOK_AGAIN)
    return True


def _versions(crd: Object) -> set[str]:
    return {each["name"] for each in crd["spec"]["versions"]}


def _revision(obj: Object) -> str:
    return str(obj["metadata"]["resourceVersion"])


def _is_rolled_out(deployment: Object) -> bool:
    """Report whether all pods of a Deployment have its current pod template and are available."""
    status, wanted = deployment.get("status") or {}, deployment["spec"].get("replicas", 1)
    if status.get("observedGeneration", 0) < deployment["metadata"].get("generation", 1):
        return False
    counts = [status.get(each, 0) for each in ("replicas", "updatedReplicas", "availableReplicas")]
    return counts == [wanted] * 3
