"""What kinds and their parts add to the way that every write goes."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Protocol

from polyver.core.plain import Object
from polyver.kube.objects.status import Cause
from polyver.languages.values.names import dns_subdomain_problems

__all__ = ["KindRules", "ObjectView"]


class KindRules:
    """What a kind adds to the way of every write; this adds nothing."""

    name_problems: Callable[[str], list[str]] = staticmethod(dns_subdomain_problems)
    unconditional = True
    """Whether an update may leave out the resourceVersion."""
    creates_on_update = False
    counts = False
    """Whether generation counts the changes."""
    answers_deletion = False
    """Whether a DELETE answers with the object that is gone."""
    has_status = False
    """Whether the status has a path of its own, so that other writes leave it alone."""
    status_keeps: tuple[str, ...] | None = None
    """What a write to that path leaves of metadata; all of it, if nobody says."""
    costly = False
    """Whether the work on its objects takes long even if they are small."""
    brings_status = False
    """Whether a new object may bring its status along all the same."""

    def default(self, obj: Object) -> None:
        """Fill in what a request left out; it counts as written by whoever sent the request."""

    def settle(self, obj: Object, *, applied: bool) -> None:
        """Change a valid object into what kube-apiserver stores, or reads from its store."""

    def prepare_create(self, obj: Object) -> None:
        """Set what the server sets, and clear what only it may set."""

    def prepare_update(self, obj: Object, old: Object) -> None:
        """The same, when there was something before."""

    def prepare_status(self, obj: Object, old: Object) -> Object:
        """What a write to /status makes of the object: only the status is new."""
        kept = {key: value for key, value in old.items() if key != "status"}
        if "status" in obj:
            kept["status"] = obj["status"]
        return kept

    def check_create(self, obj: Object) -> list[Cause]:
        """All that is wrong with a new object, but for its metadata."""
        del obj
        return []

    def check_update(self, obj: Object, old: Object) -> list[Cause]:
        """All that is wrong with a change, but for metadata."""
        del old
        return self.check_create(obj)

    def check_status(self, obj: Object, old: Object) -> list[Cause]:
        """All that is wrong with a new status."""
        del obj, old
        return []

    def tolerated(self, obj: Object, old: Object) -> Iterable[str]:
        """What is wrong with an object and was so before; it is told even if others refuse it."""
        del obj, old
        return ()

    def warnings(self, obj: Object, old: Object | None) -> Iterable[str]:
        """What the user should know of a write that is done all the same."""
        del obj, old
        return ()

    def held(self, obj: Object) -> bool:
        """Whether something keeps an object that is being deleted."""
        return bool(obj["metadata"].get("finalizers"))

    def begin_deletion(self, obj: Object, now: str) -> None:
        """What changes when a deletion begins that has to wait."""
        metadata = obj["metadata"]
        metadata |= {"deletionTimestamp": now, "deletionGracePeriodSeconds": 0}
        if metadata.get("generation"):
            metadata["generation"] += 1

    def ended(self, obj: Object, now: str) -> Object:
        """How an object that is gone is answered."""
        del now
        return obj


class ObjectView(Protocol):
    """What a path shows of an object, and what a write there makes of the object."""

    @property
    def name(self) -> str: ...

    def show(self, obj: Object) -> Object:
        """What a GET answers with."""

    def base(self, obj: Object) -> Object:
        """What a patch begins with."""

    def merge(self, shown: Object, old: Object) -> Object: ...

    def prepare(self, obj: Object, old: Object) -> None: ...

    def check(self, obj: Object, old: Object) -> list[Cause]: ...
