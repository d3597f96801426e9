"""Refuse a Conversion with a rule that writes a field which does not exist in the version.

polyver would keep the written value in the preserved fields, where no client sees it. Most likely
the path in the rule is mistyped, so polyver raises the error when a user applies the Conversion.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from polyver.apis.checking.schema_paths import ITEM, VALUE, Inside, Place, has, show
from polyver.apis.conversion import DeclaredConversion, DeclaredEdge, RuleBlock
from polyver.apis.conversion.case_rules import WhenRule
from polyver.apis.conversion.nested import EachRule, KeyedRule, MoveRule, WrapRule
from polyver.apis.conversion.recursion import RecurseRule
from polyver.apis.conversion.reversal import ReversedRule
from polyver.apis.conversion.rules import ConversionRule, DropRule
from polyver.apis.conversion.schemas import child, items
from polyver.apis.conversion.structure_rules import RenameKeysRule
from polyver.apis.definition import Definition
from polyver.core import PolyverError
from polyver.kube.objects import Document
from polyver.kube.objects.schema.structure import META_FIELDS, StructuralSchema, read_structure

__all__ = ["check_writing"]

Structures = Mapping[str, StructuralSchema]


def check_writing(declared: DeclaredConversion, definition: Definition) -> None:
    """Raise an error if a rule writes a field that one of the versions does not have."""
    known = _structures(definition)
    for number, edge in enumerate(declared.edges):
        ends = _Ends.of(edge, known)
        holder = declared.document.part("spec", "edges", number)
        for error in _problems(ends, edge.block, holder):
            raise error


def _structures(definition: Definition) -> Structures:
    schemas = {each.name: each.schema for each in definition.versions}
    return {name: read_structure(each) for name, each in schemas.items() if each is not None}


@dataclass(frozen=True, slots=True)
class _End:
    """One of the two versions that a rule connects, and a path in its objects."""

    version: str
    place: StructuralSchema | None
    at: Place = ()

    def has(self, path: Place) -> bool:
        return (not self.at and path[0] in META_FIELDS) or has(self.place, path)

    def inside(self, *steps: str | Inside) -> _End:
        place = self.place
        for step in steps:
            place = items(place) if step is ITEM else child(place, _name(step))
        return _End(self.version, place, (*self.at, *steps))

    def unnamed(self) -> _End:
        """Return this path extended to the items of the list, or values of the map, at its end."""
        is_list = self.place is not None and self.place.type == "array"
        return self.inside(ITEM if is_list else VALUE)


def _name(step: str | Inside) -> str:
    return step if isinstance(step, str) else ""


@dataclass(frozen=True, slots=True)
class _Missing:
    """A field that a rule writes and that the schema does not have."""

    end: _End
    path: Place
    is_source: bool
    number: int
    """The position of this field among the fields that the rule names for this version, from 0."""


@dataclass(frozen=True, slots=True)
class _Ends:
    """The two paths, one in each version, between which a block of rules converts."""

    source: _End
    target: _End

    @classmethod
    def of(cls, edge: DeclaredEdge, known: Structures) -> _Ends:
        one, other = (_End(each, known.get(each)) for each in (edge.source, edge.target))
        return cls(one, other)

    def missing(self, rule: ConversionRule) -> Iterator[_Missing]:
        if isinstance(rule, DropRule):
            return  # a drop rule writes only the value that was preserved for the same path
        for end, paths in ((self.source, rule.sources), (self.target, rule.targets)):
            for number, path in enumerate(paths):
                if not end.has(path):
                    yield _Missing(end, path, end is self.source, number)
        if isinstance(rule, KeyedRule) and self.source.has(rule.source):
            item = self.source.inside(*rule.source, ITEM)
            for name in filter(None, (rule.key, rule.value)):
                if not item.has((name,)):
                    yield _Missing(item, (name,), True, 0)

    def repeated(self, rule: RecurseRule) -> _Ends | None:
        """Return the ends of the rules that a rule applies again; None where the schemas end."""
        one, other = self.source.inside(*rule.source), self.target.inside(*rule.target)
        ends = [
            end.inside(ITEM) if end.place is not None and end.place.type == "array" else end
            for end in (one, other)
        ]
        return None if ends[0].place is None and ends[1].place is None else _Ends(*ends)

    def inside(self, rule: MoveRule | EachRule | WrapRule | RenameKeysRule) -> _Ends:
        one, other = self.source.inside(*rule.source), self.target.inside(*rule.target)
        if isinstance(rule, WrapRule):
            return _Ends(one, other.inside(ITEM))
        if isinstance(rule, RenameKeysRule):
            return _Ends(one.inside(VALUE), other.inside(VALUE))
        return (
            _Ends(one.unnamed(), other.unnamed())
            if isinstance(rule, EachRule)
            else _Ends(one, other)
        )


def _problems(ends: _Ends, block: RuleBlock, holder: Document) -> Iterator[PolyverError]:
    for number, rule in enumerate(block.rules):
        written: Any = holder.part("rules", number)
        yield from _rule_problems(ends, rule, written)


def _rule_problems(ends: _Ends, rule: ConversionRule, written: Any) -> Iterator[PolyverError]:
    """Yield the problems of one rule; `written` is the mapping with the rule and its name."""
    [name] = written.value
    part = written.part(name)
    if isinstance(rule, ReversedRule):
        yield from _rule_problems(_Ends(ends.target, ends.source), rule.rule, part)
        return
    missing = [*ends.missing(rule.deciding if isinstance(rule, WhenRule) else rule)]
    for each in missing:
        at = show((*each.end.at, *each.path))
        fact = f"{name} writes {at}, but {each.end.version} has no such field"
        hint = "correct the path, or add the field to the schema"
        yield part.error(fact, *_key(part.value, each), hint=hint)
    if not missing and isinstance(rule, MoveRule | EachRule | WrapRule | RenameKeysRule):
        yield from _problems(ends.inside(rule), rule.inside, part)
    if isinstance(rule, RecurseRule) and not missing:
        yield from _repeated(ends.repeated(rule), rule.repeated_rules, part)
    if isinstance(rule, WhenRule):
        for place, case in enumerate(rule.cases):
            yield from _problems(ends, case.block, part.part("cases", place))
        yield from _problems(ends, rule.otherwise.block, part.part("otherwise"))


def _repeated(
    ends: _Ends | None, rules: Sequence[ConversionRule], part: Document
) -> Iterator[PolyverError]:
    """Yield the problems of rules that the rule `part` applies again, at deeper fields."""
    for rule in rules if ends is not None else ():
        assert ends is not None
        missing = [*ends.missing(rule)]
        if isinstance(rule, RecurseRule):
            if not missing:
                yield from _repeated(ends.repeated(rule), rule.repeated_rules, part)
            continue
        for each in missing:
            at = show((*each.end.at, *each.path))
            fact = f"{rule.name} writes {at}, but {each.end.version} has no such field"
            yield part.error(fact, hint="add the field to the schema, as at the outer level")
        if not missing and isinstance(rule, MoveRule | EachRule | WrapRule):
            yield from _repeated(ends.inside(rule), rule.inside.rules, part)


def _key(written: Mapping[str, Any], missing: _Missing) -> tuple[str | int, ...]:
    """Return the keys, such as ("into", 1), under which a rule's YAML names the missing field."""
    if "at" in written:
        return ("at",) if missing.is_source or "as" not in written else ("as",)
    if missing.is_source:
        return ("from",)
    if "to" in written:
        return ("to",)
    return (
        "into",
        [*written["into"]][missing.number] if type(written["into"]) is dict else missing.number,
    )
