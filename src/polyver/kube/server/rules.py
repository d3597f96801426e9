"""Rules for writes of each kind, and views of its objects: whole, status, finalize and scale.

Rules change and check a written object. A view is the part of an object that a URL path shows, such
as the status for .../status. A write to this path changes only this part.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any, Protocol

from polyver.core.plain import Object
from polyver.kube.objects.kinds import ResourceKind
from polyver.kube.objects.status import Cause, internal, invalid, invalid_field
from polyver.languages.values.names import dns_subdomain_problems

__all__ = [
    "FinalizeView",
    "KindRules",
    "Names",
    "ObjectView",
    "ScaleView",
    "StatusView",
    "WholeObjectView",
    "dig",
    "dotted",
]


class KindRules:
    """Rules for writes of one kind: changes and checks of a written object.

    This base class changes and checks nothing. Each kind with its own rules has a subclass.
    """

    name_problems: Callable[[str], list[str]] = staticmethod(dns_subdomain_problems)
    unconditional = True
    """True if an update is allowed even if its body has no resourceVersion."""
    creates_on_update = False
    counts = False
    """True if metadata.generation counts the changes of an object.

    Changes of the metadata, and of a status that is a subresource, are not counted.
    """
    answers_deletion = False
    """True if the answer to a DELETE is the deleted object; False if it is a Status."""
    has_status = False
    """True if the status is a subresource: only writes to /status change it."""
    status_keeps: tuple[str, ...] | None = None
    """The metadata fields that a write to /status cannot change; None means all metadata fields."""
    costly = False
    """True if the checks of this kind take long even for small objects."""
    brings_status = False
    """True if a create may set the status, although the status is a subresource."""

    def default(self, obj: Object) -> None:
        """Set defaults in `obj`. The field manager of the request owns these fields."""

    def settle(self, obj: Object, *, applied: bool) -> None:
        """Change a valid object as kube-apiserver changes it when it stores or reads the object."""

    def prepare_create(self, obj: Object) -> None:
        """Set the server fields of a new object, and remove server fields that the client has set.

        A server field is a field that only the server may set.
        """

    def prepare_update(self, obj: Object, old: Object) -> None:
        """Set and remove server fields of an updated object, as in `prepare_create`."""

    def prepare_status(self, obj: Object, old: Object) -> Object:
        """Build the object after a write to /status: `old` with the status of `obj`."""
        kept = {key: value for key, value in old.items() if key != "status"}
        if "status" in obj:
            kept["status"] = obj["status"]
        return kept

    def check_create(self, obj: Object) -> list[Cause]:
        """Return all problems of a new object except problems of its metadata."""
        del obj
        return []

    def check_update(self, obj: Object, old: Object) -> list[Cause]:
        """Return all problems of an updated object except problems of its metadata."""
        del old
        return self.check_create(obj)

    def check_status(self, obj: Object, old: Object) -> list[Cause]:
        """Return all problems of an object after a write to its status."""
        del obj, old
        return []

    def tolerated(self, obj: Object, old: Object) -> Iterable[str]:
        """Return problems that are no errors, because the object had them before the update.

        The client gets them as warnings, even if the write is refused for another reason.
        """
        del obj, old
        return ()

    def warnings(self, obj: Object, old: Object | None) -> Iterable[str]:
        """Return the warnings that the client gets for a valid write."""
        del obj, old
        return ()

    def held(self, obj: Object) -> bool:
        """Report whether an object must not be deleted yet, because it has finalizers."""
        return bool(obj["metadata"].get("finalizers"))

    def begin_deletion(self, obj: Object, now: str) -> None:
        """Mark an object for deletion in its metadata; the object itself is deleted later."""
        metadata = obj["metadata"]
        metadata |= {"deletionTimestamp": now, "deletionGracePeriodSeconds": 0}
        if metadata.get("generation"):
            metadata["generation"] += 1

    def ended(self, obj: Object, now: str) -> Object:
        """Return the object for the answer to a DELETE that has deleted it."""
        del now
        return obj


class ObjectView(Protocol):
    """A view: the part of an object that one URL path shows and changes.

    For example, a GET of .../status shows the status, and a PUT to this path changes only the
    status.
    """

    @property
    def name(self) -> str: ...

    def show(self, obj: Object) -> Object:
        """Return the object that a client gets by a GET of the view's path, such as a Scale."""

    def base(self, obj: Object) -> Object:
        """Return the part of an object that the view shows, for patches and for webhooks.

        Unlike `show`, this method does not fail if the object has no replicas field.
        """

    def merge(self, shown: Object, old: Object) -> Object: ...

    def prepare(self, obj: Object, old: Object) -> None: ...

    def check(self, obj: Object, old: Object) -> list[Cause]: ...


Names = tuple[str, ...]
SCALE = ResourceKind("autoscaling", "v1", "Scale", "scales", "scale", namespaced=True)


class _ShownWhole:
    """The base class of views that show the whole object."""

    __slots__ = ()

    def show(self, obj: Object) -> Object:
        return obj

    base = show


@dataclass(frozen=True, slots=True)
class WholeObjectView(_ShownWhole):
    """The view of the whole object. If the status is a subresource, a write does not change it."""

    rules: KindRules
    name: str = ""

    def merge(self, shown: Object, old: Object) -> Object:
        if not self.rules.has_status:
            return shown
        kept = {key: value for key, value in shown.items() if key != "status"}
        return kept | ({"status": old["status"]} if "status" in old else {})

    def prepare(self, obj: Object, old: Object) -> None:
        self.rules.prepare_update(obj, old)

    def check(self, obj: Object, old: Object) -> list[Cause]:
        return self.rules.check_update(obj, old)


