"""Controller of StorageVersionMigrations: stores all objects of a resource in its storage version.

An object is stored in the version that was the storage version at its last write. This controller
writes each object again, without a change, so that the server stores it in the current storage
version. It does the work of three controllers of kube-controller-manager, with the same conditions:

- It sets the condition Running of the oldest migration of a resource. The other migrations of the
  resource wait.
- It records the current resourceVersion in the status of the migration. Objects that were written
  after this resourceVersion are stored in the storage version already, so they are skipped. A
  controller that is restarted continues with the objects that are left.
- It sets the condition Succeeded or Failed. If no object is left and the CustomResourceDefinition
  has not changed since the start, it removes the other versions from `status.storedVersions`.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence
from datetime import datetime, timedelta
from typing import Any, NamedTuple

from polyver.client import (
    CRDS,
    Change,
    Client,
    Clock,
    GroupVersionResource,
    SystemClock,
    find,
    preferred,
    timestamp,
)
from polyver.controllers.controller import Controller, Requeue, Watch, exactly
from polyver.core.plain import Object
from polyver.kube.objects.conditions import find_condition, set_condition
from polyver.kube.objects.kinds import ResourceKind
from polyver.kube.objects.status import ApiError

__all__ = ["MIGRATIONS", "MigratedResource", "MigrationController"]

MIGRATIONS = GroupVersionResource(
    "storagemigration.k8s.io", "v1", "storageversionmigrations", namespaced=False
)
_WRITER = "storage-version-migrator-controller"
"""The field manager of the writes of objects, as in kube-controller-manager."""
_RUNNER = "migration-runner-controller"
"""The field manager of the writes of CustomResourceDefinitions."""
_VERBS = ("update", "patch", "list")
_PATIENCE = timedelta(minutes=1)
"""The age at which a migration fails if its resource does not exist."""
_LOOK_AGAIN = 1.0
_AT_ONCE = 500
_RETRIED = frozenset({"InternalError", "ServerTimeout", "ServiceUnavailable", "Timeout"})
_TOO_MANY = 429
_MOST_TEXT = 4096
"""The maximum length of an error in a condition, which the server limits to 32 KiB."""


class MigratedResource(NamedTuple):
    """The resource whose objects a StorageVersionMigration migrates."""

    group: str
    plural: str

    @property
    def name(self) -> str:
        return ".".join(filter(None, (self.plural, self.group)))


class _Stopped(Exception):
    """The migration has failed; `message` is the message of the condition."""

    def __init__(self, message: str) -> None:
        super().__init__(message)
        self.message = message


class MigrationController(Controller[MigratedResource]):
    """Reconciles the StorageVersionMigrations of one resource."""

    name = "storage-version-migrations"

    def __init__(self, client: Client, *, clock: Clock | None = None) -> None:
        self._client = client
        self._clock: Clock = clock or SystemClock()

    @property
    def watches(self) -> Sequence[Watch[Any, MigratedResource]]:
        return [Watch(kinds=exactly(MIGRATIONS), observe=_observe, keep=_kept)]

    async def reconcile(self, key: MigratedResource) -> Requeue | None:
        found = (await self._client.list(MIGRATIONS)).items
        migrations = [each for each in found if _resource(each) == key]
        for each in migrations:
            if _is_true(each, "Running") and _is_over(each):
                await self._finish(each)
        open_ones = [each for each in migrations if not _is_over(each)]
        if not open_ones:
            return None
        running = [each for each in open_ones if _is_true(each, "Running")]
        # The changed status leads to another reconcile, which continues the migration.
        if not running:
            await self._start(min(open_ones, key=_age))
            return None
        return await self._continue(min(running, key=_age))

    async def _start(self, migration: Object) -> None:
        name = migration["metadata"]["name"]
        crd = await find(self._client, CRDS, _resource(migration).name)
        if crd is not None:
            text = f"Migration {name} is running"
            await self._report(crd, "True", "MigrationRunning", text)
        await self._set(migration, _running("The migration is running"))

    async def _continue(self, migration: Object) -> Requeue | None:
        try:
            kind = await self._kind(migration)
            if kind is None:
                return Requeue(_LOOK_AGAIN)
            resource = GroupVersionResource.of(kind)
            if not (migration.get("status") or {}).get("resourceVersion"):
                listing = await self._client.list(resource, limit=1, metadata=True)
                revision = {"resourceVersion": listing.resource_version}
                await self._write(migration, revision)
                return None
            await self._migrate(migration, kind, resource)
        except _Stopped as stopped:
            await self._set(migration, _ended("Failed", stopped.message))
        return None

    async def _kind(self, migration: Object) -> ResourceKind | None:
        """Return the kind to migrate, in its preferred version; None if it may be served soon."""
        wanted = _resource(migration)
        discovery = await self._client.discover()
        for kind in preferred(discovery.kinds, verbs=()):
            if (kind.group, kind.plural) == wanted:
                if not {*kind.verbs} >= {*_VERBS}:
                    named = f"{kind.group}/{kind.version}, Resource={kind.plural}"
                    raise _Stopped(
                        f'resource "{named}" does not support discovery operations: '
                        f"[{' '.join(_VERBS)}]"
                    )
                return kind
        created = datetime.fromisoformat(migration["metadata"]["creationTimestamp"])
        if created + _PATIENCE > self._clock.now():
            return None
        raise _Stopped("resource does not exist in discovery")

    async def _migrate(
        self, migration: Object, kind: ResourceKind, resource: GroupVersionResource
    ) -> None:
        """Write all objects again that have not been written since the start of the migration."""
        until = int(migration["status"]["resourceVersion"])
        total, left = 0, []
        async for metadata in self._objects(resource):
            total += 1
            if int(metadata["resourceVersion"]) <= until:
                left.append(metadata)
        for number, metadata in enumerate(left):
            try:
                await self._rewrite(kind, resource, metadata)
            except ApiError as error:
                await self._interrupt(migration, error, len(left) - number, total)
                return
            await asyncio.sleep(0)  # the client may answer without a pause
        verified = f", {total} objects verified migrated" if total else ""
        await self._set(
            migration,
            _running(f"The migration is running{verified}"),
            _ended("Succeeded", "Migration completed"),
        )

    async def _objects(self, resource: GroupVersionResource) -> AsyncIterator[Object]:
        """Yield the metadata of all objects of a resource, without their managedFields."""
        more = ""
        while True:
            page = await self._client.list(resource, limit=_AT_ONCE, more=more, metadata=True)
            for each in page.items:
                metadata = each["metadata"]
                names = ("name", "namespace", "uid", "resourceVersion")
                yield {name: metadata[name] for name in names if name in metadata}
            more = page.more
            if not more:
                return

    async def _rewrite(
        self, kind: ResourceKind, resource: GroupVersionResource, metadata: Object
    ) -> None:
        """Write an object without a change; ignore an object that was changed or deleted.

        The change of the other client has already stored it in the storage version.
        """
        known = {name: metadata[name] for name in ("uid", "resourceVersion")}
        change = {"apiVersion": kind.api_version, "kind": kind.kind, "metadata": known}
        name, namespace = metadata["name"], metadata.get("namespace", "")
        try:
            await self._client.patch(resource, name, namespace, change=change, manager=_WRITER)
        except ApiError as error:
            if error.code not in (404, 409):
                raise

    async def _interrupt(self, migration: Object, error: ApiError, left: int, total: int) -> None:
        """Record why an object could not be written; raise the error if a later try may succeed."""
        text = f"The migration is running, {left}/{total} objects not yet migrated"
        message = error.message[:_MOST_TEXT]
        if error.code == _TOO_MANY or error.reason in _RETRIED:
            await self._set(migration, _running(f"{text}; transient error: {message}"))
            raise error
        reason = f"migration encountered unhandled error: {message}"
        failed = _ended("Failed", f"{left}/{total} not yet migrated. {reason}")
        await self._set(migration, _running(text), failed)

    async def _finish(self, migration: Object) -> None:
        crd = await find(self._client, CRDS, _resource(migration).name)
        if crd is not None:
            await self._finish_definition(crd, is_migrated=_is_true(migration, "Succeeded"))
        completed = {"type": "Running", "status": "False", "reason": "MigrationCompleted"}
        await self._set(migration, completed | {"message": "Migration completed"})

    async def _finish_definition(self, crd: Object, *, is_migrated: bool) -> None:
        known = find_condition(crd, "StorageMigrating") or {}
        unchanged = known.get("observedGeneration") == crd["metadata"].get("generation")
        if not is_migrated:
            await self._report(crd, "False", "MigrationFailed", "The migration has failed")
            return
        text = "The migration has succeeded and the stored versions have been updated"
        if not unchanged:
            text = (
                "The migration has succeeded but the stored versions have not been updated due to "
                "a generation mismatch"
            )
        stored = [each["name"] for each in crd["spec"]["versions"] if each["storage"]]
        more: Object = {"storedVersions": stored} if unchanged else {}
        await self._report(crd, "False", "MigrationSucceeded", text, more)

    async def _report(
        self, crd: Object, status: str, reason: str, message: str, more: Object | None = None
    ) -> None:
        """Apply the condition StorageMigrating of a CustomResourceDefinition.

        The write fails if the definition has changed since it was read: the generation in the
        condition would then be wrong.
        """
        metadata = crd["metadata"]
        condition = {
            "type": "StorageMigrating",
            "status": status,
            "reason": reason,
            "message": message,
            "lastTransitionTime": timestamp(self._clock),
            "observedGeneration": metadata.get("generation", 1),
        }
        named = {"name": metadata["name"], "resourceVersion": metadata["resourceVersion"]}
        about = {"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition"}
        content = about | {"metadata": named, "status": {"conditions": [condition], **(more or {})}}
        await self._client.apply(CRDS, content, manager=_RUNNER, force=True, subresource="status")

    async def _set(self, migration: Object, *conditions: Object) -> None:
        known = (migration.get("status") or {}).get("conditions") or []
        now, changed = timestamp(self._clock), known
        for each in conditions:
            changed = set_condition(changed, each, now)
        if changed != known:
            await self._write(migration, {"conditions": changed})

    async def _write(self, migration: Object, changes: Object) -> None:
        status = (migration.get("status") or {}) | changes
        await self._client.update(MIGRATIONS, {**migration, "status": status}, subresource="status")


def _running(message: str) -> Object:
    condition = {"type": "Running", "status": "True", "reason": "MigrationRunning"}
    return condition | {"message": message}


def _ended(kind: str, message: str) -> Object:
    condition = {"type": kind, "status": "True", "reason": f"StorageVersionMigration{kind}"}
    return condition | {"message": message}


def _is_true(migration: Object, kind: str) -> bool:
    condition = find_condition(migration, kind)
    return condition is not None and condition.get("status") == "True"


def _is_over(migration: Object) -> bool:
    return _is_true(migration, "Succeeded") or _is_true(migration, "Failed")


def _age(migration: Object) -> tuple[str, str]:
    metadata = migration["metadata"]
    return metadata["creationTimestamp"], metadata["name"]


def _resource(migration: Object) -> MigratedResource:
    resource = migration["spec"]["resource"]
    return MigratedResource(resource.get("group") or "", resource.get("resource") or "")


def _kept(kind: ResourceKind, obj: Object) -> tuple[MigratedResource, str]:
    del kind
    return _resource(obj), obj["metadata"]["resourceVersion"]


def _observe(
    kind: ResourceKind, change: Change[tuple[MigratedResource, str]]
) -> Sequence[MigratedResource]:
    del kind
    found = change.after or change.before
    return (found[0],) if found is not None and change.before != change.after else ()
