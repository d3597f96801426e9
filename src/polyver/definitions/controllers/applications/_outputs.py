"""Applied objects of applications, as the API server has them.

The kinds that applications use are watched, restricted to objects with our label.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final

from msgspec import Struct

from polyver.client import Key
from polyver.controllers.owned_objects.index import AppliedObjects as _Outputs
from polyver.controllers.owned_objects.index import number_of
from polyver.controllers.owned_objects.inventory import AppliedObject
from polyver.core.plain import Object
from polyver.definitions.names import APP_NAME, APP_NAMESPACE, RENDERED
from polyver.definitions.rendered_objects import fields_digest
from polyver.kube.objects.health import Health, health_of
from polyver.kube.objects.kinds import ResourceKind
from polyver.kube.objects.owners import controller_of

__all__ = ["ApplicationOutputs", "ObservedApplicationObject", "part_in", "seen_in"]

_GONE: Final = Health(False, "does not exist")


class ObservedApplicationObject(Struct, frozen=True, gc=False):
    """The indexed fields of an applied object."""

    application: Key
    owner: str
    """The uid of its controller; empty without one."""
    uid: str
    fields: str
    health: Health
    revision: int

    def differs(self, other: ObservedApplicationObject | None) -> bool:
        """Report whether a difference from another state matters to the application."""
        if other is None:
            return True
        mine, theirs = ((x.uid, x.owner, x.fields, x.health) for x in (self, other))
        return mine != theirs


def seen_in(kind: ResourceKind, obj: Object) -> ObservedApplicationObject:
    """Return the indexed fields of an object."""
    del kind
    metadata = obj["metadata"]
    labels: Mapping[str, str] = metadata.get("labels") or {}
    return ObservedApplicationObject(
        application=Key(labels.get(APP_NAMESPACE, ""), labels.get(APP_NAME, "")),
        owner=controller_of(obj),
        uid=metadata.get("uid", ""),
        fields=fields_digest(obj),
        health=health_of(obj),
        revision=number_of(obj),
    )


def part_in(applied: Mapping[str, Any]) -> AppliedObject:
    """Return the identity of the object in an entry of `appliedResources`."""
    group = applied["apiVersion"].rpartition("/")[0]
    return AppliedObject(group, applied["kind"], applied.get("namespace", ""), applied["name"])


class ApplicationOutputs(_Outputs[ObservedApplicationObject, Key]):
    """Index of all applied objects."""

    def __init__(self, changed: Callable[[], None]) -> None:
        """Create an index; `changed` is called when other kinds must be watched."""
        super().__init__(
            changed, keep=seen_in, whose=lambda seen: seen.application, labels=RENDERED
        )

    def health(self, applied: Mapping[str, Any]) -> Health:
        """Return the health of an object in `appliedResources` of an application's status."""
        seen = self.of(part_in(applied))
        return seen.health if seen is not None else _GONE

    def is_as_applied(self, applied: Mapping[str, Any], key: Key) -> bool:
        """Report whether an object exists, and has the fields that the application applied."""
        seen = self.of(part_in(applied))
        return seen is not None and seen.application == key and seen.fields == applied.get("fields")
