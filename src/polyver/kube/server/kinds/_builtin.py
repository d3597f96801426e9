"""Rules that all built-in kinds share: defaults, and the initial status."""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property

from polyver.core.plain import Object
from polyver.kube.objects.builtin import shape_of
from polyver.kube.objects.kinds import ResourceKind
from polyver.kube.objects.typed_bodies import decode_typed
from polyver.kube.server.kinds._apply_defaults import defaults_of
from polyver.kube.server.rules import KindRules

__all__ = ["BuiltinRules"]


class BuiltinRules(KindRules):
    """Sets defaults on every write, and the status of new objects; subclasses check more."""

    status_keeps: tuple[str, ...] | None = ()

    def __init__(self, kind: ResourceKind) -> None:
        self.kind = kind
        self.has_status = kind.subresource("status") is not None

    @cached_property
    def _fill(self) -> Callable[[Object], Object]:
        # Built when first needed: most servers never see most kinds.
        return defaults_of(shape_of(self.kind.group, self.kind.version, self.kind.kind))

    @cached_property
    def _first_status(self) -> Object:
        """The status that a new object shows before any client has written one."""
        empty = decode_typed({}, shape_of(self.kind.group, self.kind.version, self.kind.kind))
        status: Object = empty.value.get("status", {})
        return status

    def prepare_create(self, obj: Object) -> None:
        if self.has_status:
            obj["status"] = dict(self._first_status)
        self.default(obj)
        self.begin(obj)

    def prepare_update(self, obj: Object, old: Object) -> None:
        self.default(obj)
        self.keep(obj, old)

    def prepare_status(self, obj: Object, old: Object) -> Object:
        kept = super().prepare_status(obj, old)
        self.default(kept)
        return kept

    def default(self, obj: Object) -> None:
        """Set defaults in an object, without changing values inside it in place."""
        obj |= self._fill(obj)

    def begin(self, obj: Object) -> None:
        """Set further fields of a new object."""

    def keep(self, obj: Object, old: Object) -> None:
        """Restore fields that an update may not change."""
