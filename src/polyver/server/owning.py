"""Who owns which fields: managedFields in every write, as the kind is described."""

from __future__ import annotations

from collections.abc import Sequence

from polyver.objects.apply import Entry, Scope, resets_of, times_kept, track_scale, track_update
from polyver.server.call import Call
from polyver.server.parts import Scale
from polyver.server.rules import Object, Part

__all__ = ["own", "scope_of", "set_entries", "times_kept"]


def scope_of(call: Call, part: Part) -> Scope:
    """Through what a request writes."""
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
        shapes=resource.shapes or {kind.api_version: resource.shape},
        subresource=part.name,
        resets=resets,
    )


def own(call: Call, part: Part, obj: Object, old: Object | None, manager: str) -> None:
    """Note in an object who wrote what, after a write that was no apply."""
    if isinstance(part, Scale):
        entries = track_scale(
            (old or {}).get("metadata", {}).get("managedFields") or (),
            manager=manager,
            api_version=call.resource.kind.api_version,
            paths={call.resource.kind.api_version: part.replicas},
        )
    else:
        entries = track_update(
            old, obj, scope=scope_of(call, part), manager=manager, now=call.server.timestamp()
        )
    set_entries(obj, entries)


def set_entries(obj: Object, entries: Sequence[Entry]) -> None:
    """Put managedFields into an object, or take them out."""
    obj["metadata"].pop("managedFields", None)
    if entries:
        obj["metadata"]["managedFields"] = list(entries)