@dataclass(frozen=True, slots=True)
class StatusView(_ShownWhole):
    """The status: a write changes the status, and for built-in kinds also some metadata."""

    rules: KindRules
    name: str = "status"

    def merge(self, shown: Object, old: Object) -> Object:
        merged = self.rules.prepare_status(shown, old)
        given, left = shown["metadata"], self.rules.status_keeps
        if left is not None:
            changed = {key: value for key, value in given.items() if key not in left}
            same = {key: value for key, value in old["metadata"].items() if key in left}
            return merged | {"metadata": changed | same}
        # Keep the resourceVersion of the request, because it is checked later.
        names = {key: given[key] for key in ("resourceVersion", "uid") if key in given}
        kept = {key: value for key, value in old["metadata"].items() if key != "resourceVersion"}
        return merged | {"metadata": kept | names}

    def prepare(self, obj: Object, old: Object) -> None:
        """Do nothing: a write to /status needs no preparation."""

    def check(self, obj: Object, old: Object) -> list[Cause]:
        return self.rules.check_status(obj, old)


@dataclass(frozen=True, slots=True)
class FinalizeView(_ShownWhole):
    """The view of /finalize. Only writes to this path change spec.finalizers of a namespace."""

    rules: KindRules
    name: str = "finalize"

    def merge(self, shown: Object, old: Object) -> Object:
        spec = {key: value for key, value in old.get("spec", {}).items() if key != "finalizers"}
        finalizers = shown.get("spec", {}).get("finalizers")
        if finalizers:
            spec["finalizers"] = finalizers
        return old | {"spec": spec, "metadata": shown["metadata"]}

    def prepare(self, obj: Object, old: Object) -> None:
        """Do nothing: a write to /finalize needs no preparation."""

    def check(self, obj: Object, old: Object) -> list[Cause]:
        return self.rules.check_update(obj, old)


@dataclass(frozen=True, slots=True)
class ScaleView:
    """The view of /scale.

    It shows an object as a Scale, whose replicas and selector are read from the fields where the
    kind has them.
    """

    rules: KindRules
    replicas: Names = ("spec", "replicas")
    status_replicas: Names = ("status", "replicas")
    selector: Names = ()
    name: str = "scale"
    strict: bool = True
    """True if a GET of /scale fails for an object without the replicas field."""

    def show(self, obj: Object) -> Object:
        if self.strict and dig(obj, self.replicas) is None:
            raise internal(f'the spec replicas field "{dotted(self.replicas)}" does not exist')
        return self.base(obj)

    def base(self, obj: Object) -> Object:
        found = dig(obj, self.replicas)
        names = ("name", "namespace", "uid", "resourceVersion", "creationTimestamp")
        metadata = {key: obj["metadata"][key] for key in names if key in obj["metadata"]}
        status: Object = {"replicas": dig(obj, self.status_replicas) or 0}
        selector = _selector(dig(obj, self.selector)) if self.selector else ""
        if selector:
            status["selector"] = selector
        spec = {"replicas": found} if found else {}
        named = {"apiVersion": SCALE.api_version, "kind": SCALE.kind}
        return named | {"metadata": metadata, "spec": spec, "status": status}

    def merge(self, shown: Object, old: Object) -> Object:
        merged = copy.deepcopy(old)
        _put(merged, self.replicas, shown.get("spec", {}).get("replicas", 0))
        given = shown["metadata"]
        merged["metadata"].pop("resourceVersion", None)
        names = {key: given[key] for key in ("resourceVersion", "uid") if key in given}
        return merged | {"metadata": merged["metadata"] | names}

    def prepare(self, obj: Object, old: Object) -> None:
        self.rules.prepare_update(obj, old)

    def check(self, obj: Object, old: Object) -> list[Cause]:
        replicas = dig(obj, self.replicas)
        negative = isinstance(replicas, int) and replicas < 0
        if negative and not self.strict:
            # For built-in kinds, kube-apiserver checks the Scale itself, not the changed object.
            text = "must be greater than or equal to 0"
            wrong = invalid_field(dotted(self.replicas)[1:], replicas, text)
            raise invalid(SCALE, obj["metadata"].get("name", ""), [wrong])
        return self.rules.check_update(obj, old)


def dotted(names: Names) -> str:
    """Format field names as a path with a leading dot, such as `.spec.replicas`."""
    return "".join(f".{name}" for name in names)


def dig(obj: object, names: Names) -> Any:
    """Return the value at a field path, or None if a field is missing."""
    for name in names:
        if not isinstance(obj, dict) or name not in obj:
            return None
        obj = obj[name]
    return obj


def _put(obj: Object, names: Names, value: object) -> None:
    for name in names[:-1]:
        obj = obj.setdefault(name, {})
    obj[names[-1]] = value


def _selector(found: object) -> str:
    """Convert the selector of an object to a string, as in the status of a Scale.

    Custom kinds store a string already, built-in kinds store labels.
    """
    match found:
        case str():
            return found
        case dict():
            labels = found.get("matchLabels", found)
            return ",".join(f"{key}={labels[key]}" for key in sorted(labels))
    return ""
