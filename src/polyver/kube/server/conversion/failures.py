"""Errors for requests when stored objects cannot be converted.

A write whose own object cannot be converted fails with the error of the conversion as it is.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from polyver.kube.objects.kinds import ResourceKind
from polyver.kube.objects.status import ApiError, internal
from polyver.kube.server.conversion.reviews import failure

__all__ = ["UnreadableObject", "unreadable", "unreadable_list", "unreadable_update"]

_MOST_TOLD = 100


@dataclass(frozen=True, slots=True)
class UnreadableObject:
    """A stored object, and the error of its conversion."""

    namespace: str
    name: str
    revision: int
    problem: ApiError

    def key(self, kind: ResourceKind) -> str:
        """Return the etcd key that kube-apiserver would use."""
        parts = (kind.group, kind.plural, self.namespace, self.name)
        return "".join(f"/{part}" for part in parts if part)

    def text(self, key: str) -> str:
        about = f"Code: 7, Key: {key}, ResourceVersion: 0, AdditionalErrorMsg: {self.undecodable}"
        return f"StorageError: corrupt object, {about}"

    @property
    def undecodable(self) -> str:
        return f"object not decodable revision={self.revision}: {self.problem.message}"


def unreadable(kind: ResourceKind, found: UnreadableObject) -> ApiError:
    """Return the error for a GET, a DELETE, or a deletecollection that meets such an object."""
    return internal(found.text(found.key(kind)))


def unreadable_update(found: UnreadableObject) -> ApiError:
    """Return the error for a PUT, PATCH or apply, or for the answer to a write already stored."""
    return failure(found.undecodable)


def unreadable_list(kind: ResourceKind, found: Sequence[UnreadableObject]) -> ApiError:
    """Return the error for a list, or a deletecollection whose list fails.

    The message contains the first problem; the causes contain up to 100.
    """
    told = found[:_MOST_TOLD]
    texts = {f"/registry{each.key(kind)}": each for each in told}
    causes: list[dict[str, Any]] = [
        {"reason": "UnexpectedServerResponse", "message": each.text(key), "field": key}
        for key, each in texts.items()
    ]
    message = f"failed to read one or more {kind.resource} from the storage: {causes[0]['message']}"
    more = f" (and {len(told) - 1} more)" if len(told) > 1 else ""
    if len(found) >= _MOST_TOLD:
        text = "too many errors, the list is truncated"
        causes.append({"reason": "FieldValueTooMany", "message": text})
    details = {"name": "list", "group": kind.group, "kind": kind.plural, "causes": causes}
    return ApiError(500, "StorageReadError", message + more, details=details)
