"""What a controller has applied for an object, noted in an annotation of that object.

Whoever comes after a restart knows from it what is wanted no longer, without looking everywhere.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any, NamedTuple

import msgspec

from polyver.client import Discovery, GroupVersionResource, preferred
from polyver.core.plain import Object
from polyver.kube.objects import digest, encode_json

__all__ = [
    "APPLIED",
    "AppliedObject",
    "fields_of",
    "is_made_for",
    "noted",
    "part_of",
    "resource_of",
    "text_of",
    "unwanted",
]

APPLIED = "polyver.dev/applied"


class AppliedObject(NamedTuple):
    """An object that belongs to another; the same one in whatever version it is asked for."""

    group: str
    kind: str
    namespace: str
    """Empty for what is in none."""
    name: str


def part_of(content: Object) -> AppliedObject:
    """An object, by its names."""
    metadata = content.get("metadata") or {}
    group = content["apiVersion"].rpartition("/")[0]
    return AppliedObject(
        group, content["kind"], metadata.get("namespace", ""), metadata.get("name", "")
    )


def noted(owner: Object) -> list[AppliedObject]:
    """What was applied for an object, as far as it says so; what nobody can read says nothing."""
    text = (owner["metadata"].get("annotations") or {}).get(APPLIED, "")
    try:
        return sorted({AppliedObject(*each) for each in _decode(text)})
    except (msgspec.MsgspecError, UnicodeError):
        return []


_decode = msgspec.json.Decoder(list[tuple[str, str, str, str]]).decode


def text_of(parts: Iterable[AppliedObject]) -> str | None:
    """What is to be noted; None if there is nothing to note."""
    found = sorted(set(parts))
    return encode_json(found).decode() if found else None


def unwanted(
    before: Iterable[AppliedObject], wanted: Iterable[AppliedObject]
) -> list[AppliedObject]:
    """What was applied and is not wanted any more.

    >>> a, b = (AppliedObject("", "ConfigMap", "default", name) for name in "ab")
    >>> [part.name for part in unwanted([a, b], [b])]
    ['a']
    """
    return sorted(set(before) - set(wanted))


def resource_of(part: AppliedObject, discovery: Discovery) -> GroupVersionResource | None:
    """Where the server has such objects; None if it serves them no longer."""
    served = preferred(discovery.kinds, verbs=("delete", "get"))
    found = [each for each in served if (each.group, each.kind) == (part.group, part.kind)]
    return GroupVersionResource.of(found[0]) if found else None


def is_made_for(found: Object, owner: Object, managers: Collection[str]) -> bool:
    """Whether a controller made an object for this very owner, and nobody else has it now."""
    metadata = found["metadata"]
    owners: Sequence[Mapping[str, Any]] = metadata.get("ownerReferences") or ()
    entries: Sequence[Mapping[str, Any]] = metadata.get("managedFields") or ()
    is_owned = [each["uid"] for each in owners] == [owner["metadata"]["uid"]]
    return is_owned and any(_applied_by(each) in managers for each in entries)


def fields_of(found: Object, manager: str) -> str:
    """Tells which fields of an object a manager has applied.

    Who changes or removes one of them takes it away from it, so that this changes as well; what
    others add does not count.
    """
    entries: Sequence[Mapping[str, Any]] = found["metadata"].get("managedFields") or ()
    mine = [each.get("fieldsV1") for each in entries if _applied_by(each) == manager]
    return digest(mine).removeprefix("sha256:")[:16] if mine else ""


def _applied_by(entry: Mapping[str, Any]) -> str:
    return str(entry.get("manager", "")) if entry.get("operation") == "Apply" else ""
