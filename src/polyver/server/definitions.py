"""CustomResourceDefinitions: which names are accepted, what is served, and what goes with one."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from typing import Any

import msgspec

from polyver.objects.rules import dns_label_problems, dns_subdomain_problems
from polyver.objects.status import Cause, invalid_field, required
from polyver.server.call import Server
from polyver.server.custom import custom_resources
from polyver.server.deleting import delete_all
from polyver.server.resource import Resource
from polyver.server.rules import Object, Rules
from polyver.store import Change, Conflict, Entry, StoreClosed

__all__ = ["DefinitionRules", "Definitions"]

CLEANUP = "customresourcecleanup.apiextensions.k8s.io"
_PREFIX = "/apiextensions.k8s.io/customresourcedefinitions/"
_LOOK_AGAIN = 5.0


class DefinitionRules(Rules):
    """A definition names one kind, its versions, and the one version that is stored."""

    unconditional = False
    counts = True
    has_status = True

    def prepare_create(self, obj: Object) -> None:
        spec = obj.setdefault("spec", {})
        _complete(spec)
        stored = [each["name"] for each in spec.get("versions") or () if each.get("storage")]
        obj["status"] = {
            "conditions": None,
            "acceptedNames": {"plural": "", "kind": ""},
            "storedVersions": stored[:1],
        }

    def prepare_update(self, obj: Object, old: Object) -> None:
        _complete(obj["spec"])
        stored = [each["name"] for each in obj["spec"].get("versions") or () if each.get("storage")]
        status = dict(old.get("status") or {})
        known = status.get("storedVersions") or []
        status["storedVersions"] = [*known, *(each for each in stored if each not in known)]
        obj["status"] = status

    def check_create(self, obj: Object) -> list[Cause]:
        return list(_problems(obj))

    def begin_deletion(self, obj: Object, now: str) -> None:
        obj["metadata"]["deletionTimestamp"] = now
        text = "CustomResource deletion is in progress"
        going = _made("Terminating", "True", "InstanceDeletionInProgress", text)
        status = obj.setdefault("status", {})
        status["conditions"] = set_condition(status.get("conditions") or [], going, now)


def _complete(spec: Object) -> None:
    names = spec.setdefault("names", {})
    kind = names.get("kind", "")
    if kind:
        names["singular"] = names.get("singular") or kind.lower()
        names["listKind"] = names.get("listKind") or f"{kind}List"
    conversion = spec.setdefault("conversion", {})
    conversion.setdefault("strategy", "None")


def _problems(obj: Object) -> Iterable[Cause]:
    spec, name = obj["spec"], obj["metadata"]["name"]
    group, names = spec.get("group", ""), spec.get("names") or {}
    wanted = f"{names.get('plural', '')}.{group}"
    if name != wanted:
        text = 'must be spec.names.plural+"."+spec.group'
        yield invalid_field("metadata.name", name, text)
    if not group:
        yield required("spec.group")
    for problem in dns_subdomain_problems(group) if group else ():
        yield invalid_field("spec.group", group, problem)
    yield from _version_problems(spec.get("versions") or ())


def _version_problems(versions: Sequence[Mapping[str, Any]]) -> Iterable[Cause]:
    for number, version in enumerate(versions):
        for problem in dns_label_problems(version["name"]):
            yield invalid_field(f"spec.versions[{number}].name", version["name"], problem)
    if sum(bool(version.get("storage")) for version in versions) != 1:
        shown = [dict(version) for version in versions]
        text = "must have exactly one version marked as storage version"
        yield invalid_field("spec.versions", shown, text)


class Definitions:
    """Follows all definitions: accepts their names, serves them, and cleans up behind them."""

    def __init__(self, server: Server) -> None:
        self._server = server
        self._served: dict[str, list[Resource]] = {}
        self._cleaning: dict[str, asyncio.Task[None]] = {}

    def load(self) -> None:
        """Serve what was accepted before."""
        for entry in self._server.store.page(_PREFIX).entries:
            self._serve(entry)

    async def run(self) -> None:
        """Follow every change until the store is closed."""
        store = self._server.store
        page = store.page(_PREFIX)
        watch = store.watch(_PREFIX, page.revision)
        try:
            for entry in page.entries:
                await self._sync(entry.key)
            async for event in watch:
                await self._sync(event.entry.key)
        except StoreClosed:
            return
        finally:
            watch.close()
            for task in self._cleaning.values():
                task.cancel()

    async def _sync(self, key: str) -> None:
        entry = self._server.store.get(key)
        if entry is None:
            self._unserve(key)
            # A name that it had may be what another one waits for.
            for other in self._server.store.page(_PREFIX).entries:
                await self._accept(other)
            return
        self._serve(entry)
        if not await self._accept(entry) and self._is_going(entry):
            self._clean(entry)

    def _is_going(self, entry: Entry) -> bool:
        return "deletionTimestamp" in decode(entry)["metadata"]

    async def _accept(self, entry: Entry) -> bool:
        """Write which names are accepted, if that is not what is there."""
        definition = decode(entry)
        others = [
            decode(other)
            for other in self._server.store.page(_PREFIX).entries
            if other.key != entry.key
        ]
        status = accepted(definition, others, self._server.timestamp())
        finalizers = definition["metadata"].get("finalizers") or []
        if CLEANUP not in finalizers and "deletionTimestamp" not in definition["metadata"]:
            finalizers = [*finalizers, CLEANUP]
        new = definition | {"status": status}
        if finalizers:
            new["metadata"] = definition["metadata"] | {"finalizers": finalizers}
        return await self._write(entry, new)

    async def _write(self, entry: Entry, new: Object, *, delete: bool = False) -> bool:
        head, tail = self._resource.encode(new)
        if not delete and b"%b%d%b" % (head, entry.revision, tail) == entry.value:
            return False
        with suppress(Conflict):  # the change that was in the way is synced next
            await self._server.store.write(
                Change(entry.key, head, tail, entry.revision, delete=delete)
            )
        return True

    @property
    def _resource(self) -> Resource:
        resource = self._server.catalogue.get(
            "apiextensions.k8s.io", "v1", "customresourcedefinitions"
        )
        assert resource is not None
        return resource

    def _serve(self, entry: Entry) -> None:
        definition = decode(entry)
        new = custom_resources(definition, entry) if is_established(definition) else []
        before = self._served.get(entry.key, [])
        if [_facts(one) for one in before] != [_facts(one) for one in new]:
            self._server.catalogue.replace(before, new)
            self._served[entry.key] = new

    def _unserve(self, key: str) -> None:
        if gone := self._served.pop(key, []):
            self._server.catalogue.replace(gone, [])

    def _clean(self, entry: Entry) -> None:
        if entry.key not in self._cleaning:
            task = asyncio.create_task(self._cleaned(entry.key))
            self._cleaning[entry.key] = task
            task.add_done_callback(lambda _: self._cleaning.pop(entry.key, None))

    async def _cleaned(self, key: str) -> None:
        """Delete all objects of a kind, wait until they are gone, and let its definition go."""
        store, served = self._server.store, self._served.get(key, [])
        if served:
            watch = store.watch(served[0].prefix, store.revision)
            try:
                await delete_all(self._server, served[0])
                while store.page(served[0].prefix, limit=1).entries:
                    await watch.batch(_LOOK_AGAIN)
            except StoreClosed:
                return
            finally:
                watch.close()
        while (entry := store.get(key)) is not None:
            definition = decode(entry)
            finalizers = definition["metadata"].get("finalizers") or []
            left = [each for each in finalizers if each != CLEANUP]
            metadata = {k: v for k, v in definition["metadata"].items() if k != "finalizers"}
            metadata |= {"finalizers": left} if left else {}
            if await self._write(entry, definition | {"metadata": metadata}, delete=not left):
                return


def decode(entry: Entry) -> Object:
    """A stored definition."""
    definition: Object = msgspec.json.decode(entry.value)
    return definition


def _facts(resource: Resource) -> object:
    """What makes a resource another one."""
    return resource.definition


def is_established(definition: Mapping[str, Any]) -> bool:
    """Whether the names were accepted once, since which it is served."""
    return _condition(definition, "Established").get("status") == "True"


def _condition(definition: Mapping[str, Any], kind: str) -> Mapping[str, Any]:
    conditions = definition.get("status", {}).get("conditions") or ()
    return next((each for each in conditions if each["type"] == kind), {})


def accepted(definition: Object, others: Iterable[Object], now: str) -> Object:
    """The status of a definition among others: the names that it gets, and the conditions."""
    names, conflict = _names(definition, list(others))
    was = is_established(definition)
    if conflict:
        first = _made("NamesAccepted", "False", *conflict)
        second = _made("Established", "False", "NotAccepted", "not all names are accepted")
    else:
        first = _made("NamesAccepted", "True", "NoConflicts", "no conflicts found")
        text = "the initial names have been accepted"
        second = _made("Established", "True", "InitialNamesAccepted", text)
    before = definition.get("status", {}).get("conditions") or []
    conditions = list(before)
    for condition in [first] if was else [first, second]:
        conditions = set_condition(conditions, condition, now)
    status: Object = definition.get("status", {}) | {"acceptedNames": names}
    return status | {"conditions": conditions}


def _made(kind: str, status: str, reason: str, message: str) -> Object:
    return {"type": kind, "status": status, "reason": reason, "message": message}


def set_condition(conditions: Sequence[Object], condition: Object, now: str) -> list[Object]:
    """Conditions with one of them changed; the time is that of its last change of status."""
    found = next((each for each in conditions if each["type"] == condition["type"]), None)
    kept = found and found["status"] == condition["status"]
    new = condition | {"lastTransitionTime": found["lastTransitionTime"] if kept and found else now}
    if found is None:
        return [*conditions, new]
    return [new if each is found else each for each in conditions]


def _names(definition: Object, others: Sequence[Object]) -> tuple[Object, tuple[str, str] | None]:
    """The names that are free, and the last conflict if some are not."""
    wanted, spec = definition["spec"]["names"], definition["spec"]
    taken = [
        other["status"]["acceptedNames"]
        for other in others
        if other["spec"]["group"] == spec["group"]
    ]
    resources = {name for one in taken for name in _resource_names(one)}
    kinds = {one.get(field, "") for one in taken for field in ("kind", "listKind")}
    got: Object = {"plural": "", "kind": ""} | definition.get("status", {}).get("acceptedNames", {})
    conflict: tuple[str, str] | None = None
    for field, reason, known in (
        ("plural", "PluralConflict", resources),
        ("singular", "SingularConflict", resources),
        ("shortNames", "ShortNamesConflict", resources),
        ("kind", "KindConflict", kinds),
        ("listKind", "ListKindConflict", kinds),
    ):
        value = wanted.get(field)
        asked = value if isinstance(value, list) else [value] if value else []
        in_use = [name for name in asked if name in known]
        if in_use:
            conflict = reason, ", ".join(f'"{name}" is already in use' for name in in_use)
        else:
            _set(got, field, value)
    _set(got, "categories", wanted.get("categories"))
    return got, conflict


def _set(names: Object, field: str, value: object) -> None:
    if value:
        names[field] = value
    else:
        names.pop(field, None)


def _resource_names(names: Mapping[str, Any]) -> list[str]:
    return [
        name
        for name in (names.get("plural"), names.get("singular"), *(names.get("shortNames") or ()))
        if name
    ]
