"""Controllers written by users: a Python function takes an object and returns an `Outcome`.

`DeclaredController` calls the function in a worker thread, with a deadline. It applies the objects
of the Outcome, writes the status, and watches the applied objects. When another client deletes or
edits an applied object, `DeclaredController` calls the function again and applies the result. This
restores the object.

A failure is reported in an Event and, if the status of the kind has conditions, in the condition
`Reconciled`. The condition is not set on an object for which the function has never failed: its
status is exactly what the function returned.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from types import CodeType
from typing import Any, Final

from msgspec import Struct

from polyver.apis.declaring import Kind as DeclaredKind
from polyver.apis.declaring import Outcome, to_object
from polyver.apis.definition import DefinedVersion
from polyver.client import (
    Change,
    Client,
    Clock,
    GroupVersionResource,
    Key,
    SystemClock,
    find,
    timestamp,
)
from polyver.client.field_managers import manager_for
from polyver.controllers.controller import Controller, Requeue, Watch, exactly
from polyver.controllers.events import Events
from polyver.controllers.owned_objects.index import AppliedObjects, number_of
from polyver.controllers.owned_objects.inventory import (
    APPLIED,
    Inventory,
    fields_of,
    is_made_for,
    noted,
    part_of,
    unwanted,
)
from polyver.controllers.owned_objects.ownership import AlreadyOwned, apply_owned
from polyver.controllers.statuses import write_status
from polyver.controllers.tracebacks import place_of
from polyver.controllers.user_code import UserCode
from polyver.core import PolyverError
from polyver.core.plain import Object
from polyver.kube.http.logs import Log
from polyver.kube.objects.conditions import find_condition, set_condition
from polyver.kube.objects.kinds import ResourceKind
from polyver.kube.objects.owners import controller_reference, controlling
from polyver.kube.objects.status import ApiError

__all__ = ["DeclaredController"]

_TIMEOUT = 60.0


class _Seen(Struct, frozen=True, gc=False):
    """The data that the controller keeps in memory for an object that it has applied."""

    owner: str
    """The uid of the object's controller in its owner references; empty if it has none."""
    uid: str
    fields: str
    """A digest of the fields that this controller owns."""
    revision: int

    def differs(self, other: _Seen | None) -> bool:
        """Report whether another client replaced the object or changed an applied field."""
        if other is None:
            return True
        return (self.uid, self.owner, self.fields) != (other.uid, other.owner, other.fields)


