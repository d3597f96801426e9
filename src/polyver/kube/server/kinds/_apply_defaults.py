"""Application of the default tables to an object, along the shape of its kind."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from polyver.core.plain import Object
from polyver.kube.objects.builtin import shape_of
from polyver.kube.objects.type_shapes import Shape
from polyver.kube.server.kinds._defaults import COMPUTED, FIXED, Change

__all__ = ["defaults_of"]


@dataclass(slots=True)
class _Plan:
    """The defaults of one type, and those of the fields below it."""

    fixed: Object = field(default_factory=dict)
    computed: Change | None = None
    fields: dict[str, _Plan] = field(default_factory=dict)
    items: _Plan | None = None

    def __bool__(self) -> bool:
        return bool(self.fixed or self.computed or self.fields or self.items)

    def apply(self, value: Any) -> Any:
        """Return a value with its defaults; fields that are set stay as they are."""
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
    """Return a function that returns objects of a shape with their defaults."""
    plan = _plan(shape, frozenset())
    return plan.apply


def _plan(shape: Shape, above: frozenset[int]) -> _Plan:
    # Recursive types of built-in kinds have no defaults, so the recursion ends here.
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
    """Return the names of the types in the tables by the identity of their fields.

    All shapes of one type share the same fields.
    """
    if not _known:
        _known.update({id(_shape(name).fields): name for name in {*FIXED, *COMPUTED}})
    return _known


def _shape(name: str) -> Shape:
    group, _, versioned = name.partition("/")
    version, _, kind = versioned.partition(".")
    return shape_of(group, version, kind)
