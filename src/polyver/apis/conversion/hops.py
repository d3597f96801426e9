"""One edge in one direction, by rules or by functions of the user: one interface for both."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, Protocol

import msgspec

from polyver.apis.conversion._block import RuleBlock
from polyver.apis.conversion._delta import Guard, Lost, delta, item_guards, patch, place_of
from polyver.apis.conversion._pruning import pruner
from polyver.apis.conversion.paths import parse_path, pick
from polyver.apis.conversion.values import fingerprint
from polyver.core import Hop
from polyver.core.plain import Object
from polyver.kube.objects.converted_metadata import fresh
from polyver.kube.objects.schema.structure import StructuralSchema

__all__ = ["ByFunctions", "ByRules", "ConversionStep", "PrunedObject", "by_rules", "compilable"]

Function = Callable[[Object], Object]


class ConversionStep(Protocol):
    """From one version to its neighbour. Objects have neither apiVersion nor the carry."""

    def run(self, obj: Object) -> Object:
        """What an object becomes, with nothing of what was lost before."""
        ...

    def lost(self, obj: Object, made: Object) -> Lost:
        """What an object has that would not come back from what was made of it."""
        ...

    def restored(self, made: Object, lost: Lost) -> Object:
        """What was made, together with what was lost of it before."""
        ...

    def guards(self, lost: Lost, view: Object) -> Iterator[Guard]:
        """The guards in what was lost of the target, while the source looks like this."""
        ...


@dataclass(frozen=True, slots=True)
class ByRules:
    """An edge that is declared."""

    block: RuleBlock
    back: bool

    def run(self, obj: Object) -> Object:
        return self.block.run(obj, back=self.back)

    def lost(self, obj: Object, made: Object) -> Lost:
        return self.block.lost(obj, made, back=self.back)

    def restored(self, made: Object, lost: Lost) -> Object:
        return self.block.restored(made, lost, back=self.back)

    def guards(self, lost: Lost, view: Object) -> Iterator[Guard]:
        return self.block.guards(lost, view, back=self.back)


@dataclass(frozen=True, slots=True)
class ByFunctions:
    """An edge that is a pair of functions.

    What they lose is what the one does not give back after the other. It is restored while they
    still give the same at its place: which fields it belongs to, nobody told.
    """

    there: Function
    back: Function
    source: StructuralSchema | None
    target: StructuralSchema | None

    def run(self, obj: Object) -> Object:
        return _called(self.there, obj, self.target)

    def said(self, obj: Object) -> Object:
        """What the function makes of an object, with fields that the target may lack."""
        return _called(self.there, obj, None)

    def lost(self, obj: Object, made: Object) -> Lost:
        again = _called(self.back, made, self.source)
        if _are_alike(again, obj):
            return {}
        return _guarded(delta(again, obj, self.source))

    def restored(self, made: Object, lost: Lost) -> Object:
        if not lost:
            return made
        whole: Object = fresh(made)
        patch(whole, lost, self.target)
        return whole

    def guards(self, lost: Lost, view: Object) -> Iterator[Guard]:
        return _guards(lost, self.run(view), self.target)


@dataclass(frozen=True, slots=True)
class _ByUnfitRules(ByRules):
    """An edge whose rules name fields that a version lacks.

    An API server prunes what they write there, so each is a function that may lose anything.
    """

    @property
    def _functions(self) -> ByFunctions:
        there, back = (
            partial(self.block.run, back=self.back),
            partial(self.block.run, back=not self.back),
        )
        return ByFunctions(
            there, back, self.block.read(back=self.back), self.block.written(back=self.back)
        )

    def run(self, obj: Object) -> Object:
        return self._functions.run(obj)

    def lost(self, obj: Object, made: Object) -> Lost:
        return self._functions.lost(obj, made)

    def restored(self, made: Object, lost: Lost) -> Object:
        return self._functions.restored(made, lost)

    def guards(self, lost: Lost, view: Object) -> Iterator[Guard]:
        return self._functions.guards(lost, view)


def compilable(hops: Sequence[Hop[ConversionStep]]) -> list[ByRules] | None:
    """The steps of a way, if they are rules for fields that their versions have; else None.

    Where one version has a schema and its neighbour none, any field may be one that is lost.
    """
    steps = [hop.convert for hop in hops if isinstance(hop.convert, ByRules)]
    half_known = any(step.block.places.count(None) == 1 for step in steps)
    fits = all(step.block.fits for step in steps)
    return steps if len(steps) == len(hops) and fits and not half_known else None


def by_rules(block: RuleBlock, *, back: bool) -> ByRules:
    """One direction of an edge that is declared."""
    return (ByRules if block.fits else _ByUnfitRules)(block, back)


def _guarded(lost: Lost) -> Lost:
    """What was lost, each value with a guard of its own."""
    made: Lost = {}
    for path, entry in lost.items():
        each = {name: value for name, value in entry.items() if name != "whole"}
        if "is" in each or "absent" in each:
            each["if"] = ""
        if "by" in each:
            each["by"] = {name: _guarded(inner) for name, inner in each["by"].items()}
        made[path] = each
    return made


def _guards(lost: Lost, made: Any, place: StructuralSchema | None) -> Iterator[Guard]:
    for text, entry in lost.items():
        path = parse_path(text)
        found, inside = pick(made, path), place_of(place, path)
        if "if" in entry:
            yield entry, "if", fingerprint([found])
        else:
            yield from item_guards(
                entry,
                found,
                inside.keys if inside is not None else (),
                partial(_guards, place=inside and inside.items),
            )


class PrunedObject(dict[str, Any]):
    """Data that has no fields but those of its schema."""


def _called(function: Function, obj: Object, target: StructuralSchema | None) -> Object:
    """What an API server would keep of what a function makes; what it may not change is as it was.

    It is spared objects that have nothing but metadata, which API servers send.
    """
    if not obj.keys() - {"kind", "metadata"}:
        same: Object = _copied(obj)
        return same
    made = function(_copied(obj))
    rest = {name: value for name, value in made.items() if name not in _FIXED}
    if type(made) is not PrunedObject and (prune := pruner(target)) is not None:
        prune(rest)
    kept = {name: obj[name] for name in _FIXED if name in obj}
    if type(obj.get("metadata")) is dict:
        kept["metadata"] = _metadata(obj["metadata"], made.get("metadata"))
    return kept | rest


def _are_alike(one: Object, other: Object) -> bool:
    """Whether two objects are the same as JSON. False says nothing: whoever looks finds out why."""
    try:
        return _sorted(_without_fixed(one)) == _sorted(_without_fixed(other))
    except (TypeError, ValueError, RecursionError):  # what functions return may be anything
        return False


def _without_fixed(obj: Object) -> Object:
    """An object without the metadata that functions cannot change."""
    metadata = obj.get("metadata")
    if type(metadata) is not dict:
        return obj
    return {**obj, "metadata": {name: metadata[name] for name in _FREE if name in metadata}}


_sorted = msgspec.json.Encoder(order="sorted").encode


def _copied(value: Any) -> Any:
    """A copy of what was read from JSON, or made to be written as that."""
    try:
        return msgspec.to_builtins(value)
    except TypeError:  # not JSON, which is told when it is written
        return fresh(value)


def _metadata(before: Object, after: Any) -> Object:
    kept = {name: value for name, value in before.items() if name not in _FREE}
    free = {n: v for n, v in after.items() if n in _FREE} if type(after) is dict else {}
    return {**kept, **free}


_FIXED = ("apiVersion", "kind", "metadata")
_FREE = ("labels", "annotations")
