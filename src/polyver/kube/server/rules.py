"""Interfaces for the rules of a kind and for the views of its subresources."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Protocol

from polyver.core.plain import Object
from polyver.kube.objects.status import Cause
from polyver.languages.values.names import dns_subdomain_problems

__all__ = ["KindRules", "ObjectView"]


class KindRules:
    """The rules that a kind adds to every write; this base class adds none."""

    name_problems: Callable[[str], list[str]] = staticmethod(dns_subdomain_problems)
    unconditional = True
    """True if an update may leave out the resourceVersion."""
    creates_on_update = False
    counts = False
    """True if metadata.generation counts the changes."""
    answers_deletion = False
    """True if a DELETE answers with the deleted object."""
    has_status = False
    """True if the status is a subresource, so that other writes do not change it."""
    status_keeps: tuple[str, ...] | None = None
    """Metadata fields that a write to the status does not change; None if it changes none."""
    costly = False
    """True if checking its objects takes long even if they are small."""
    brings_status = False
    """True if a new object may contain its status although the status is a subresource."""

    def default(self, obj: Object) -> None:
        """Set defaults; they count as written by the sender of the request."""

    def settle(self, obj: Object, *, applied: bool) -> None:
        """Change a valid object to the form that kube-apiserver stores, or returns after a read."""

    def prepare_create(self, obj: Object) -> None:
        """Set the fields that the server sets, and clear fields that only the server may set."""

    def prepare_update(self, obj: Object, old: Object) -> None:
        """Set and clear fields of an update in the same way as `prepare_create`."""

    def prepare_status(self, obj: Object, old: Object) -> Object:
        """Return the object after a write to /status: only the status is new."""
        kept = {key: value for key, value in old.items() if key != "status"}
        if "status" in obj:
            kept["status"] = obj["status"]
        return kept

    def check_create(self, obj: Object) -> list[Cause]:
        """Return all problems of a new object, except of its metadata."""
        del obj
        return []

    def check_update(self, obj: Object, old: Object) -> list[Cause]:
        """Return all problems of a change, except of metadata."""
        del old
        return self.check_create(obj)

    def check_status(self, obj: Object, old: Object) -> list[Cause]:
        """Return all problems of a new status."""
        del obj, old
        return []

    def tolerated(self, obj: Object, old: Object) -> Iterable[str]:
        """Return the problems that the old object had too.

        They become warnings, even if the write is refused for another reason.
        """
        del obj, old
        return ()

    def warnings(self, obj: Object, old: Object | None) -> Iterable[str]:
        """Return warnings for a write that succeeds."""
        del obj, old
        return ()

    def held(self, obj: Object) -> bool:
        """Report whether a finalizer keeps an object that is being deleted."""
        return bool(obj["metadata"].get("finalizers"))

    def begin_deletion(self, obj: Object, now: str) -> None:
        """Set the metadata of an object whose deletion begins but has to wait."""
        metadata = obj["metadata"]
        metadata |= {"deletionTimestamp": now, "deletionGracePeriodSeconds": 0}
        if metadata.get("generation"):
            metadata["generation"] += 1

    def ended(self, obj: Object, now: str) -> Object:
        """Return the object for the answer to its deletion."""
        del now
        return obj


class ObjectView(Protocol):
    """The part of an object that a path shows, and how a write there changes the object."""

    @property
    def name(self) -> str: ...

    def show(self, obj: Object) -> Object:
        """Return the answer to a GET."""

    def base(self, obj: Object) -> Object:
        """Return the object that a patch is applied to."""

    def merge(self, shown: Object, old: Object) -> Object: ...

    def prepare(self, obj: Object, old: Object) -> None: ...

    def check(self, obj: Object, old: Object) -> list[Cause]: ...
