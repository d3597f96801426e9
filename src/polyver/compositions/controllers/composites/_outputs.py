"""Composed resources, as the API server has them.

Some objects are cached as a whole: they need no read until a watch reports a later state.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Iterable
from typing import Final

from msgspec import Struct

from polyver.client import Change
from polyver.compositions.controllers.composites._dependents import CompositeKey
from polyver.compositions.names import COMPOSITE
from polyver.controllers.owned_objects.index import AppliedObjects, number_of
from polyver.controllers.owned_objects.inventory import AppliedObject
from polyver.core.plain import Object
from polyver.kube.objects.kinds import ResourceKind
from polyver.kube.objects.owners import controller_of

__all__ = ["ComposedOutputs", "ObservedComposedResource", "seen_in"]

_KEPT: Final = 4096


class ObservedComposedResource(Struct, frozen=True, gc=False):
    """The indexed fields of a composed resource."""

    owner: str
    """The uid of its controller; empty without one."""
    revision: int

    def differs(self, other: ObservedComposedResource | None) -> bool:
        """Report whether the object changed in any field: functions get all of it."""
        return other is None or self.revision != other.revision


def seen_in(kind: ResourceKind, obj: Object) -> ObservedComposedResource:
    """Return the indexed fields of an object."""
    del kind
    return ObservedComposedResource(controller_of(obj), number_of(obj))


class ComposedOutputs(AppliedObjects[ObservedComposedResource, CompositeKey]):
    """Index and cache of all composed resources."""

    def __init__(
        self, changed: Callable[[], None], owner: Callable[[str], CompositeKey | None]
    ) -> None:
        """Create an index; `owner` returns the key of the composite resource with a uid."""
        super().__init__(
            changed, keep=seen_in, whose=lambda seen: owner(seen.owner), labels=COMPOSITE
        )
        self._objects: OrderedDict[AppliedObject, Object] = OrderedDict()
        self._awaited: dict[AppliedObject, set[CompositeKey]] = {}

    def await_release(self, part: AppliedObject, key: CompositeKey) -> None:
        """Reconcile a composite resource once an object has no other controller any more."""
        self._awaited.setdefault(part, set()).add(key)

    def forget(self, key: CompositeKey) -> None:
        """Remove a composite resource that no longer exists."""
        for keys in self._awaited.values():
            keys.discard(key)
        self._awaited = {part: keys for part, keys in self._awaited.items() if keys}

    def _observe(
        self, kind: ResourceKind, change: Change[ObservedComposedResource]
    ) -> Iterable[CompositeKey]:
        found = {*super()._observe(kind, change)}
        if self._awaited and (change.after is None or not change.after.owner):
            found |= self._awaited.pop(AppliedObject(kind.group, kind.kind, *change.key), set())
        return found

    def keep(self, part: AppliedObject, obj: Object) -> None:
        """Cache a whole object for later reconciles."""
        self.note(part, obj)
        self._objects[part] = obj
        self._objects.move_to_end(part)
        if len(self._objects) > _KEPT:
            self._objects.popitem(last=False)

    def kept(self, part: AppliedObject) -> Object | None:
        """Return a cached object if it is still current, else None."""
        obj, seen = self._objects.get(part), self.of(part)
        if obj is None or seen is None or not self.is_followed(part):
            return None
        return obj if number_of(obj) == seen.revision else None
