"""Steps of a retirement that read all objects of a kind, one chunk of objects at a time.

Each write has a precondition: the object must still have the resourceVersion that was read. So a
write never overwrites the change of another client. The position after each chunk is in the status
of the Retirement. A controller that starts again continues after this position; if it repeats a
chunk, it changes nothing.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, Final

from polyver.apis.conversion import (
    ANNOTATION,
    BESIDE,
    NOTHING_PRESERVED,
    Converter,
    preserved_in_version,
    without_version,
)
from polyver.apis.retirement import PassProgress, RetirementStep
from polyver.client import Client, GroupVersionResource, for_each, precondition
from polyver.client.field_managers import POLYVER
from polyver.core import PolyverError
from polyver.core.plain import Object
from polyver.kube.objects.apply import VersionChange, entries_in_version
from polyver.kube.objects.schema import compile_schema
from polyver.kube.objects.status import ApiError
from polyver.kube.objects.type_shapes import Shape

__all__ = ["ObjectPass", "PassChunk", "RefusedWrite", "object_key", "version_change"]

_PAGES: Final = {RetirementStep.REWRITE: 500, RetirementStep.VERIFY: 500}
_PAGE: Final = 100
"""The number of objects in a chunk, for steps that read whole objects."""
_AT_ONCE: Final = 8
_CHANGED: Final = (404, 409)
"""Status codes of writes to an object that another client has deleted or changed."""


class RefusedWrite(PolyverError):
    """The server refused a write of an object, or the object cannot be converted."""


@dataclass(slots=True)
class PassChunk:
    """The result of one chunk."""

    progress: PassProgress
    total: int
    """The number of objects of the kind, as far as the server reports it."""
    purged: Counter[str] = field(default_factory=Counter)
    """The purged fields, by path, with the number of their objects."""
    returns_to: RetirementStep | None = None
    """An earlier step that must be repeated, because an object needs it again."""


@dataclass(slots=True)
class _Work:
    """The effect of a chunk on its objects."""

    changed: int = 0
    purged: Counter[str] = field(default_factory=Counter)
    late: int = 0
    """The number of objects that need an earlier step again."""
    error: ApiError | RefusedWrite | None = None
    """The last error of an object."""


class ObjectPass:
    """One step over all objects of a kind, for one Retirement."""

    def __init__(
        self,
        client: Client,
        resource: GroupVersionResource,
        api_version: str,
        step: RetirementStep,
        *,
        change: VersionChange | None,
        places: Sequence[Sequence[str]],
    ) -> None:
        """Create the step. `api_version` is the one to retire.

        `change` converts managedFields entries; None if polyver does not convert the kind. `places`
        are the paths at which objects have their preserved fields.
        """
        self._client = client
        self._resource = resource
        self._api_version = api_version
        self._step = step
        self._change = change
        self._places = places
        self._next: tuple[str, str] = ("", "")
        """The last object of the previous chunk, and the continue token of the next page."""

    async def run_chunk(self, before: PassProgress) -> PassChunk:
        """Process the objects after `before.after`; return the progress.

        Raise RefusedWrite if an object cannot be processed, and ApiError if the objects cannot be
        listed. The progress then stays as it was.
        """
        if before.rounds and not before.after:
            before = replace(before, objects=0, changed=0)
        items, more, remaining = await self._page(before.after)
        work = _Work()
        await for_each(items, partial(self._process, work), at_once=_AT_ONCE)
        if work.error is not None:
            raise work.error
        objects = before.objects + len(items)
        progress = replace(
            before,
            objects=objects,
            changed=before.changed + work.changed,
            written=before.written + work.changed,
            after=object_key(items[-1]) if items and more else "",
        )
        self._next = (progress.after, more)
        if not more:
            once = self._step == RetirementStep.REWRITE
            done = (once or not progress.changed) and not work.late
            progress = replace(progress, rounds=before.rounds + 1, done=done)
        late = RetirementStep.OWNERS if work.late else None
        return PassChunk(progress, objects + remaining, work.purged, late)

    async def _page(self, after: str) -> tuple[list[Object], str, int]:
        """Return the objects after a key, the continue token, and the number of later objects."""
        known, more = self._next
        if known != after or not after:
            more = ""
        metadata = self._step in _PAGES
        limit = _PAGES.get(self._step, _PAGE)
        while True:
            try:
                page = await self._client.list(
                    self._resource, limit=limit, more=more, metadata=metadata
                )
            except ApiError as error:
                if error.code != 410 or not more:
                    raise
                more = ""  # the token has expired
                continue
            items = [each for each in page.items if object_key(each) > after]
            if items or not page.more:
                return items, page.more, page.remaining
            more = page.more

    async def _process(self, work: _Work, obj: Object) -> None:
        """Process one object. Keep an error in `work`, so that the other objects are processed."""
        name = object_key(obj)
        try:
            # `work.changed += await …` would lose the counts of other objects: Python reads the old
            # value before the await.
            changed = await self._changed(work, obj)
            work.changed += changed
        except ApiError as error:
            if error.code == 403:
                work.error = error
            elif error.code not in _CHANGED:
                work.error = RefusedWrite(f"{name}: {error.message}")
            else:
                # In the storage version, somebody else has done the same. The other steps are
                # repeated until they find nothing to change.
                work.changed += self._step not in _PAGES
        except PolyverError as error:
            work.error = RefusedWrite(f"{name}: {error}")

    async def _changed(self, work: _Work, obj: Object) -> bool:
        """Execute the step for one object; report whether the object was written."""
        match self._step:
            case RetirementStep.REWRITE | RetirementStep.VERIFY:
                return await self._rewrite(obj)
            case RetirementStep.OWNERS:
                return await self._convert_owners(obj)
            case _:
                return await self._purge(work, obj)

    async def _rewrite(self, obj: Object) -> bool:
        """Write an object without changes; report whether it was stored in another form.

        An API server does not store a write that changes nothing, and keeps the resourceVersion. It
        does store it if the stored object has an old version.
        """
        made = await self._patch(obj, {})
        return bool(made["metadata"]["resourceVersion"] != obj["metadata"]["resourceVersion"])

    async def _convert_owners(self, obj: Object) -> bool:
        entries = obj["metadata"].get("managedFields") or ()
        if all(each.get("apiVersion") != self._api_version for each in entries):
            return False
        if self._change is None:
            fact = (
                f"managedFields name {self._api_version}, and polyver does not convert this kind; "
                "have the field managers write in another version"
            )
            raise PolyverError(fact)
        obj = {**obj, "apiVersion": self._change.target}  # items of a list may lack it
        made = await asyncio.to_thread(entries_in_version, obj, self._change)
        # Without any entry, the list would leave the entries as they are; [{}] removes them.
        await self._patch(obj, {"metadata": {"managedFields": made or [{}]}})
        return True

    async def _purge(self, work: _Work, obj: Object) -> bool:
        entries = obj["metadata"].get("managedFields") or ()
        work.late += any(each.get("apiVersion") == self._api_version for each in entries)
        version, changed = self._api_version.rpartition("/")[2], False
        for place in self._places:
            text = _at(obj, place)
            if not isinstance(text, str):
                continue
            paths = preserved_in_version(text, version) or []
            left = without_version(text, version)
            if text == left != NOTHING_PRESERVED:
                continue
            if left != text:
                obj = await self._patch(obj, _nested(place, left))
            if left == NOTHING_PRESERVED:
                obj = await self._patch(obj, _nested(place, None))
            changed = True
            work.purged.update(paths)
        return changed

    async def _patch(self, obj: Object, change: Object) -> Object:
        about = obj["metadata"]
        return await self._client.patch(
            self._resource,
            about["name"],
            about.get("namespace", ""),
            change={**change, "metadata": {**precondition(obj), **change.get("metadata", {})}},
            manager=POLYVER,
        )


def _at(obj: Object, path: Sequence[str]) -> Any:
    found: Any = obj
    for name in path:
        found = found.get(name) if isinstance(found, dict) else None
    return found


def _nested(path: Sequence[str], value: str | None) -> Object:
    first, *rest = path
    return {first: _nested(rest, value) if rest else value}


def object_key(obj: Object) -> str:
    """Return the namespace and name of an object; lists are in this order."""
    metadata = obj["metadata"]
    namespace = metadata.get("namespace")
    return f"{namespace}/{metadata['name']}" if namespace else str(metadata["name"])


def version_change(
    crd: Mapping[str, Any], source: str, target: str, converter: Converter | None
) -> VersionChange:
    """Return the change of managedFields from one version of a CRD to another.

    Without a converter, only the apiVersion of objects differs between the versions.
    """
    group, kind = crd["spec"]["group"], crd["spec"]["names"]["kind"]
    shapes: dict[str, Shape] = {
        f"{group}/{each['name']}": compile_schema(
            (each.get("schema") or {}).get("openAPIV3Schema") or {}
        ).shape
        for each in crd["spec"]["versions"]
    }

    def convert(obj: Object, api_version: str) -> Object:
        if converter is None:
            return {**obj, "apiVersion": api_version}
        return converter.convert({**obj, "kind": kind}, api_version.rpartition("/")[2])

    return VersionChange(
        f"{group}/{source}", f"{group}/{target}", shapes, convert, (ANNOTATION, BESIDE)
    )