class DeclaredController(Controller[Key]):
    """Calls the function of one kind for each of its objects.

    The function gets an object of the class in its type hint, in the version of this class. If the
    type hint is not a class of the kind, the function gets plain data in the storage version.
    """

    workers = 32
    """The maximum number of concurrent calls. A call that hangs counts until its deadline is over.
    """

    def __init__(
        self,
        client: Client,
        kind: DeclaredKind,
        *,
        timeout: float = _TIMEOUT,
        clock: Clock | None = None,
    ) -> None:
        definition = kind.definition()
        self.name = definition.name
        self._client = client
        self._take = kind.controller_takes
        function = kind.controller
        assert function is not None
        self._function: Callable[[Any], Any] = function
        self._code = UserCode(function, timeout=timeout)
        version = self._take.version or definition.storage
        namespaced = definition.scope == "Namespaced"
        plural = definition.names.plural
        self._resource = GroupVersionResource(
            definition.group, version, plural, namespaced=namespaced
        )
        self._keeping = Inventory(client, self._resource, self.name)
        self._report = DeclaredStatusWriter(
            client,
            self._resource,
            definition.version(version),
            manager=self.name,
            code=getattr(function, "__code__", None),
            clock=clock or SystemClock(),
        )
        self._owners: dict[str, Key] = {}
        """The keys (namespace and name) of the objects of this kind, by their uids."""
        self._outputs: AppliedObjects[_Seen, Key] = AppliedObjects(
            lambda: self.watch_anew(),  # noqa: PLW0108 — the engine sets it later
            keep=partial(_seen_in, self.name),
            whose=lambda seen: self._owners.get(seen.owner),
            metadata=True,
        )

    @property
    def watches(self) -> Sequence[Watch[Any, Key]]:
        own = Watch(
            kinds=exactly(self._resource), observe=self._observe, keep=_state, metadata=True
        )
        return [own, self._outputs.watch()]

    async def reconcile(self, key: Key) -> Requeue | None:
        obj = await find(self._client, self._resource, key.name, key.namespace)
        if obj is None or "deletionTimestamp" in obj["metadata"]:
            return None
        try:
            outcome = await self._called(key, obj)
        except Exception as error:
            await self._report.failed(obj, "ReconcileFailed", error)
            raise
        try:
            return await self._do(obj, outcome)
        except ApiError as error:
            if error.code != 409:
                await self._report.failed(obj, "ApplyFailed", error)
            raise

    async def close(self) -> None:
        self._code.close()

    async def _do(self, obj: Object, outcome: Outcome) -> Requeue | None:
        if outcome.objects is not None:
            obj = await self._keep(obj, [owned(_plain(each), obj) for each in outcome.objects])
        status = _plain(outcome.status) if outcome.status is not None else None
        await self._report.succeeded(obj, status)
        return Requeue(outcome.after) if outcome.after is not None else None

    async def _called(self, key: Key, obj: Object) -> Outcome:
        found = await self._code.call(key, self._take.taken(obj))
        if found is None:
            return Outcome()
        if not isinstance(found, Outcome):
            name, kind = self._function.__qualname__, type(found).__name__
            raise TypeError(f"{name} returned {kind}, not an Outcome")
        return found

    async def _keep(self, owner: Object, wanted: Sequence[Object]) -> Object:
        """Apply the objects that the function returned; delete objects that it no longer returns.

        Return the updated owner, whose annotation records the applied objects.
        """
        before, parts = noted(owner), [part_of(each) for each in wanted]
        # Record the objects first, then apply them. polyver deletes only recorded objects: an
        # object that was applied without a record would stay forever.
        owner = await self._keeping.note(owner, [*before, *parts])
        self._outputs.use((part.group, part.kind) for part in parts)
        manager = manager_for(self.name, owner["kind"], owner["metadata"]["uid"])
        for each in wanted:
            await self._apply(each, manager)
        # Earlier versions of polyver used the name of the controller as the field manager for all
        # owners.
        is_ours = partial(is_made_for, owner=owner, managers=(manager, self.name))
        removed = [await self._keeping.remove(each, is_ours) for each in unwanted(before, parts)]
        return await self._keeping.note(owner, [*parts, *(each for each in removed if each)])

    async def _apply(self, content: Object, manager: str) -> None:
        kind = (await self._client.discover()).find(content["apiVersion"], content["kind"])
        if kind is None:
            raise ApiError(
                404, "NotFound", f"there is no {content['apiVersion']} {content['kind']}"
            )
        part, resource = part_of(content), GroupVersionResource.of(kind)
        with self._outputs.expected(part):
            try:
                made = await apply_owned(
                    self._client, resource, content, family=self.name, manager=manager
                )
            except AlreadyOwned as taken:
                told = f"{content['kind']} {part.name} cannot be applied: {taken}"
                raise ApiError(422, "Taken", told) from None
            self._outputs.note(part, made)

    def _observe(self, kind: ResourceKind, change: Change[Any]) -> Sequence[Key]:
        del kind
        if change.before is not None:
            self._owners.pop(change.before[0], None)
        if change.after is None:
            return ()
        self._owners[change.after[0]] = change.key
        return (change.key,) if change.before != change.after else ()


def owned(content: Object, owner: Object) -> Object:
    """Return an object in its owner's namespace, with an owner reference to the owner."""
    metadata = dict(content.get("metadata") or {})
    namespace = owner["metadata"].get("namespace")
    if namespace:
        metadata.setdefault("namespace", namespace)
    metadata["ownerReferences"] = [controlling(owner)]
    return {**content, "metadata": metadata}


def _plain(value: Any) -> Object:
    return value if isinstance(value, dict) else to_object(value)


def _seen_in(family: str, kind: ResourceKind, obj: Object) -> _Seen:
    del kind
    owner = controller_reference(obj) or {}
    return _Seen(
        owner=owner.get("uid", ""),
        uid=obj["metadata"].get("uid", ""),
        fields=fields_of(obj, manager_for(family, owner.get("kind", ""), owner.get("uid", ""))),
        revision=number_of(obj),
    )


