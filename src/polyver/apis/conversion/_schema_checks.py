"""Properties of the schemas of two versions that limit which objects compiled rules can convert.

They name the fields that only the interpreter can convert, and where defaults may be filled in.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, Final

from polyver.apis.conversion._block import RuleBlock
from polyver.apis.conversion.implied import child, is_open, knows, loses, names_in
from polyver.apis.conversion.paths import Path
from polyver.apis.conversion.rules import Ports
from polyver.kube.objects.schema.structure import META_FIELDS, StructuralSchema

__all__ = ["Settled", "all_settled", "is_alone", "settled", "watched"]


@dataclass(frozen=True, slots=True)
class Settled:
    """Properties of a schema that decide whether filling in defaults can change a guard."""

    has_schema: bool
    has_defaults: bool

    def holds(self, values: Ports) -> bool:
        # Filling in defaults also drops nulls.
        return not (self.has_defaults or (self.has_schema and any(map(_has_null, values))))


def _has_null(value: Any) -> bool:
    if type(value) is dict:
        return any(map(_has_null, value.values()))
    return any(map(_has_null, value)) if type(value) is list else value is None


Watched = dict[Path, tuple[frozenset[str] | None, frozenset[str]]]
"""By path of an object: the fields it may have (None for any field), and those it must not have."""


def watched(block: RuleBlock, *, back: bool) -> Watched:
    """Return the fields that the target version lacks and no rule names, by their object's path."""
    source, target = block.read(back=back), block.written(back=back)
    found: Watched = {}
    if target is not None:
        named = {path for rule in block.rules for paths in rule.ports(back=back) for path in paths}
        _watch((), source or _OPEN, target, named, found)
    return found


_OPEN: Final = StructuralSchema(preserves=True)


def _watch(
    at: Path, source: StructuralSchema, target: StructuralSchema, named: set[Path], found: Watched
) -> None:
    refused: set[str] = set()
    inside = {path[len(at)] for path in named if len(path) > len(at) and path[: len(at)] == at}
    for name in names_in(source) | names_in(target):
        path = (*at, name)
        if path in named or not knows(source, name):
            continue
        one, other = child(source, name), child(target, name)
        if not knows(target, name):
            refused |= {name} - inside
        elif one is not None and other is not None and one.fields and other.fields:
            _watch(path, one, other, named, found)
        elif loses(one, other):
            refused.add(name)
    allowed = None
    if is_open(source) and not is_open(target):
        allowed = frozenset({*target.fields, *inside, *(META_FIELDS if target.embedded else ())})
    if allowed is not None or refused:
        found[at] = (allowed, frozenset(refused))


def is_alone(block: RuleBlock, at: Path, *, back: bool) -> bool:
    """Report whether the target version lacks the object at a path."""
    target = block.written(back=back)
    for name in at:
        if target is None:
            return False
        if not knows(target, name):
            return True
        target = target.child(name)
    return False


def settled(place: StructuralSchema | None, paths: Iterable[Path], far: Settled) -> Settled:
    found = place is not None and any(_has_default(place, path) for path in paths)
    return Settled(place is not None or far.has_schema, found or far.has_defaults)


def all_settled(places: Iterable[StructuralSchema | None]) -> Settled:
    found = [place for place in places if place is not None]
    return Settled(bool(found), any(_has_defaults_inside(place) for place in found))


def _has_default(place: StructuralSchema, path: Path) -> bool:
    at: StructuralSchema | None = place
    for name in path:
        at = at.child(name) if at is not None else None
        if at is None:
            return False
        if at.default is not None:
            return True
    return at is not None and _has_defaults_inside(at)


def _has_defaults_inside(place: StructuralSchema) -> bool:
    return place.default is not None or any(_has_defaults_inside(each) for each in place.within())
