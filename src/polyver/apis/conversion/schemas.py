"""Compare the schemas of two versions, for the conversion between them.

- A field that only one of the versions has must be preserved, because an API server would prune the
  field from converted objects. So the schemas imply a rule for this field. Fields that neither
  schema has are not changed: the API server prunes them.
- Objects that conversion functions return are pruned as an API server prunes them: fields that the
  schema does not have are removed.
- Compiled rules cannot convert all objects. This module finds the fields for which the interpreter
  is needed, and the fields that an API server may set to a default.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Final

from polyver.apis.conversion.nested import EachRule
from polyver.apis.conversion.paths import Path
from polyver.apis.conversion.rules import ConversionRule, DropRule, Ports
from polyver.core.plain import Schema
from polyver.kube.objects.schema.structure import META_FIELDS, StructuralSchema

if TYPE_CHECKING:
    from polyver.apis.conversion._block import RuleBlock

__all__ = [
    "NOTHING",
    "Prune",
    "Settled",
    "all_settled",
    "allows",
    "child",
    "has_path",
    "implied",
    "is_alone",
    "is_open",
    "items",
    "knows",
    "loses",
    "names_in",
    "pruner",
    "settled",
    "strip",
    "watched",
]

NOTHING = StructuralSchema()
"""The schema of an object in which an API server keeps no field at all."""


def knows(place: StructuralSchema | None, name: str) -> bool:
    """Report whether a schema allows a field; without a schema (None), every field is allowed."""
    if place is None or place.preserves or place.takes_any_key or name in place.fields:
        return True
    return place.embedded and name in META_FIELDS


def child(place: StructuralSchema | None, name: str) -> StructuralSchema | None:
    """Return the schema of a field that `place` allows; None if the field may have any value."""
    if place is None or (place.embedded and name in META_FIELDS):
        return None
    found = place.child(name)
    if found is None and place.takes_any_key and not place.preserves:
        return NOTHING
    return found


def has_path(place: StructuralSchema | None, path: Path) -> bool:
    """Report whether a schema allows a field at a path."""
    for name in path:
        if not knows(place, name):
            return False
        place = child(place, name)
    return True


def allows(place: StructuralSchema | None, expected: Schema) -> bool:
    """Report whether a schema has all fields that the schema `expected` of a rule names."""
    for name, inside in expected.get("properties", {}).items():
        if not knows(place, name) or not allows(child(place, name), inside):
            return False
    return "items" not in expected or allows(items(place), expected["items"])


def items(place: StructuralSchema | None) -> StructuralSchema | None:
    """Return the schema of the items of a list; None if an item may have any value."""
    if place is None or (place.preserves and place.items is None):
        return None
    return place.items or NOTHING


def strip(value: Any, source: StructuralSchema | None, target: StructuralSchema | None) -> None:
    """Remove, in place, the fields that the source schema allows and the target schema does not."""
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
    """Report whether the source schema allows a field that the target schema does not allow."""
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
    """Report whether a schema allows fields with any name."""
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
    """Yield the rules that the schemas imply: a drop rule for each field that one version lacks.

    There is no such rule for fields that a rule of the user names. `root` is True for whole
    objects.
    """
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
    """Report whether a schema describes a list or a map, and names no fields of its own."""
    listed = place.items is not None or place.values is not None
    return listed and not place.fields and not place.preserves


def _alone(
    path: Path, place: StructuralSchema | None, named: _Paths, *, added: bool
) -> Iterator[ConversionRule]:
    """Yield a drop rule for a field that only one version has.

    If rules of the user name parts of the field, yield a drop rule for each of its other parts.
    """
    if place is None or path in named.exact:
        return
    if path not in named.around:
        yield DropRule(path, added=added, implied=True)
        return
    for name, inside in place.fields.items():
        yield from _alone((*path, name), inside, named, added=added)


# Pruning.


Prune = Callable[[Any], None]
"""Prunes a value in place."""


@lru_cache(maxsize=4096)
def pruner(place: StructuralSchema | None) -> Prune | None:
    """Build a function that removes the fields that a schema does not have.

    Return None if the schema allows every field.

    >>> prune = pruner(StructuralSchema(fields={"a": StructuralSchema(preserves=True)}))
    >>> obj = {"a": {"b": 1}, "c": 2}
    >>> prune(obj) if prune else None
    >>> obj
    {'a': {'b': 1}}
    """
    if place is None:
        return None
    if not names_in(place) and not is_open(place) and place.items is None:
        return _empty
    names = None if is_open(place) else names_in(place)
    inside = {name: pruner(child(place, name)) for name in names_in(place)}
    other = pruner(child(place, _NO_FIELD)) if is_open(place) else None
    listed = pruner(items(place))
    if names is None and other is None and listed is None and not any(inside.values()):
        return None
    known = {name: found or _leave for name, found in inside.items()}
    return _pruner(names, known, other or _leave, listed or _leave)


_NO_FIELD = "\0"
"""A field name that occurs in no schema; it stands for every field that a schema does not name."""


def _pruner(
    names: frozenset[str] | None,
    inside: Mapping[str, Prune],
    other: Prune,
    listed: Prune,
) -> Prune:
    def prune(value: Any) -> None:
        if type(value) is list:
            for each in value:
                listed(each)
        if type(value) is not dict:
            return
        if names is not None and not value.keys() <= names:
            for name in value.keys() - names:
                del value[name]
        for name, each in value.items():
            if type(each) is dict or type(each) is list:
                inside.get(name, other)(each)

    return prune


def _leave(_: Any) -> None:
    """Leave a value unchanged, because its schema allows every field."""


def _empty(value: Any) -> None:
    """Remove all fields of a value, because its schema has no fields."""
    if type(value) is dict:
        value.clear()
    elif type(value) is list:
        for item in value:
            _empty(item)


# Limits of compiled rules.


@dataclass(frozen=True, slots=True)
class Settled:
    """The parts of a schema that decide whether filling in its defaults can change a guard.

    A guard is the fingerprint of the fields on which a preserved value depends. The interpreter
    computes it after filling in defaults. Compiled code does not fill in defaults, so it may handle
    a guarded value only if defaults cannot change these fields.
    """

    has_schema: bool
    has_defaults: bool

    def holds(self, values: Ports) -> bool:
        # Filling in defaults also removes nulls.
        return not (self.has_defaults or (self.has_schema and any(map(_has_null, values))))


def _has_null(value: Any) -> bool:
    if type(value) is dict:
        return any(map(_has_null, value.values()))
    return any(map(_has_null, value)) if type(value) is list else value is None


Watched = dict[Path, tuple[frozenset[str] | None, frozenset[str]]]
"""The fields that an object may have if compiled rules convert it, by the path of the object.

Each value is two sets of field names: the fields that the object may have (None: any field), and
the fields that it must not have.
"""


def watched(block: RuleBlock, *, back: bool) -> Watched:
    """Find the fields that no rule names and that the target version does not have.

    Only the interpreter can convert an object that has such a field.
    """
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
    """Report whether the target version does not have the object at a path."""
    target = block.written(back=back)
    for name in at:
        if target is None:
            return False
        if not knows(target, name):
            return True
        target = target.child(name)
    return False


def settled(place: StructuralSchema | None, paths: Iterable[Path], far: Settled) -> Settled:
    """Return a `Settled`: whether filling in defaults can change the fields at some paths.

    The result also covers `far`, the `Settled` of other versions on the conversion path.
    """
    found = place is not None and any(_has_default(place, path) for path in paths)
    return Settled(place is not None or far.has_schema, found or far.has_defaults)


def all_settled(places: Iterable[StructuralSchema | None]) -> Settled:
    """Return a `Settled`: whether filling in the defaults of some schemas can change any field."""
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
