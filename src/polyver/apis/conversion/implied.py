"""Rules that the schemas of two versions imply: a field that only one of them has is preserved.

An API server would prune the field from converted objects. Fields that neither schema has are left
to the API server.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from polyver.apis.conversion.nested import EachRule
from polyver.apis.conversion.paths import Path
from polyver.apis.conversion.rules import ConversionRule, DropRule
from polyver.kube.objects.schema.structure import META_FIELDS, StructuralSchema

__all__ = [
    "NOTHING",
    "child",
    "has_path",
    "implied",
    "is_open",
    "items",
    "knows",
    "loses",
    "names_in",
    "strip",
]

NOTHING = StructuralSchema()
"""The schema of an object in which an API server keeps no field at all."""


def knows(place: StructuralSchema | None, name: str) -> bool:
    """Report whether objects with a schema may have a field; without a schema they may."""
    if place is None or place.preserves or place.takes_any_key or name in place.fields:
        return True
    return place.embedded and name in META_FIELDS


def child(place: StructuralSchema | None, name: str) -> StructuralSchema | None:
    """Return the schema of a known field; None if anything is allowed."""
    if place is None or (place.embedded and name in META_FIELDS):
        return None
    found = place.child(name)
    if found is None and place.takes_any_key and not place.preserves:
        return NOTHING
    return found


def has_path(place: StructuralSchema | None, path: Path) -> bool:
    """Report whether objects with a schema may have a field at a path."""
    for name in path:
        if not knows(place, name):
            return False
        place = child(place, name)
    return True


def items(place: StructuralSchema | None) -> StructuralSchema | None:
    """Return the schema of the items of a list; None if anything is allowed."""
    if place is None or (place.preserves and place.items is None):
        return None
    return place.items or NOTHING


def strip(value: Any, source: StructuralSchema | None, target: StructuralSchema | None) -> None:
    """Remove the fields that the source may have and the target may not, in place."""
    if target is None:
        return
    if type(value) is dict:
        for name in [*value]:
            if not knows(source, name):
                continue
            if not knows(target, name):
                del value[name]
            else:
                strip(value[name], child(source, name), child(target, name))
    elif type(value) is list:
        for item in value:
            strip(item, items(source), items(target))


def loses(source: StructuralSchema | None, target: StructuralSchema | None) -> bool:
    """Report whether values can have a field in the source that they cannot have in the target."""
    if target is None or source is target:
        return False
    if source is None:
        return True
    if any(not knows(target, name) for name in names_in(source)):
        return True
    if is_open(source) and not is_open(target) and "object" in (source.type, target.type):
        return True
    pairs = [
        (child(source, name), child(target, name))
        for name in {**source.fields, **target.fields}
        if knows(source, name)
    ]
    pairs.append((items(source), items(target)))
    if source.takes_any_key:
        pairs.append((child(source, ""), child(target, "")))
    return any(loses(one, other) for one, other in pairs)


def names_in(place: StructuralSchema) -> frozenset[str]:
    """Return the names of the fields in a schema."""
    return META_FIELDS.union(place.fields) if place.embedded else frozenset(place.fields)


def is_open(place: StructuralSchema) -> bool:
    """Report whether objects with a schema may have fields with any name."""
    return place.preserves or place.takes_any_key


class _Paths:
    """The paths that rules name in one version."""

    def __init__(self, paths: Iterable[Path]) -> None:
        self.exact = frozenset(paths)
        self.around = {path[:size] for path in self.exact for size in range(len(path) + 1)}
        """The paths and all of their parents."""


@dataclass(frozen=True, slots=True)
class _Named:
    """The paths that rules name, in each version."""

    sources: _Paths
    targets: _Paths


def implied(
    rules: Sequence[ConversionRule],
    source: StructuralSchema | None,
    target: StructuralSchema | None,
    *,
    root: bool,
) -> Iterator[ConversionRule]:
    """Yield the rules for fields that no rule names and one of the versions lacks."""
    if source is None or target is None:
        return iter(())
    sources = _Paths(path for rule in rules for path in rule.sources)
    targets = _Paths(path for rule in rules for path in rule.targets)
    return _implied((), source, target, _Named(sources, targets), root=root)


def _implied(
    at: Path,
    source: StructuralSchema,
    target: StructuralSchema,
    named: _Named,
    *,
    root: bool = False,
) -> Iterator[ConversionRule]:
    for name in {**source.fields, **target.fields}:
        path = (*at, name)
        if root and name in META_FIELDS:
            continue
        one, other = source.fields.get(name), target.fields.get(name)
        shared = path not in named.sources.exact and path not in named.targets.exact
        if one is not None and other is not None and shared:
            yield from _within(path, one, other, named)
        elif not shared or not (knows(source, name) and knows(target, name)):
            yield from _alone(path, one, named.sources, added=False)
            yield from _alone(path, other, named.targets, added=True)


def _within(
    path: Path, one: StructuralSchema, other: StructuralSchema, named: _Named
) -> Iterator[ConversionRule]:
    touched = path in named.sources.around or path in named.targets.around
    if not touched and not loses(one, other) and not loses(other, one):
        return
    if not touched and _is_listed(one) and _is_listed(other):
        inside = (one.items or one.values, other.items or other.values)
        if None not in inside:
            # Blocks and rules refer to each other, so this import cannot be at the top.
            from polyver.apis.conversion._block import RuleBlock

            yield EachRule(path, path, RuleBlock().bound(*inside), one.keys, other.keys)
    else:
        yield from _implied(path, one, other, named)


def _is_listed(place: StructuralSchema) -> bool:
    """Report whether a schema is for a list or a map of values, without named fields."""
    listed = place.items is not None or place.values is not None
    return listed and not place.fields and not place.preserves


def _alone(
    path: Path, place: StructuralSchema | None, named: _Paths, *, added: bool
) -> Iterator[ConversionRule]:
    """Yield a drop rule for a field that one version lacks, or for its parts that no rule names."""
    if place is None or path in named.exact:
        return
    if path not in named.around:
        yield DropRule(path, added=added, implied=True)
        return
    for name, inside in place.fields.items():
        yield from _alone((*path, name), inside, named, added=added)
