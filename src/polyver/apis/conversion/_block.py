"""A block of conversion rules, for whole objects or for a value inside of an object.

An edge is two versions and the rules between them. This module interprets rules, and so defines the
result of a conversion over one edge. Tests compare the compiled rules with this interpreter. A
field that no rule names keeps its path, unless the other version does not have this field.

`lost` finds values that converting back would not restore; polyver preserves these values in the
converted object. Some preserved values depend on visible fields, which clients can edit. Such a
value has a guard: a fingerprint of these visible fields. The value is restored only as long as the
fingerprint of the fields is the same.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from copy import copy
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

from polyver.apis.conversion._delta import (
    Guard,
    Lost,
    delta,
    guards,
    item_guards,
    patch,
    patch_items,
    place_of,
    was,
)
from polyver.apis.conversion.paths import (
    Path,
    fits_metadata,
    names_of,
    pick,
    put,
    show_path,
    take,
)
from polyver.apis.conversion.rules import ConversionRule, Ports
from polyver.apis.conversion.schemas import allows, has_path, implied, loses, strip
from polyver.apis.conversion.values import MISSING, fingerprint
from polyver.core import PolyverError
from polyver.core.plain import Object
from polyver.kube.objects.converted_metadata import fresh
from polyver.kube.objects.schema.structure import StructuralSchema
from polyver.languages.values.strings import same

__all__ = ["FieldClaims", "InvalidRules", "RuleBlock"]

Places = tuple[StructuralSchema | None, StructuralSchema | None]
"""The schemas of a value: in the version `from` and in the version `to` of an edge.

