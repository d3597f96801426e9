"""Background work on CRDs: accepts names, serves kinds, and deletes the objects of deleted CRDs."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Any

import msgspec

from polyver.core.plain import Object
from polyver.kube.http.logs import Log
from polyver.kube.http.worker_threads import off_loop
from polyver.kube.objects.status import ApiError
from polyver.kube.server.call import SMALL, Call, ServerContext
from polyver.kube.server.conversion.converters import ObjectConverter
from polyver.kube.server.custom import (
    CustomConversion,
    compiled,
    custom_resources,
    schema_of,
    stored_resource,
)
from polyver.kube.server.definitions._acceptance import (
    NamesInUse,
    accepted,
    is_established,
    made,
    with_condition,
)
from polyver.kube.server.definitions._rules import CLEANUP
from polyver.kube.server.delete import delete_all
from polyver.kube.server.http import PLAIN, ApiPath, HttpRequest
from polyver.kube.server.identity import SERVER
from polyver.kube.server.managed_fields import own
from polyver.kube.server.options import Query
from polyver.kube.server.resource import ServedResource
from polyver.kube.server.rules import StatusView
from polyver.kube.store import (
    Compacted,
    Conflict,
    Lagging,
    StoreClosed,
    StoreEntry,
    StoreFailed,
    StoreWatch,
    StoreWrite,
)

__all__ = ["Definitions"]

_GROUP, _PLURAL = "apiextensions.k8s.io", "customresourcedefinitions"
_PREFIX = f"/{_GROUP}/{_PLURAL}/"
_MANAGER = "kube-apiserver"
_WATCH_TIMEOUT = 60.0
_REQUESTS_END = 60.0
_LOOK_AGAIN = 5.0
_decoder = msgspec.json.Decoder(dict[str, Any])

_IN_PROGRESS = made(
    "Terminating",
    "True",
    "InstanceDeletionInProgress",
    "CustomResource deletion is in progress",
)
_DONE = made("Terminating", "False", "InstanceDeletionCompleted", "removed all instances")
_NEVER = made("Terminating", "False", "NeverEstablished", "resource was never established")
_NOT_OURS = made(
    "Terminating",
    "False",
    "OverlappingBuiltInResource",
    "instances overlap with built-in resources in storage",
)


@dataclass(frozen=True, slots=True)
class _Served:
    """The resources that are served for a CRD, and the properties of the CRD that define them."""

    served_parts: object
    going: bool
    resources: list[ServedResource]
    watches: set[StoreWatch]

    async def close(self) -> None:
        """Close the kind's conversion strategy, which may have open connections to a webhook."""
        for resource in self.resources[:1]:
            if isinstance(resource.conversion, CustomConversion):
                await resource.conversion.close()

    def end_watches(self) -> None:
        """End all watches of these resources.

        Clients then start new watches on the new resources.
        """
        for watch in list(self.watches):
            watch.close()


async def _closed_later(served: _Served) -> None:
    try:
        await asyncio.sleep(_REQUESTS_END)
    finally:
        await served.close()


