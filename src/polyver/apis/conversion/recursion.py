"""The rule `recurse`, which applies a block of rules again inside of the value that it converts."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar, Final

from polyver.apis.conversion._block import RuleBlock
from polyver.apis.conversion._delta import Guard, Lost, place_of, was
from polyver.apis.conversion.nested import EachRule, MoveRule, renamed_keys
from polyver.apis.conversion.paths import show_path
from polyver.apis.conversion.rules import ConversionRule, Ports, SingleFieldRule
from polyver.apis.conversion.schemas import has_path
from polyver.apis.conversion.values import MISSING
from polyver.kube.objects.schema.structure import StructuralSchema

__all__ = ["MOST_LEVELS", "RecurseRule", "RepeatedRules", "repeated_places"]

MOST_LEVELS: Final = 20
"""The number of levels on which rules are applied again; deeper values are preserved as a whole.

The time to convert a value with lost fields grows with the square of the number of levels, and
Python limits the depth of calls.
"""

_level: ContextVar[int] = ContextVar("recursion level", default=0)


@contextmanager
def _one_level_deeper() -> Iterator[None]:
    token = _level.set(_level.get() + 1)
    try:
        yield
    finally:
        _level.reset(token)


class RepeatedRules:
    """A block that contains a `recurse` rule, and that this rule applies again."""

    block: RuleBlock


@dataclass(frozen=True, eq=False)
class RecurseRule(SingleFieldRule):
    """Converts an object, or the items of a list, by the block of rules that contains this rule.

    If a schema ends at this rule, so that a version does not have its field any more, the rule does
    the same as a drop rule: the value is preserved.
    """

    up: int = 0
    """The number of blocks around the block with this rule, up to the block to apply again."""
    source_keys: tuple[str, ...] = ()
    target_keys: tuple[str, ...] = ()
    repeated: RepeatedRules | None = field(default=None, repr=False)
    inside: RuleBlock | None = field(default=None, repr=False)
    """The block for the schemas of the value; None if no version has a schema for it."""
    ended: bool = False
    """True if the schema of a version does not have the field."""
    metadata: Mapping[str, str] | None = field(default=None, repr=False)
    """The name and namespace of the object, for rules that refer to them; None if unresolved."""
    name: ClassVar[str] = "recurse"

    @property
    def repeated_rules(self) -> tuple[ConversionRule, ...]:
        """The rules that this rule applies again; they are not bound to schemas."""
        return () if self.repeated is None else self.repeated.block.rules

    @property
    def blocks(self) -> Sequence[RuleBlock]:
        return () if self.inside is None else (self.inside,)

    @property
    def refers(self) -> bool:
        # The rules to apply again are known only when the block around this rule is complete.
        return self.metadata is None

    def resolved(self, metadata: Mapping[str, str]) -> RecurseRule:
        return replace(self, metadata=metadata)

    def bound(
        self, source: StructuralSchema | None, target: StructuralSchema | None
    ) -> RecurseRule:
        if not (has_path(source, self.source) and has_path(target, self.target)):
            return replace(self, ended=True)
        one, other = place_of(source, self.source), place_of(target, self.target)
        inner = repeated_places(one, other)
        if self.repeated is None or inner == (None, None):
            return self
        keys = self.source_keys, self.target_keys
        if not self.source_keys:
            keys = one.keys if one else (), other.keys if other else ()
        inside = self.repeated.block.bound(*inner)
        return replace(self, inside=inside, source_keys=keys[0], target_keys=keys[1])

    @property
    def _ends(self) -> bool:
        return self.ended or _level.get() >= MOST_LEVELS

    def _for(self, value: Any) -> EachRule | MoveRule:
        """Return the rule that converts a value: an object, or the items of a list."""
        assert self.repeated is not None
        block = self.repeated.block if self.inside is None else self.inside
        if self.metadata is not None:
            block = block.resolved(self.metadata)
        if type(value) is not list:
            return MoveRule(self.source, self.target, block)
        others = self.target_keys or renamed_keys(self.source_keys, block)
        return EachRule(self.source, self.target, block, self.source_keys, others)

    def run(self, values: Ports, *, back: bool) -> Ports:
        if self._ends:
            return (MISSING,)
        with _one_level_deeper():
            return self._for(values[0]).run(values, back=back)

    def lost(self, values: Ports, made: Ports, *, back: bool) -> Lost:
        if self._ends:
            path = show_path(self.target if back else self.source)
            return {} if values[0] is MISSING else {path: was(values[0], guarded=False)}
        with _one_level_deeper():
            return self._for(values[0]).lost(values, made, back=back)

    def restored(self, made: Ports, lost: Lost, *, back: bool) -> Ports:
        if self._ends:
            return super().restored(made, lost, back=back)
        with _one_level_deeper():
            return self._for(made[0]).restored(made, lost, back=back)

    def guards(self, lost: Lost, values: Ports, *, back: bool) -> Iterator[Guard]:
        if self._ends:
            return iter(())
        with _one_level_deeper():
            return iter([*self._for(values[0]).guards(lost, values, back=back)])


def repeated_places(
    source: StructuralSchema | None, target: StructuralSchema | None
) -> tuple[StructuralSchema | None, StructuralSchema | None]:
    """Return the schemas of the values that a recursion converts: of items, or of an object."""
    return _inner(source), _inner(target)


def _inner(place: StructuralSchema | None) -> StructuralSchema | None:
    return place.items if place is not None and place.type == "array" else place
