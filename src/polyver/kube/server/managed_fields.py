"""Field ownership: updates metadata.managedFields in every write."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import TypeVar

from polyver.core.plain import Object
from polyver.kube.objects.apply import (
    Entry,
    Scope,
    resets_of,
    times_kept,
    track_scale,
    track_update,
)
from polyver.kube.objects.codec import encode_sorted
from polyver.kube.server.call import Call
from polyver.kube.server.rules import ObjectView, ScaleView, dig

__all__ = ["decided", "own", "scope_of", "set_entries", "times_kept"]

T = TypeVar("T")


def scope_of(call: Call, part: ObjectView) -> Scope:
    """Build the scope of a request: the version, shapes and subresource for field ownership."""
    resource, kind = call.resource, call.resource.kind
    versions = [kind.api_version]
    if kind.custom and part.name == "status":
        versions = list(resource.shapes)
    resets = {}
    if resource.rules.has_status and part.name in ("", "status"):
        resets = resets_of(*versions, kind=kind.kind, subresource=part.name, custom=kind.custom)
    return Scope(
        api_version=kind.api_version,
        kind=kind.kind,
        shapes=resource.shapes,
        subresource=part.name,
        resets=resets,
    )


class _Missing(Exception):
    """Raised if field owners cannot be computed before an object is converted to `api_version`.

    The object is then converted, and the computation is repeated.
    """

    def __init__(self, obj: Object, api_version: str) -> None:
        super().__init__(api_version)
        self.obj = obj
        self.api_version = api_version


async def decided(call: Call, part: ObjectView, decide: Callable[[Scope], T]) -> T:
    """Call `decide` with the scope of the request, and return its result.

    `decide` may need an object in the version of a field owner, but it cannot await a conversion.
    So if this version of the object is missing, `decide` is stopped, the object is converted, and
    `decide` is called again.
    """
    scope, resource = scope_of(call, part), call.resource
    known: dict[tuple[bytes, str], Object] = {}

    def convert(obj: Object, api_version: str) -> Object:
        try:
            return known[encode_sorted(obj), api_version]
        except KeyError:
            raise _Missing(obj, api_version) from None

    while True:
        try:
            return await call.run(lambda: decide(replace(scope, convert=convert)))
        except _Missing as missing:
            key = encode_sorted(missing.obj), missing.api_version
            if resource.conversion is None:
                known[key] = missing.obj | {"apiVersion": missing.api_version}
            else:
                known[key] = await resource.conversion.convert(missing.obj, missing.api_version)


async def own(call: Call, part: ObjectView, obj: Object, old: Object | None, manager: str) -> None:
    """Record in managedFields which fields of an object a write has changed.

    `old` is None for a new object. This function is for all writes except server-side applies.
    """
    if isinstance(part, ScaleView):
        before = old or {}
        entries: Sequence[Entry] = before.get("metadata", {}).get("managedFields") or ()
        if dig(before, part.replicas) != dig(obj, part.replicas):
            version = call.resource.kind.api_version
            paths = {version: part.replicas}
            entries = track_scale(entries, manager=manager, api_version=version, paths=paths)
    else:
        now = call.server.timestamp()
        entries = await decided(
            call,
            part,
            lambda scope: track_update(old, obj, scope=scope, manager=manager, now=now),
        )
    set_entries(obj, entries)


def set_entries(obj: Object, entries: Sequence[Entry]) -> None:
    """Set managedFields of an object; without entries, remove managedFields."""
    obj["metadata"].pop("managedFields", None)
    if entries:
        obj["metadata"]["managedFields"] = list(entries)
