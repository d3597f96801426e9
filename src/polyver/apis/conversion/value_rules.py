"""Rules that compute values by expressions or functions of users: `cel`, and `convert` in Python.

The value on each side is that of one field, or an object with the values of several fields under
names that the rule chooses. The expression or function of each direction gets the value of one
side, and returns the value of the other side.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import msgspec

from polyver.apis.conversion._delta import place_of
from polyver.apis.conversion.paths import Path, show_path
from polyver.apis.conversion.rules import ConversionRule, Ports
from polyver.apis.conversion.schemas import child, items, pruner
from polyver.apis.conversion.values import MISSING
from polyver.kube.objects.schema.structure import StructuralSchema
from polyver.languages import cel

__all__ = ["CelRule", "ComputedRule", "FunctionRule", "ValueSide"]


@dataclass(frozen=True, slots=True)
class ValueSide:
    """The fields that a rule for values converts in one version."""

    paths: tuple[Path, ...]
    names: tuple[str, ...] = ()
    """The names of the fields in the object that stands for them; empty for a single field."""
    places: tuple[StructuralSchema | None, ...] = ()
    """The schemas of the fields; empty if they are not known."""

    def bound(self, place: StructuralSchema | None) -> ValueSide:
        """Return this side for a version with this schema."""
        return replace(self, places=tuple(place_of(place, path) for path in self.paths))

    def joined(self, values: Ports) -> Any:
        """Return the value that stands for the values of the fields; MISSING if there is none.

        A null is treated as missing, because API servers may remove nulls.
        """
        known: list[Any] = [MISSING if value is None else value for value in values]
        if self.places:
            known = [*map(_with_doubles, known, self.places)]
        if not self.names:
            return known[0]
        named = dict(zip(self.names, known, strict=True))
        return {name: value for name, value in named.items() if value is not MISSING} or MISSING

    def parted(self, value: Any) -> Ports:
        """Return the value of each field, from the value that stands for them.

        Fields that the schema does not have are removed, in place. Raise TypeError if the value is
        not an object with the names of this side.
        """
        if value is None:
            return (MISSING,) * len(self.paths)
        if not self.names:
            return self._pruned([value])
        if type(value) is not dict:
            raise TypeError(f"{value!r} is not an object")
        if unknown := value.keys() - {*self.names}:
            raise TypeError(f"{min(unknown)!r} is not a name of a field in the rule")
        return self._pruned([value.get(name) for name in self.names])

    def _pruned(self, values: Sequence[Any]) -> Ports:
        for value, place in zip(values, self.places, strict=False):
            if (prune := pruner(place)) is not None:
                prune(value)
        return tuple(MISSING if each is None else each for each in values)


def _with_doubles(value: Any, place: StructuralSchema | None) -> Any:
    """Convert integers to floats where the schema has the type number."""
    if place is None:
        return value
    match value:
        case int() if place.type == "number" and type(value) is int:
            return float(value) if abs(value) < 2**63 else value
        case list():
            return [_with_doubles(each, items(place)) for each in value]
        case dict():
            return {name: _with_doubles(each, child(place, name)) for name, each in value.items()}
    return value


@dataclass(frozen=True, eq=False)
class ComputedRule(ConversionRule):
    """Base class of rules that compute values by expressions or functions of users."""

    source: ValueSide
    target: ValueSide

    @property
    def sources(self) -> tuple[Path, ...]:
        return self.source.paths

    @property
    def targets(self) -> tuple[Path, ...]:
        return self.target.paths

    def bound(
        self, source: StructuralSchema | None, target: StructuralSchema | None
    ) -> ConversionRule:
        return replace(self, source=self.source.bound(source), target=self.target.bound(target))

    def run(self, values: Ports, *, back: bool) -> Ports:
        reads, writes = (self.target, self.source) if back else (self.source, self.target)
        value = reads.joined(values)
        if value is MISSING:
            return (MISSING,) * len(writes.paths)
        return self._computed(value, writes, back=back)

    @abstractmethod
    def _computed(self, value: Any, writes: ValueSide, *, back: bool) -> Ports:
        """Compute the values of the fields of the side `writes` from the value of the other."""


@dataclass(frozen=True, eq=False)
class CelRule(ComputedRule):
    """Computes values by CEL expressions, one for each direction.

    If an expression fails for a value, the fields that it computes are missing.
    """

    forward: cel.ValueExpression
    back: cel.ValueExpression
    name: ClassVar[str] = "cel"

    def samples(self) -> Sequence[Any]:
        """Return the constants in the expressions, for test data."""
        return [*self.forward.literals, *self.back.literals]

    def _computed(self, value: Any, writes: ValueSide, *, back: bool) -> Ports:
        expression = self.back if back else self.forward
        try:
            return writes.parted(expression.evaluate(_ordered(value)))
        except (cel.CelEvaluationError, TypeError):
            return (MISSING,) * len(writes.paths)


def _ordered(value: Any) -> Any:
    """Return a value whose maps have sorted keys, because an expression can read their order.

    The order of keys has no meaning, and differs before and after a round trip.
    """
    return msgspec.to_builtins(value, order="sorted") if type(value) in (dict, list) else value


Function = Callable[[Any], Any]


@dataclass(frozen=True, eq=False)
class FunctionRule(ComputedRule):
    """Computes values by functions of users, one for each direction.

    An exception of a function fails the conversion, as with conversion functions of whole objects.
    """

    forward: Function
    back: Function
    name: ClassVar[str] = "convert"

    @property
    def calls_functions(self) -> bool:
        return True

    def _computed(self, value: Any, writes: ValueSide, *, back: bool) -> Ports:
        function = self.back if back else self.forward
        made = function(_copied(value))
        try:
            return writes.parted(_copied(made))
        except (TypeError, msgspec.MsgspecError, OverflowError) as error:
            name = getattr(function, "__qualname__", repr(function))
            fields = ", ".join(map(show_path, writes.paths))
            raise TypeError(f"{name} returned no value for {fields}: {error}") from None


def _copied(value: Any) -> Any:
    """Return a copy of a value that has only the types of JSON; a set becomes a sorted list."""
    return msgspec.json.decode(_encode(value))


_encode = msgspec.json.Encoder(order="deterministic").encode


Fields = str | Mapping[str, str]
"""The path of one field, or the paths of several fields by their names in the value."""


def names_of(fields: Fields) -> Sequence[str]:
    """Return the names under which a rule has several fields; empty for a single field."""
    return () if isinstance(fields, str) else tuple(fields)
