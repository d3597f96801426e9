"""The controllers that users write: a function that is told an object and says what should be.

It is called off the event loop, with a deadline; what it returns is done here.
"""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

from polyver.capabilities.apis.declaring import Kind as DeclaredKind
from polyver.capabilities.apis.declaring import Outcome, to_object
from polyver.client import Change, Client, Key, Object, Resource, find
from polyver.engine._applied import (
    APPLIED,
    is_made_for,
    noted,
    part_of,
    unwanted,
)
from polyver.engine._controller import Controller, Result, Watch, exactly
from polyver.engine._keeping import Keeping
from polyver.objects.kinds import Kind
from polyver.objects.status import ApiError

__all__ = ["DeclaredController"]

_TIMEOUT = 60.0


class DeclaredController(Controller[Key]):
    """Calls the function of one kind for each of its objects, in the version that is stored."""

    def __init__(self, client: Client, kind: DeclaredKind, *, timeout: float = _TIMEOUT) -> None:
        definition = kind.definition()
        self.name = definition.name
        self._client = client
        self._timeout = timeout
        self._take = kind.controller_takes
        function = kind.controller
        assert function is not None
        self._function: Callable[[Any], Any] = function
        version = self._take.version or definition.storage
        namespaced = definition.scope == "Namespaced"
        plural = definition.names.plural
        self._resource = Resource(definition.group, version, plural, namespaced=namespaced)
        self._keeping = Keeping(client, self._resource, self.name)

    @property
    def watches(self) -> Sequence[Watch[Any, Key]]:
        return [Watch(kinds=exactly(self._resource), observe=_observe, keep=_state, metadata=True)]

    async def reconcile(self, key: Key) -> Result | None:
        obj = await find(self._client, self._resource, key.name, key.namespace)
        if obj is None or "deletionTimestamp" in obj["metadata"]:
            return None
        outcome = await self._called(obj)
        if outcome.objects is not None:
            obj = await self._keep(obj, [owned(_plain(each), obj) for each in outcome.objects])
        if outcome.status is not None:
            await self._tell(obj, _plain(outcome.status))
        return Result(outcome.after) if outcome.after is not None else None

    async def _called(self, obj: Object) -> Outcome:
        given = self._take.taken(obj)
        async with asyncio.timeout(self._timeout):
            if inspect.iscoroutinefunction(self._function):
                found = await self._function(given)
            else:
                found = await asyncio.to_thread(self._function, given)
        if found is None:
            return Outcome()
        if not isinstance(found, Outcome):
            name, kind = self._function.__qualname__, type(found).__name__
            raise TypeError(f"{name} returned {kind}, not an Outcome")
        return found

    async def _keep(self, owner: Object, wanted: Sequence[Object]) -> Object:
        """Have what is wanted, and nothing that was wanted before; the owner as it is then."""
        before, parts = noted(owner), [part_of(each) for each in wanted]
        # Noted first: what is applied without a note would stay when it is wanted no longer.
        owner = await self._keeping.note(owner, [*before, *parts])
        for each in wanted:
            await self._apply(each)
        is_ours = partial(is_made_for, owner=owner, manager=self.name)
        removed = [await self._keeping.remove(each, is_ours) for each in unwanted(before, parts)]
        return await self._keeping.note(owner, [*parts, *(each for each in removed if each)])

    async def _apply(self, content: Object) -> None:
        kind = (await self._client.discover()).find(content["apiVersion"], content["kind"])
        if kind is None:
            raise ApiError(
                404, "NotFound", f"there is no {content['apiVersion']} {content['kind']}"
            )
        await self._client.apply(Resource.of(kind), content, manager=self.name, force=True)

    async def _tell(self, obj: Object, status: Object) -> None:
        if obj.get("status") == status:
            return
        # With its resourceVersion: what was decided on an old state is decided again.
        await self._client.update(self._resource, {**obj, "status": status}, subresource="status")


def owned(content: Object, owner: Object) -> Object:
    """An object as part of another: in its namespace, and gone when that is gone."""
    metadata = dict(content.get("metadata") or {})
    namespace = owner["metadata"].get("namespace")
    if namespace:
        metadata.setdefault("namespace", namespace)
    about = {name: owner[name] for name in ("apiVersion", "kind")}
    about |= {name: owner["metadata"][name] for name in ("name", "uid")}
    metadata["ownerReferences"] = [{**about, "controller": True, "blockOwnerDeletion": True}]
    return {**content, "metadata": metadata}


def _plain(value: Any) -> Object:
    return value if isinstance(value, dict) else to_object(value)


def _state(kind: Kind, obj: Object) -> tuple[Any, ...]:
    del kind
    metadata = obj["metadata"]
    seen = (metadata.get(name) for name in ("uid", "generation", "deletionTimestamp"))
    annotations = metadata.get("annotations") or {}
    # Its own notes are no reason to call the function again.
    others = {name: value for name, value in annotations.items() if name != APPLIED}
    return (*seen, str(metadata.get("labels")), str(others))


def _observe(kind: Kind, change: Change[Any]) -> Sequence[Key]:
    del kind
    return (change.key,) if change.after is not None and change.before != change.after else ()