def _state(kind: ResourceKind, obj: Object) -> tuple[Any, ...]:
    del kind
    metadata = obj["metadata"]
    seen = (metadata.get(name) for name in ("uid", "generation", "deletionTimestamp"))
    annotations = metadata.get("annotations") or {}
    # This controller writes the annotation APPLIED itself. So a change of this annotation is no
    # reason to call the function again.
    others = {name: value for name, value in annotations.items() if name != APPLIED}
    return (*seen, str(metadata.get("labels")), str(others))


# The status of the objects, and reports of failures.


_CONDITION: Final = "Reconciled"
_LONGEST: Final = 2048


class DeclaredStatusWriter:
    """Writes the status of the objects of one kind."""

    def __init__(
        self,
        client: Client,
        resource: GroupVersionResource,
        version: DefinedVersion | None,
        *,
        manager: str,
        code: CodeType | None,
        clock: Clock,
    ) -> None:
        """Create the writer.

        `code` is the code of the user's function. If the function raises an error, the message
        names the line in this code.
        """
        self._client = client
        self._resource = resource
        self._has_conditions = _has_conditions(version)
        self._code = code
        self._clock = clock
        self._log = Log()
        self._events = Events(client, clock, self._log, component=manager)

    async def failed(self, obj: Object, reason: str, error: Exception) -> None:
        """Report that the function raised an error, or that its Outcome could not be applied."""
        message = _message(error, self._code)
        await self._events.tell(obj, reason, message, type="Warning")
        if self._has_conditions:
            await self._tell_failed(obj, _condition(obj, "False", reason, message))

    async def succeeded(self, obj: Object, status: Object | None) -> None:
        """Write the status that the function returned.

        If the function returned None, the object keeps its status. If an earlier call failed, also
        set the condition `Reconciled` to True.
        """
        wanted = dict(obj.get("status") or {}) if status is None else status
        known = find_condition(obj, _CONDITION)
        if known is not None:
            wanted = _recovered(obj, wanted, known, timestamp(self._clock))
        await self._write(obj, wanted)

    async def _tell_failed(self, obj: Object, condition: Object) -> None:
        status = dict(obj.get("status") or {})
        known = status.get("conditions") or []
        status["conditions"] = set_condition(known, condition, timestamp(self._clock))
        try:
            await self._write(obj, status)
        except (ApiError, PolyverError) as error:
            # The schema may require status fields that only the function can set. The failure is
            # still reported in an Event and in the log.
            self._log.info("the condition cannot be written", error=str(error))

    async def _write(self, obj: Object, status: Object) -> None:
        await write_status(self._client, self._resource, obj, status)


def _recovered(obj: Object, wanted: Object, known: Object, now: str) -> Object:
    """Return the status `wanted` with the condition `Reconciled` set to True.

    If the user's function itself sets a condition of this type, return `wanted` unchanged.
    """
    others = [each for each in wanted.get("conditions") or [] if each != known]
    if any(each.get("type") == _CONDITION for each in others):
        return wanted
    told = _condition(obj, "True", "Succeeded", "")
    return {**wanted, "conditions": [*others, *set_condition([known], told, now)]}


def _condition(obj: Object, status: str, reason: str, message: str) -> Object:
    generation = obj["metadata"].get("generation", 1)
    made = {"type": _CONDITION, "status": status, "reason": reason, "message": message}
    return {**made, "observedGeneration": generation}


def _message(error: Exception, code: CodeType | None) -> str:
    text = str(error)
    if not isinstance(error, PolyverError | ApiError):
        place = place_of(error, code)
        text = f"{type(error).__name__}: {text}{f' ({place})' if place else ''}"
    return text if len(text) <= _LONGEST else f"{text[: _LONGEST - 1]}…"


def _has_conditions(version: DefinedVersion | None) -> bool:
    """Report whether an API server keeps `status.conditions` of objects in this version."""
    schema: Mapping[str, Any] | None = version.schema if version is not None else None
    if schema is None:
        return True
    status = (schema.get("properties") or {}).get("status")
    if status is None:
        return bool(schema.get("x-kubernetes-preserve-unknown-fields"))
    return "conditions" in (status.get("properties") or {}) or bool(
        status.get("x-kubernetes-preserve-unknown-fields")
    )
