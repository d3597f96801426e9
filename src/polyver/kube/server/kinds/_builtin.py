"""Rules that all built-in kinds share: defaults, and the initial status.

The module `_defaults` has the default values by type. The shape of a kind shows which field of an
object has which type.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from polyver.core.plain import Object
from polyver.kube.objects.builtin import shape_of
from polyver.kube.objects.kinds import ResourceKind
from polyver.kube.objects.type_shapes import Shape
from polyver.kube.objects.typed_bodies import decode_typed
from polyver.kube.server.kinds._defaults import COMPUTED, FIXED, Change
from polyver.kube.server.rules import KindRules

__all__ = ["BuiltinRules", "defaults_of"]


@dataclass(slots=True)
class _Plan:
    """The defaults of one type: fixed values, computed values, and the defaults of inner fields."""

    fixed: Object = field(default_factory=dict)
    computed: Change | None = None
    fields: dict[str, _Plan] = field(default_factory=dict)
    items: _Plan | None = None

    def __bool__(self) -> bool:
        return bool(self.fixed or self.computed or self.fields or self.items)

    def apply(self, value: Any) -> Any:
        """Return a copy of a value in which missing and null fields have their defaults."""
        if isinstance(value, list):
            return [self.items.apply(each) for each in value] if self.items else value
        if not isinstance(value, dict):
            return value
        missing = {key: new for key, new in self.fixed.items() if value.get(key) is None}
        filled = {**value, **missing}
        if self.computed:
            filled |= self.computed(filled)
        for name, plan in self.fields.items():
            if name in filled:
                filled[name] = plan.apply(filled[name])
        return filled


def defaults_of(shape: Shape) -> Callable[[Object], Object]:
    """Build a function that returns a copy of an object with defaults.

    The types in the shape determine the defaults.
    """
    plan = _plan(shape, frozenset())
    return plan.apply


def _plan(shape: Shape, above: frozenset[int]) -> _Plan:
    # A recursive type: in built-in kinds such types have no defaults, so the recursion ends here.
    if id(shape) in above:
        return _Plan()
    above |= {id(shape)}
    name = _names().get(id(shape.fields), "") if shape.fields else ""
    plan = _Plan(dict(FIXED.get(name, {})), COMPUTED.get(name))
    if shape.items is not None and (items := _plan(shape.items, above)):
        plan.items = items
    for field_name, inner in shape.fields.items():
        if below := _plan(inner, above):
            plan.fields[field_name] = below
    return plan


_known: dict[int, str] = {}


def _names() -> Mapping[int, str]:
    """Return the names of all types with defaults, by the `id` of the mapping `Shape.fields`.

    All shapes of a type share this mapping, so its `id` identifies the type.
    """
    if not _known:
        _known.update({id(_shape(name).fields): name for name in {*FIXED, *COMPUTED}})
    return _known


def _shape(name: str) -> Shape:
    group, _, versioned = name.partition("/")
    version, _, kind = versioned.partition(".")
    return shape_of(group, version, kind)


class BuiltinRules(KindRules):
    """The base of the rules for writes of a built-in kind.

    It sets defaults in every write, and the initial status of a new object. Subclasses add checks.
    """

    status_keeps: tuple[str, ...] | None = ()

    def __init__(self, kind: ResourceKind) -> None:
        self.kind = kind
        self.has_status = kind.subresource("status") is not None

    @cached_property
    def _fill(self) -> Callable[[Object], Object]:
        # Built when the first object needs it, because most servers never get objects of most
        # kinds.
        return defaults_of(shape_of(self.kind.group, self.kind.version, self.kind.kind))

    @cached_property
    def _first_status(self) -> Object:
        """The status that a new object gets from the server."""
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
        """Set defaults in an object.

        Mappings and lists inside the object are replaced by copies, so the originals do not change.
        """
        obj |= self._fill(obj)

    def begin(self, obj: Object) -> None:
        """Set fields of a new object that other kinds do not have. This base class sets none."""

    def keep(self, obj: Object, old: Object) -> None:
        """Restore the fields that an update must not change. This base class restores none."""
