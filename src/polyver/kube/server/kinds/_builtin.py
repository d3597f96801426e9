"""What all built-in kinds have in common: their defaults, and a status that the server begins."""

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
    """Defaults on every write; kinds add what else they prepare and check."""

    status_keeps: tuple[str, ...] | None = ()

    def __init__(self, kind: ResourceKind) -> None:
        self.kind = kind
        self.has_status = kind.subresource("status") is not None

    @cached_property
    def _fill(self) -> Callable[[Object], Object]:
        # Made when it is first needed: most servers never see most kinds.
        return defaults_of(shape_of(self.kind.group, self.kind.version, self.kind.kind))

    @cached_property
    def _first_status(self) -> Object:
        """The status as replies show it before anybody wrote one."""
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
        """Fill in what is left out; what the object is made of stays as it is."""
        obj |= self._fill(obj)

    def begin(self, obj: Object) -> None:
        """What the server adds to a new object, besides its defaults."""

    def keep(self, obj: Object, old: Object) -> None:
        """What a change leaves as it was."""
