"""Rules for values that depend on another field or on its absence: `when` and `default`.

A rule of this module may write a value although it reads none.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, ClassVar

from polyver.apis.conversion._block import RuleBlock
from polyver.apis.conversion._delta import Guard, Lost
from polyver.apis.conversion.nested import MoveRule, NestedRule
from polyver.apis.conversion.paths import Path, pick, put, show_path
from polyver.apis.conversion.rules import ConversionRule, InvalidRule, Ports
from polyver.apis.conversion.values import MISSING, fingerprint
from polyver.core import listed
from polyver.kube.objects.converted_metadata import fresh
from polyver.kube.objects.schema.structure import StructuralSchema
from polyver.languages.values.strings import same, shown

__all__ = ["DefaultRule", "WhenCase", "WhenRule"]


@dataclass(frozen=True, eq=False)
class DefaultRule(NestedRule):
    """A field whose absence in the version `from` means a certain value in the version `to`."""

    value: Any
    name: ClassVar[str] = "default"

    @property
    def constant(self) -> Path:
        return self.target

    def run(self, values: Ports, *, back: bool) -> Ports:
        value = values[0]
        if not back and (value is MISSING or value is None):
            return (fresh(self.value),)
        if back and same(value, self.value):
            return (MISSING,)
        return (self.inside.run_value(value, back=back),)

    def lost(self, values: Ports, made: Ports, *, back: bool) -> Lost:
        again = self.run(made, back=not back)
        if type(values[0]) is type(made[0]) is type(again[0]) in (dict, list):
            return self._told(self.inside.lost_value(values[0], made[0], back=back), back=back)
        return self.missed(values, again, back=back)

    def restored(self, made: Ports, lost: Lost, *, back: bool) -> Ports:
        return (self.inside.restored_value(made[0], self._entry(lost, back=back), back=back),)

    def guards(self, lost: Lost, values: Ports, *, back: bool) -> Iterator[Guard]:
        return self.inside.value_guards(self._entry(lost, back=back), values[0], back=back)


@dataclass(frozen=True, eq=False)
class WhenCase:
    """One case of a `when` rule: values of the deciding field, and the rules for these values."""

    source_values: tuple[Any, ...]
    """The values of the deciding field in the version `from`; None stands for a missing field."""
    target_values: tuple[Any, ...]
    block: RuleBlock

    def values(self, *, back: bool) -> tuple[Any, ...]:
        """Return the values from which this direction converts."""
        return self.target_values if back else self.source_values

    @property
    def maps(self) -> bool:
        """True if the values of the deciding field differ between the versions."""
        return not same([*self.source_values], [*self.target_values])

    def counterpart(self, value: Any, *, back: bool) -> Any:
        """Return the value of the other version for one of the values."""
        known, others = self.values(back=back), self.values(back=not back)
        [number] = [place for place, each in enumerate(known) if same(each, value)]
        return others[number if number < len(others) else 0]


@dataclass(frozen=True, eq=False)
class WhenRule(ConversionRule):
    """Converts by one of several blocks of rules, which the value of a field decides.

    Exactly one case applies to each object: no value belongs to two cases, and `otherwise` applies
    to all values that belong to no case. The deciding field has a value of the same case in both
    versions, so the same rules convert in both directions.
    """

    source: Path
    target: Path
    cases: tuple[WhenCase, ...] = ()
    otherwise: WhenCase = field(default_factory=lambda: WhenCase((), (), RuleBlock()))
    name: ClassVar[str] = "when"

    def __post_init__(self) -> None:
        for rule in (rule for block in self.blocks for rule in block.rules):
            for own, paths in ((self.source, rule.sources), (self.target, rule.targets)):
                if any(_overlap(own, path) for path in paths):
                    fact = f"a case of when converts {show_path(own)}, which decides the case"
                    raise InvalidRule(fact, hint="when itself converts the deciding field")

    @property
    def _all(self) -> tuple[WhenCase, ...]:
        return (*self.cases, self.otherwise)

    @cached_property
    def deciding(self) -> MoveRule:
        """A rule for the deciding field alone."""
        return MoveRule(self.source, self.target, RuleBlock())

    @property
    def blocks(self) -> Sequence[RuleBlock]:
        return [case.block for case in self._all]

    @cached_property
    def sources(self) -> tuple[Path, ...]:
        rules = [rule for case in self._all for rule in case.block.rules]
        return _outermost([self.source, *(path for rule in rules for path in rule.sources)])

    @cached_property
    def targets(self) -> tuple[Path, ...]:
        rules = [rule for case in self._all for rule in case.block.rules]
        return _outermost([self.target, *(path for rule in rules for path in rule.targets)])

    @property
    def constant(self) -> Path:
        return self.target

    def known(self, *, back: bool) -> list[Any]:
        """Return the values of the deciding field from which the cases convert, without None."""
        values = [value for case in self.cases for value in case.values(back=back)]
        return [value for value in values if value is not None]

    def samples(self) -> Sequence[Any]:
        """Return the values that decide the cases, for test data."""
        return [*self.known(back=False), *self.known(back=True)]

    @cached_property
    def maps(self) -> bool:
        """True if the values of the deciding field differ between the versions."""
        return any(case.maps for case in self.cases)

    def bound(
        self, source: StructuralSchema | None, target: StructuralSchema | None
    ) -> ConversionRule:
        cases = [_bound(case, source, target) for case in self._all]
        return replace(self, cases=tuple(cases[:-1]), otherwise=cases[-1])

    def resolved(self, metadata: Mapping[str, str]) -> ConversionRule:
        cases = [replace(case, block=case.block.resolved(metadata)) for case in self._all]
        return replace(self, cases=tuple(cases[:-1]), otherwise=cases[-1])

    def run(self, values: Ports, *, back: bool) -> Ports:
        case = self._case(values[0], back=back)
        reads, writes = self.ports(back=back)
        obj: dict[str, Any] = {}
        for path, value in zip(reads[1:], values[1:], strict=True):
            if value is not MISSING:
                put(obj, path, value)
        made = case.block.run(obj, back=back)
        found = (pick(made, path) for path in writes[1:])
        return (self._decided(case, values[0], back=back), *found)

    @cached_property
    def _by_value(self) -> tuple[Mapping[Any, WhenCase], Mapping[Any, WhenCase]]:
        forward, back = (
            {(type(value), value): case for case in self.cases for value in case.values(back=back)}
            for back in (False, True)
        )
        return forward, back

    def _case(self, value: Any, *, back: bool) -> WhenCase:
        """Return the case that applies for a value of the deciding field."""
        value = None if value is MISSING else value
        if type(value) not in _DECIDING:
            return self.otherwise
        return self._by_value[back].get((type(value), value), self.otherwise)

    def _decided(self, case: WhenCase, value: Any, *, back: bool) -> Any:
        """Return the value of the deciding field in the other version."""
        if case is self.otherwise:
            return MISSING if self.maps else value
        if not case.maps:
            return value
        made = case.counterpart(None if value is MISSING else value, back=back)
        return MISSING if made is None else made

    def guards(self, lost: Lost, values: Ports, *, back: bool) -> Iterator[Guard]:
        """Yield the guards of the preserved values in `lost`, which this rule writes.

        A preserved value depends on the deciding field, and on the fields from which the rule in
        the same case computes it.
        """
        case = self._case(values[0], back=back)
        reads = dict(zip(self.ports(back=back)[0], values, strict=True))
        for path in self.ports(back=back)[1]:
            entry = lost.get(show_path(path), {})
            if "if" in entry:
                own = [
                    value
                    for rule in case.block.rules
                    if any(each[: len(path)] == path for each in rule.ports(back=back)[1])
                    for each in rule.ports(back=back)[0]
                    for value in [_picked(reads, each)]
                ]
                yield entry, "if", fingerprint([values[0], *own])

    def check(self) -> None:
        """Raise an error unless exactly one case applies to each value, in both directions."""
        if not self.cases:
            raise InvalidRule("when needs at least one case")
        for back, path in ((False, self.source), (True, self.target)):
            seen: list[Any] = []
            for case in self.cases:
                for value in case.values(back=back):
                    _check_value(value)
                    if any(same(value, each) for each in seen):
                        at = f"{shown(value)} in {show_path(path)}"
                        raise InvalidRule(f"two cases of when apply to {_named(at, value, path)}")
                    seen.append(value)

    def check_constants(self) -> None:
        """Raise an error if a case of whole objects sets a field in another top-level field.

        The rule is run only for objects that have the top-level field of the deciding field. It
        must not create another one.
        """
        for rule in (rule for block in self.blocks for rule in block.rules):
            at = rule.constant
            if at is not None and at[0] != self.target[0]:
                fact = f"a case of when sets {show_path(at)}, which is not in {self.target[0]}"
                raise InvalidRule(fact, hint="use the top-level field of the deciding field")

    def check_cover(self) -> None:
        """Raise an error unless the cases cover every value, without `otherwise`."""
        for back, path in ((False, self.source), (True, self.target)):
            seen = [value for case in self.cases for value in case.values(back=back)]
            if not all(any(same(one, each) for each in seen) for one in (True, False, None)):
                values = listed([shown(each) for each in seen])
                fact = f"the cases of when cover only {values} in {show_path(path)}"
                raise InvalidRule(fact, hint="add otherwise, which may have no rules")


_DECIDING = (str, int, bool, type(None))


def _check_value(value: Any) -> None:
    if type(value) not in _DECIDING:
        hint = "use strings, integers, booleans, or null for a missing field"
        raise InvalidRule(f"{shown(value)} cannot decide a case of when", hint=hint)


def _named(text: str, value: Any, path: Path) -> str:
    return f"a missing {show_path(path)}" if value is None else text


def _bound(
    case: WhenCase, source: StructuralSchema | None, target: StructuralSchema | None
) -> WhenCase:
    rules = tuple(rule.bound(source, target) for rule in case.block.rules)
    return replace(case, block=replace(case.block, rules=rules))


def _overlap(one: Path, other: Path) -> bool:
    size = min(len(one), len(other))
    return one[:size] == other[:size]


def _outermost(paths: Sequence[Path]) -> tuple[Path, ...]:
    """Return the paths without those that are inside of another one, each once."""
    known = {*paths}
    inner = {path for path in known if any(path[:size] in known for size in range(1, len(path)))}
    return tuple(path for path in dict.fromkeys(paths) if path not in inner)


def _picked(values: Mapping[Path, Any], path: Path) -> Any:
    """Return the value at a path, from the values of some fields."""
    for size in range(1, len(path) + 1):
        if path[:size] in values:
            return pick({"": values[path[:size]]}, ("", *path[size:]))
    return MISSING