A schema is None if the version has no schema.
"""


class InvalidRules(PolyverError):
    """Two rules contradict each other; `rule` is the index of the later rule."""

    def __init__(self, fact: str, *, rule: int, hint: str = "") -> None:
        super().__init__(fact, hint=hint)
        self.rule = rule


@dataclass(frozen=True, eq=False)
class RuleBlock:
    """Conversion rules, and the two schemas of the values that they convert."""

    rules: tuple[ConversionRule, ...] = ()
    places: Places = (None, None)
    root: bool = False
    """True if the rules convert whole objects, which have metadata.

    In whole objects, a top-level field such as `spec` is kept even if rules move all fields out of
    it.
    """
    place: str = field(default="", kw_only=True, repr=False)
    """The file and line that declare the edge; empty for rules inside of a rule."""
    trivial: bool = field(init=False)
    """True if converting by this block changes nothing.

    For this, there must be no rules, and both schemas must have the same fields.
    """
    fits: bool = field(init=False)
    """True if each field that the rules name exists in its version."""
    calls_functions: bool = field(init=False)
    """True if a rule calls functions of users."""
    refers: bool = field(init=False)
    """True if a rule refers to the metadata of the object."""

    def __post_init__(self) -> None:
        FieldClaims(self.rules)
        source, target = self.places
        known = (_rooted(source), _rooted(target)) if self.root else (source, target)
        object.__setattr__(self, "places", known)
        same_fields = not loses(*known) and not loses(*known[::-1])
        object.__setattr__(self, "trivial", not self.rules and same_fields)
        object.__setattr__(self, "fits", all(_fits(rule, *known) for rule in self.rules))
        object.__setattr__(self, "calls_functions", any(r.calls_functions for r in self.rules))
        object.__setattr__(self, "refers", any(rule.refers for rule in self.rules))

    def at(self, obj: Object) -> RuleBlock:
        """Return this block for one object, with the rules that refer to its metadata resolved."""
        return self.resolved(names_of(obj.get("metadata"))) if self.refers else self

    def resolved(self, metadata: Mapping[str, str]) -> RuleBlock:
        """Return this block for objects with this name and namespace in their metadata."""
        if not self.refers:
            return self
        made = copy(self)
        object.__setattr__(made, "rules", tuple(rule.resolved(metadata) for rule in self.rules))
        object.__setattr__(made, "refers", False)
        return made

    def bound(self, source: StructuralSchema | None, target: StructuralSchema | None) -> RuleBlock:
        """Return a block with the same rules, for values with these schemas.

        The returned block also has the rules that the schemas imply.
        """
        rules = tuple(rule.bound(source, target) for rule in self.rules)
        more = implied(rules, source, target, root=self.root)
        return replace(self, rules=(*rules, *more), places=(source, target))

    @property
    def _pinned(self) -> int:
        return 1 if self.root else 0

    def written(self, *, back: bool) -> StructuralSchema | None:
        """Return the schema of the version to which this direction converts; None if it has none.

        With `back`, this is the version `from`.
        """
        return self.places[0 if back else 1]

    def read(self, *, back: bool) -> StructuralSchema | None:
        """Return the schema of the version from which this direction converts; None if it has none.

        With `back`, this is the version `to`.
        """
        return self.places[1 if back else 0]

    # Objects.

    def run(self, obj: Object, *, back: bool) -> Object:
        """Convert an object by the rules; preserved fields are not restored.

        With `back`, convert from the version `to` to the version `from`.
        """
        made: Object = fresh(obj)
        taken = [
            tuple(take(made, path, pinned=self._pinned) for path in rule.ports(back=back)[0])
            for rule in self.rules
        ]
        strip(made, self.read(back=back), self.written(back=back))
        written = [
            self.allowed(rule, self._run(rule, values, obj, back=back), back=back)
            for rule, values in zip(self.rules, taken, strict=True)
        ]
        for rule in self.rules:
            for path in rule.ports(back=back)[1]:
                take(made, path, pinned=self._pinned)
        for rule, values in zip(self.rules, written, strict=True):
            self._write(made, rule.ports(back=back)[1], values)
        return made

    def _run(self, rule: ConversionRule, values: Ports, obj: Object, *, back: bool) -> Ports:
        if not self._applies(rule, obj):
            return (MISSING,) * len(rule.ports(back=back)[1])
        return rule.run(values, back=back)

    def _applies(self, rule: ConversionRule, obj: Object) -> bool:
        """Report whether to run a rule for an object.

        A rule that sets a constant in a whole object is run only if the object already has the
        top-level field (such as `spec`) that contains the constant.
        """
        at = rule.constant
        return at is None or not self.root or len(at) == 1 or at[0] in obj

    def allowed(self, rule: ConversionRule, values: Ports, *, back: bool) -> Ports:
        """Return the values that a rule may write.

        API servers refuse an invalid label or annotation, so such a value is replaced by MISSING.
        """
        if not self.root:
            return values
        paths = rule.ports(back=back)[1]
        return tuple(
            value if path[0] != "metadata" or fits_metadata(path, value) else MISSING
            for path, value in zip(paths, values, strict=True)
        )

    def _write(self, made: Object, paths: Sequence[Path], values: Ports) -> None:
        for path, value in zip(paths, values, strict=True):
            if value is MISSING:
                take(made, path, pinned=self._pinned)
            elif not put(made, path, value):
                _clear(made, path)
                put(made, path, value)

    def lost(self, obj: Object, made: Object, *, back: bool) -> Lost:
        """Find the lost fields: those that converting `made` back would not restore.

        `made` is the result of converting `obj`. The lost fields are the fields of `obj` that would
        be missing or different if `made` were converted back.
        """
        lost: Lost = {}
        for rule in self.rules:
            reads, writes = rule.ports(back=back)
            # Ignore a const rule if the conversion to the version that has the constant does not
            # write it: if the object of the other version lacks its top-level field.
            if self._applies(rule, made if reads else obj):
                read = tuple(pick(obj, path) for path in reads)
                written = tuple(pick(made, path) for path in writes)
                lost |= self.lost_by(rule, read, written, back=back)
        again = self.restored(self.run(made, back=not back), lost, back=not back)
        return lost | delta(again, obj, self.read(back=back))

    def lost_by(self, rule: ConversionRule, values: Ports, made: Ports, *, back: bool) -> Lost:
        """Find the lost values of a rule: those that running the rule backwards would not restore.

        `values` are the values that the rule read, and `made` are the values that it wrote.
        """
        reads, writes = rule.ports(back=back)
        touched = any(path[0] == "metadata" for path in (*reads, *writes))
        if not self.root or not touched or not writes:
            return rule.lost(values, made, back=back)
        again = self.allowed(rule, rule.run(made, back=not back), back=not back)
        return rule.missed(values, again, back=back)

    def restored(self, made: Object, lost: Lost, *, back: bool) -> Object:
        """Return the converted object `made` with the preserved fields in `lost` restored."""
        if not lost:
            return made
        whole: Object = fresh(made)
        rest = dict(lost)
        for rule in self.rules:
            writes = rule.ports(back=back)[1]
            own = {text: rest.pop(text) for text in map(show_path, writes) if text in rest}
            if own:
                written = tuple(pick(whole, path) for path in writes)
                self._write(whole, writes, rule.restored(written, own, back=back))
        patch(whole, rest, self.written(back=back))
        return whole

    def guards(self, lost: Lost, view: Any, *, back: bool) -> Iterator[Guard]:
        """Yield the guards of the preserved fields in `lost`.

        A guard has the fingerprint of the fields in `view` on which a preserved field depends.
        `view` is the object in the version from which this direction converts.
        """
        rest = dict(lost)
        for rule in self.rules:
            reads, writes = rule.ports(back=back)
            own = {text: rest.pop(text) for text in map(show_path, writes) if text in rest}
            for entry in own.values():
                if "whole" in entry:
                    yield from guards({"": entry}, view, None)
            if own:
                yield from rule.guards(own, tuple(pick(view, path) for path in reads), back=back)
        yield from guards(rest, view, self.written(back=back))

    # Values inside of objects: an object, a list or a scalar.

    def run_value(self, value: Any, *, back: bool) -> Any:
        if self.trivial or type(value) not in (dict, list):
            return value
        if type(value) is dict:
            return self.run(value, back=back)
        made = fresh(value)
        strip(made, self.read(back=back), self.written(back=back))
        return made

    def lost_value(self, value: Any, made: Any, *, back: bool) -> dict[str, Any]:
        """Build the entry of `Lost` for a value inside of an object; {} if nothing was lost.

        `made` is the result of converting `value`.
        """
        if type(value) is dict and type(made) is dict:
            lost = self.lost(value, made, back=back)
            return {"in": lost} if lost else {}
        again = self.run_value(made, back=not back)
        if same(again, value):
            return {}
        place = self.read(back=back)
        found = delta(
            {"": again}, {"": value}, StructuralSchema(fields={"": place}) if place else None
        )
        entry: dict[str, Any] = found['[""]']
        return entry if "by" in entry or "at" in entry else was(value, guarded=True)

    def restored_value(self, made: Any, entry: dict[str, Any], *, back: bool) -> Any:
        if "is" in entry:
            return fresh(entry["is"])
        if "absent" in entry:
            return MISSING
        if "in" in entry and type(made) is dict:
            return self.restored(made, entry["in"], back=back)
        if type(made) is list and entry:
            made = fresh(made)
            place = self.written(back=back)
            inside = place.items if place is not None else None
            keys = place.keys if place is not None else ()
            patch_items(made, entry, keys, partial(patch, place=inside))
        return made

    def value_guards(self, entry: dict[str, Any], view: Any, *, back: bool) -> Iterator[Guard]:
        if "in" in entry:
            yield from self.guards(entry["in"], view if type(view) is dict else {}, back=back)
        if "by" in entry or "at" in entry:
            place = self.written(back=back)
            inside = place.items if place is not None else None
            keys = place.keys if place is not None else ()
            yield from item_guards(entry, view, keys, partial(guards, place=inside))
        if "if" in entry:
            yield entry, "if", fingerprint([view])


class FieldClaims:
    """The fields that rules read and write. Two rules must not read or write the same field."""

    def __init__(self, rules: Iterable[ConversionRule] = ()) -> None:
        self._rules: list[ConversionRule] = []
        self._sides = (_Side(), _Side())
        for rule in rules:
            self.add(rule)

    def add(self, rule: ConversionRule) -> None:
        """Record the fields of a rule.

        Raise an error if another rule already uses one of these fields, a part of it, or its
        parent.
        """
        number = len(self._rules)
        for back, side in enumerate(self._sides):
            own = _Side()
            for path in rule.ports(back=bool(back))[0]:
                found = side.overlap(path) or own.overlap(path)
                if found is not None:
                    raise _clash([*self._rules, rule], path, number, *found, written=bool(back))
                own.take(path, number)
        for back, side in enumerate(self._sides):
            for path in rule.ports(back=bool(back))[0]:
                side.take(path, number)
        self._rules.append(rule)


class _Side:
    """The fields that rules use in one of the two versions, and the parents of these fields."""

    def __init__(self) -> None:
        self._taken: dict[Path, tuple[Path, int]] = {}
        self._around: dict[Path, tuple[Path, int]] = {}

    def overlap(self, path: Path) -> tuple[Path, int] | None:
        for size in range(1, len(path) + 1):
            if found := self._taken.get(path[:size]):
                return found
        return self._around.get(path)

    def take(self, path: Path, number: int) -> None:
        self._taken[path] = (path, number)
        for size in range(1, len(path)):
            self._around.setdefault(path[:size], (path, number))


def _clash(
    rules: Sequence[ConversionRule],
    path: Path,
    number: int,
    other: Path,
    first: int,
    *,
    written: bool,
) -> InvalidRules:
    verb = "writes" if written else "reads"
    where = show_path(path)
    if number == first:
        return InvalidRules(f"the rule {rules[number].name} {verb} {where} twice", rule=number)
    inside = "" if path == other else f", and this one {verb} {where}"
    fact = f"rule {first + 1} ({rules[first].name}) {verb} {show_path(other)} already{inside}"
    hint = "name each field in one rule; fields inside a moved object belong to its own rules"
    return InvalidRules(fact, rule=number, hint=hint)


def _fits(
    rule: ConversionRule, source: StructuralSchema | None, target: StructuralSchema | None
) -> bool:
    if rule.ended:
        return True
    named = [(source, path) for path in rule.sources] + [(target, path) for path in rule.targets]
    expected = (*rule.schemas(back=False), *rule.schemas(back=True))
    if not all(
        allows(place_of(place, path), schema)
        for (place, path), schema in zip(named, expected, strict=True)
    ):
        return False
    return all(has_path(*each) for each in named) and all(each.fits for each in rule.blocks)


def _rooted(place: StructuralSchema | None) -> StructuralSchema | None:
    return place if place is None or place.embedded else replace(place, embedded=True)


def _clear(obj: Object, path: Path) -> None:
    """Of the parents of a path, remove the outermost one that is not an object.

    Otherwise no value could be written at this path.
    """
    for name in path[:-1]:
        inside = obj.get(name, MISSING)
        if inside is not MISSING and type(inside) is not dict:
            del obj[name]
            return
        obj = inside if inside is not MISSING else {}
