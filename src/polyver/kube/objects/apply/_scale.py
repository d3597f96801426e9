"""managedFields after a write to /scale, which changes only the replicas."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from polyver.kube.objects.apply._entries import (
    Entry,
    ManagerIdentifier,
    OwnedFields,
    stored_entries,
    write_entries,
)
from polyver.kube.objects.apply._fields import LEAF, Fields, difference, has

__all__ = ["track_scale"]


def track_scale(
    entries: Sequence[Entry],
    *,
    manager: str,
    api_version: str,
    paths: Mapping[str, Sequence[str]],
) -> list[Entry]:
    """Return the managedFields of an object whose replicas were changed through /scale.

    `paths` has the path of the replicas by API version: `{"apps/v1": ("spec", "replicas")}`;
    entries of other versions are dropped. The new entry has no time, as in kube-apiserver.
    """
    known = stored_entries(entries).items()
    owners = {each: owned for each, owned in known if owned.api_version in paths}
    places = {version: tuple(f"f:{name}" for name in path) for version, path in paths.items()}
    if not any(has(owned.fields, places[owned.api_version]) for owned in owners.values()):
        return write_entries(owners)  # A field without an owner stays without one.
    left = {
        identity: owned._replace(fields=difference(owned.fields, _only(places[owned.api_version])))
        for identity, owned in owners.items()
    }
    left = {identity: owned for identity, owned in left.items() if owned.fields}
    identity = ManagerIdentifier(manager or "unknown", "Update", api_version, "scale")
    left[identity] = OwnedFields(api_version, _only(places[api_version]))
    return write_entries(left)


def _only(path: tuple[str, ...]) -> Fields:
    fields = LEAF
    for element in reversed(path):
        fields = {element: fields}
    return fields
