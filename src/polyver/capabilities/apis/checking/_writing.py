"""Rules that write a field which a version does not have: an API server drops it, and nobody hears.

Such a Conversion is refused; one whose definition has changed since does without these rules.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

from polyver.capabilities.apis._definition import Definition
from polyver.capabilities.apis.checking._places import ITEM, VALUE, Inside, Place, has, show
from polyver.capabilities.apis.conversion import Block, Converter, Declared, DeclaredEdge
from polyver.capabilities.apis.conversion._implied import child, items
from polyver.capabilities.apis.conversion._nested import Each, Keyed, Move, Wrap
from polyver.capabilities.apis.conversion._rules import Drop, Rule
from polyver.core import PolyverError
from polyver.objects import Document
from polyver.objects.schema._structure import META_FIELDS, Structure, read_structure

__all__ = ["check_writing", "fitting_converter"]

Structures = Mapping[str, Structure]


def check_writing(declared: Declared, definition: Definition) -> None:
    """Refuse a Conversion with a rule that writes what one of the versions does not have."""
    known = _structures(definition)
    for number, edge in enumerate(declared.edges):
        ends = _Ends.of(edge, known)
        holder = declared.document.part("spec", "edges", number)
        for error in _problems(ends, edge.block, holder):
            raise error


def fitting_converter(declared: Declared, definition: Definition) -> Converter:
    """What can be done of a Conversion, for the versions that a definition has now.

    What a rule that is left out would have written is carried, as of any field without one.
    """
    known = _structures(definition)
    edges = [
        replace(edge, block=_fitting(_Ends.of(edge, known), edge.block)) for edge in declared.edges
    ]
    schemas = {each.name: each.schema for each in definition.versions if each.schema is not None}
    return Converter(
        declared.group,
        declared.kind,
        declared.versions,
        edges,
        hub=declared.hub,
        schemas={name: each for name, each in schemas.items() if name in declared.versions},
    )


def _structures(definition: Definition) -> Structures:
    schemas = {each.name: each.schema for each in definition.versions}
    return {name: read_structure(each) for name, each in schemas.items() if each is not None}


@dataclass(frozen=True, slots=True)
class _End:
    """One version, at a place of its objects."""

    version: str
    place: Structure | None
    at: Place = ()

    def has(self, path: Place) -> bool:
        return (not self.at and path[0] in META_FIELDS) or has(self.place, path)

    def inside(self, *steps: str | Inside) -> _End:
        place = self.place
        for step in steps:
            place = items(place) if step is ITEM else child(place, _name(step))
        return _End(self.version, place, (*self.at, *steps))

    def unnamed(self) -> _End:
        """What is in a list, or in a map."""
        is_list = self.place is not None and self.place.type == "array"
        return self.inside(ITEM if is_list else VALUE)


def _name(step: str | Inside) -> str:
    return step if isinstance(step, str) else ""


@dataclass(frozen=True, slots=True)
class _Missing:
    """A field that a rule writes and that is not there."""

    end: _End
    path: Place
    is_source: bool
    number: int
    """Which of the fields that the rule names on that side."""


@dataclass(frozen=True, slots=True)
class _Ends:
    """The two places between which rules are."""

    source: _End
    target: _End

    @classmethod
    def of(cls, edge: DeclaredEdge, known: Structures) -> _Ends:
        one, other = (_End(each, known.get(each)) for each in (edge.source, edge.target))
        return cls(one, other)

    def missing(self, rule: Rule) -> Iterator[_Missing]:
        if isinstance(rule, Drop):
            return  # It puts back what was there, and never writes anything else.
        for end, paths in ((self.source, rule.sources), (self.target, rule.targets)):
            for number, path in enumerate(paths):
                if not end.has(path):
                    yield _Missing(end, path, end is self.source, number)
        if isinstance(rule, Keyed) and self.source.has(rule.source):
            item = self.source.inside(*rule.source, ITEM)
            for name in filter(None, (rule.key, rule.value)):
                if not item.has((name,)):
                    yield _Missing(item, (name,), True, 0)

    def inside(self, rule: Move | Each | Wrap) -> _Ends:
        one, other = self.source.inside(*rule.source), self.target.inside(*rule.target)
        if isinstance(rule, Wrap):
            return _Ends(one, other.inside(ITEM))
        return (
            _Ends(one.unnamed(), other.unnamed()) if isinstance(rule, Each) else _Ends(one, other)
        )


def _problems(ends: _Ends, block: Block, holder: Document) -> Iterator[PolyverError]:
    for number, rule in enumerate(block.rules):
        written: Any = holder.part("rules", number)
        [name] = written.value
        part = written.part(name)
        missing = [*ends.missing(rule)]
        for each in missing:
            at = show((*each.end.at, *each.path))
            fact = f"{name} writes {at}, and {each.end.version} has no such field"
            hint = "correct the path, or add the field to the schema"
            yield part.error(fact, *_key(part.value, each), hint=hint)
        if not missing and isinstance(rule, Move | Each | Wrap):
            yield from _problems(ends.inside(rule), rule.inside, part)


def _key(written: Mapping[str, Any], missing: _Missing) -> tuple[str | int, ...]:
    """Where a rule names the field."""
    if "at" in written:
        return ("at",) if missing.is_source or "as" not in written else ("as",)
    if missing.is_source:
        return ("from",)
    return ("to",) if "to" in written else ("into", missing.number)


def _fitting(ends: _Ends, block: Block) -> Block:
    """The rules that write only what is there."""
    kept = (_kept(ends, rule) for rule in block.rules)
    return Block(tuple(rule for rule in kept if rule is not None), root=block.root)


def _kept(ends: _Ends, rule: Rule) -> Rule | None:
    if any(ends.missing(rule)):
        return None
    if not isinstance(rule, Move | Each | Wrap):
        return rule
    inside = _fitting(ends.inside(rule), rule.inside)
    if isinstance(rule, Each):
        gone = {each.sources for each in rule.inside.rules} - {
            each.sources for each in inside.rules
        }
        if any((key,) in sources for key in rule.source_keys for sources in gone):
            return None  # Nothing would tell the items apart.
    return replace(rule, inside=inside)