class Definitions:
    """Watches all CRDs: accepts their names, serves their kinds, and cleans up deleted CRDs."""

    def __init__(self, server: ServerContext) -> None:
        self._server = server
        self._names = NamesInUse()
        self._waiting: set[str] = set()
        """The store keys of the CRDs that wait because another CRD has one of their names."""
        self._served: dict[str, _Served] = {}
        self._following = False
        self._cleaning: dict[str, asyncio.Task[None]] = {}
        self._retired: set[asyncio.Task[None]] = set()
        server.conversions.subscribe(self._converted_otherwise)
        self._emptied: dict[str, int] = {}
        """For deleted CRDs, by their store keys: the revision when all objects had been deleted."""

    def load(self) -> None:
        """Serve the kinds whose CRDs were established before the server started."""
        for entry in self._server.store.page(_PREFIX).entries:
            definition = _decoder.decode(entry.value)
            self._note(entry.key, definition)
            self._serve(entry, definition)

    async def run(self) -> None:
        """Process every change of a CRD until the store is closed."""
        self._following = True
        try:
            while True:
                with suppress(Lagging, Compacted):
                    await self._follow()
        except StoreClosed:
            return
        finally:
            for task in (*self._cleaning.values(), *self._retired):
                task.cancel()
            await asyncio.gather(*self._retired, return_exceptions=True)
            for served in self._served.values():
                await served.close()

    def _retire(self, served: _Served) -> None:
        """Close the conversion of replaced resources later: running requests may still use it."""
        task = asyncio.create_task(_closed_later(served))
        self._retired.add(task)
        task.add_done_callback(self._retired.discard)

    async def _follow(self) -> None:
        store = self._server.store
        page = store.page(_PREFIX)
        watch = store.watch(_PREFIX, page.revision)
        try:
            keys = [*self._names.keys(), *(entry.key for entry in page.entries)]
            while True:
                try:
                    await self._settle(keys)
                    keys = [event.entry.key for event in await watch.batch(_WATCH_TIMEOUT)]
                except StoreFailed:
                    await asyncio.sleep(_LOOK_AGAIN)
        finally:
            watch.close()

    async def _settle(self, keys: Iterable[str]) -> None:
        """Process the CRDs with these keys one by one, then write all new statuses together."""
        queue, decided = deque(dict.fromkeys(keys)), dict[str, tuple[StoreEntry, Object]]()
        while queue:
            await asyncio.sleep(0)  # other requests run between two CRDs
            key = queue.popleft()
            entry = self._server.store.get(key)
            if entry is None:
                decided.pop(key, None)
                queue.extend(self._forget(key))
                continue
            await self._sweep(entry)
            found = _decoder.decode(entry.value)
            await _compile(found, len(entry.value))
            before = decided[key][1] if key in decided else found
            waiting = self._note(key, before)
            new = before | {"status": accepted(before, self._names, self._server.timestamp())}
            queue.extend(dict.fromkeys([*waiting, *self._note(key, new)]))
            # Serve the kind first: when a client reads "Established", the kind must be served.
            self._serve(entry, new)
            if _is_going(found):
                self._clean(key)
            if new["status"] != found["status"]:
                decided[key] = entry, new
        await asyncio.gather(*(self._write(entry, new) for entry, new in decided.values()))

    def _note(self, key: str, definition: Object) -> list[str]:
        """Record the accepted names of a CRD.

        If the names changed, return the keys of the other CRDs in the group that wait for names.
        """
        group, status = definition["spec"]["group"], definition["status"]
        changed = self._names.note(key, group, status["acceptedNames"])
        if any(map(_is_refused, status.get("conditions") or ())):
            self._waiting.add(key)
        else:
            self._waiting.discard(key)
        return [each for each in self._waiting_in(group) if each != key] if changed else []

    def _waiting_in(self, group: str) -> list[str]:
        return [key for key in self._names.group(group) if key in self._waiting]

    def _forget(self, key: str) -> list[str]:
        """Stop serving the kind of a deleted CRD, and free its names.

        Return the store keys of the CRDs that wait for names in the same group.
        """
        if gone := self._served.pop(key, None):
            self._server.catalogue.replace(gone.resources, [])
            self._retire(gone)
            gone.end_watches()
        self._waiting.discard(key)
        return [each for each in self._names.forget(key) if each in self._waiting]

    def _converted_otherwise(self, name: str) -> None:
        """Serve the kind of a CRD again, because its converter in this process was set or removed.

        `name` is the name of the CRD.
        """
        if f"{_PREFIX}{name}" in self._served:
            entry = self._server.store.get(f"{_PREFIX}{name}")
            if entry is not None:
                self._serve(entry, _decoder.decode(entry.value))

    def _converter(self, definition: Object) -> ObjectConverter | None:
        return self._server.conversions.get(definition["metadata"]["name"])

    def _serve(self, entry: StoreEntry, definition: Object) -> None:
        going = "deletionTimestamp" in definition["metadata"]
        served_parts = (*_served_parts(definition), self._converter(definition))
        before = self._served.get(entry.key)
        same = before is not None and before.served_parts == served_parts
        if before and same and before.going == going:
            return
        # When the deletion of a CRD begins, watches stay open: they report deleted objects.
        watches = before.watches if before and same else set()
        made = self._made(entry, definition) if is_established(definition) else []
        new = [replace(each, watches=watches) for each in made]
        self._server.catalogue.replace(before.resources if before else [], new)
        self._served[entry.key] = _Served(served_parts, going, new, watches)
        if before:
            self._retire(before)
        if before and not same:
            before.end_watches()

    def _made(self, entry: StoreEntry, definition: Object) -> list[ServedResource]:
        if self._is_builtin(definition):
            return []
        try:
            # Objects that were stored before this revision may not fit the new schema. During the
            # start of the server, the schema has not changed since the CRD was stored.
            settled = self._server.store.revision if self._following else entry.revision
            served = self._converter(definition)
            made = custom_resources(definition, entry, settled=settled, served=served)
        except Exception as error:
            # If one kind cannot be served, the other kinds must still be served.
            Log().failure("a kind cannot be served", error, definition=entry.key)
            return []
        return [each for each in made if not self._is_reserved(each)]

    def _is_builtin(self, definition: Object) -> bool:
        """Report whether a CRD has the group and the plural name of a built-in kind.

        Its objects would then have the same keys in the store as those of the built-in kind.
        """
        group, plural = definition["spec"]["group"], definition["spec"]["names"]["plural"]
        return any(
            (each.kind.group, each.kind.plural) == (group, plural)
            for each in self._server.catalogue
            if not each.kind.custom
        )

    def _is_reserved(self, resource: ServedResource) -> bool:
        """Report whether the group version of a resource has built-in kinds.

        A CRD cannot add a kind to such a group version.
        """
        wanted = resource.kind.api_version
        return any(
            each.kind.api_version == wanted
            for each in self._server.catalogue
            if not each.kind.custom
        )

    # In managedFields, the server itself is the owner of the status that it writes.

    async def _write(self, entry: StoreEntry, new: Object, *, delete: bool = False) -> bool:
        """Store the new state of a CRD; with `delete`, delete the CRD.

        Return False if the CRD has changed since it was read. The watch then reports the change,
        and the CRD is processed again.
        """
        resource = self._resource
        if not delete:
            new = new | {"metadata": {**new["metadata"]}}
            await own(
                self._call(resource),
                StatusView(resource.rules),
                new,
                _decoder.decode(entry.value),
                _MANAGER,
            )
        change = StoreWrite(entry.key, *resource.encode(new), entry.revision, delete=delete)
        try:
            await self._server.store.write(change)
        except Conflict:
            return False
        return True

    @property
    def _resource(self) -> ServedResource:
        resource = self._server.catalogue.get(_GROUP, "v1", _PLURAL)
        assert resource is not None
        return resource

    def _call(self, resource: ServedResource) -> Call:
        request = HttpRequest("PUT", "", "", {}, b"", SERVER)
        api_path = ApiPath(_GROUP, "v1", _PLURAL, subresource="status")
        return Call(self._server, request, resource, api_path, Query(""), PLAIN)

    # The objects of a kind are deleted before the CRD is deleted.

    def _clean(self, key: str) -> None:
        if key not in self._cleaning:
            task = asyncio.create_task(self._cleaned(key))
            self._cleaning[key] = task
            task.add_done_callback(lambda _: self._cleaning.pop(key, None))

    async def _cleaned(self, key: str) -> None:
        """Delete all objects of a deleted CRD, then remove the cleanup finalizer from the CRD."""
        with suppress(StoreClosed):
            while await self._report_condition(key, _IN_PROGRESS):
                try:
                    last = await self._empty(key)
                    await self._release(key, last)
                except Lagging:
                    continue
                except (ApiError, StoreFailed) as error:
                    text = f"could not issue all deletes: {error}"
                    failed = made("Terminating", "True", "InstanceDeletionFailed", text)
                    await self._report_condition(key, failed)
                    await asyncio.sleep(_LOOK_AGAIN)

    async def _report_condition(self, key: str, condition: Object) -> bool:
        """Set a condition of a CRD.

        Return False if the CRD has no cleanup to do, or no longer exists.
        """
        while (entry := self._server.store.get(key)) is not None:
            definition = _decoder.decode(entry.value)
            if not _is_going(definition):
                return False
            new = with_condition(definition, condition, self._server.timestamp())
            if new == definition or await self._write(entry, new):
                return True
        return False

    async def _empty(self, key: str) -> Object:
        """Delete all objects of a CRD's kind, and wait until they are deleted.

        Return the condition of the CRD that reports the result.
        """
        store, entry = self._server.store, self._server.store.get(key)
        definition = _decoder.decode(entry.value) if entry else {}
        if entry is None or not is_established(definition):
            return _NEVER
        if self._is_builtin(definition):
            return _NOT_OURS
        resource = stored_resource(definition, entry, self._converter(definition))
        watch = store.watch(resource.prefix, store.revision)
        try:
            await delete_all(self._server, resource)
            while store.page(resource.prefix, limit=1).entries:
                events = await watch.batch(_LOOK_AGAIN)
                # New objects may still be stored if their requests began before the deletion.
                if any(event.previous is None for event in events):
                    await delete_all(self._server, resource)
        finally:
            watch.close()
        return _DONE

    async def _release(self, key: str, last: Object) -> None:
        """Remove the finalizer for the cleanup from a CRD; if it was the last one, delete the CRD.

        `last` is a condition, which is set in the same write.
        """
        while (entry := self._server.store.get(key)) is not None:
            definition = _decoder.decode(entry.value)
            if not _is_going(definition):
                return
            self._emptied[key] = self._server.store.revision
            left = [each for each in definition["metadata"]["finalizers"] if each != CLEANUP]
            new = with_condition(definition, last, self._server.timestamp())
            new["metadata"] = definition["metadata"] | {"finalizers": left}
            written = (
                self._write(entry, new) if left else self._write(entry, definition, delete=True)
            )
            if await written:
                return

    async def _sweep(self, entry: StoreEntry) -> None:
        """Delete leftover objects of an earlier CRD with the same name as this CRD.

        They were stored after the cleanup of the earlier CRD, and before this CRD was created.
        """
        since = self._emptied.get(entry.key)
        if since is None or entry.created <= since:
            return
        del self._emptied[entry.key]
        store, name = self._server.store, _decoder.decode(entry.value)["spec"]
        prefix = f"/{name['group']}/{name['names']['plural']}/"
        for each in store.page(prefix).entries:
            if since < each.created < entry.created:
                with suppress(Conflict):
                    await store.write(
                        StoreWrite(each.key, each.value, b"", each.revision, delete=True)
                    )


async def _compile(definition: Object, size: int) -> None:
    """Compile the schemas of a large CRD in a worker thread.

    `_serve` then finds them in the cache.
    """
    if size > SMALL:
        schemas = [schema_of(each) for each in definition["spec"]["versions"]]
        await off_loop(lambda: [compiled(each) for each in schemas])


def _is_refused(condition: Object) -> bool:
    return bool(condition["type"] == "NamesAccepted" and condition["status"] != "True")


def _is_going(definition: Object) -> bool:
    """Report whether a CRD is being deleted, but its objects are not all deleted yet."""
    metadata = definition["metadata"]
    return "deletionTimestamp" in metadata and CLEANUP in (metadata.get("finalizers") or ())


def _served_parts(definition: Object) -> tuple[object, ...]:
    """Return the properties of a CRD that determine how its kind is served."""
    uid, names = definition["metadata"]["uid"], definition["status"]["acceptedNames"]
    return is_established(definition), definition["spec"], names, uid
