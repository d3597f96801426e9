"""Conversion steps: a step converts over one edge in one direction, by rules or by functions."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, Protocol

import msgspec

from polyver.apis.conversion._block import RuleBlock
from polyver.apis.conversion._delta import Guard, Lost, delta, item_guards, patch, place_of
from polyver.apis.conversion.paths import parse_path, pick
from polyver.apis.conversion.schemas import pruner
from polyver.apis.conversion.values import fingerprint
from polyver.core import Hop
from polyver.core.plain import Object
from polyver.kube.objects.codec import encode_sorted
from polyver.kube.objects.converted_metadata import fresh
from polyver.kube.objects.schema.structure import StructuralSchema

__all__ = [
    "ByFunctions",
    "ByRules",
    "ConversionStep",
    "PrunedObject",
    "by_rules",
    "calls_functions",
    "compilable",
]

Function = Callable[[Object], Object]


class ConversionStep(Protocol):
    """Converts objects from one version to a neighbouring version.

    Callers pass the objects without apiVersion and without preserved fields.
    """

    @property
    def place(self) -> str:
        """The file and line that declare the edge, or the function that converts."""
        ...

    def run(self, obj: Object) -> Object:
        """Convert an object, without restoring preserved fields."""
        ...

    def lost(self, obj: Object, made: Object) -> Lost:
        """Find the lost fields: those that converting `made` back would not restore.

        `made` is the result of `run(obj)`. The lost fields are the fields of `obj` that would be
        missing or different if `made` were converted back.
        """
        ...

    def restored(self, made: Object, lost: Lost) -> Object:
        """Return `made`, the result of `run`, with the preserved fields in `lost` restored."""
        ...

    def guards(self, lost: Lost, view: Object) -> Iterator[Guard]:
        """Yield the guards of the preserved fields in `lost`, which belong to the target version.

        A guard is the fingerprint of the fields of `view`, the source object, on which a preserved
        field depends.
        """
        ...


@dataclass(frozen=True, slots=True)
class ByRules:
    """One direction of an edge that is declared by rules."""

    block: RuleBlock
    back: bool

    @property
    def place(self) -> str:
        """The file and line that declare the edge."""
        return self.block.place

    def run(self, obj: Object) -> Object:
        return self.block.at(obj).run(obj, back=self.back)

    def lost(self, obj: Object, made: Object) -> Lost:
        return self.block.at(obj).lost(obj, made, back=self.back)

    def restored(self, made: Object, lost: Lost) -> Object:
        return self.block.at(made).restored(made, lost, back=self.back)

    def guards(self, lost: Lost, view: Object) -> Iterator[Guard]:
        return self.block.at(view).guards(lost, view, back=self.back)


@dataclass(frozen=True, slots=True)
class ByFunctions:
    """One direction of an edge that a user declares by two functions, `there` and `back`.

    A field is lost if converting by `there` and then by `back` does not return the field with the
    same value. polyver does not know on which other fields a lost field depends. So when it later
    converts to the version with the lost field, it restores the field only if the function returns
    the same value for this field as directly after the loss.
    """

    there: Function
    back: Function
    source: StructuralSchema | None
    target: StructuralSchema | None

    def run(self, obj: Object) -> Object:
        return _called(self.there, obj, self.target)

    def said(self, obj: Object) -> Object:
        """Return the result of the function `there` without pruning it.

        The result may have fields that the target version does not have.
        """
        return _called(self.there, obj, None)

    def lost(self, obj: Object, made: Object) -> Lost:
        again = _called(self.back, made, self.source)
        try:
            if encode_sorted(_without_fixed(again)) == encode_sorted(_without_fixed(obj)):
                return {}
        except (TypeError, ValueError, RecursionError):
            # the result of a user's function may be any value, also a value that cannot be encoded
            pass
        return _guarded(delta(again, obj, self.source))

    def restored(self, made: Object, lost: Lost) -> Object:
        if not lost:
            return made
        whole: Object = fresh(made)
        patch(whole, lost, self.target)
        return whole

    def guards(self, lost: Lost, view: Object) -> Iterator[Guard]:
        return _guards(lost, self.run(view), self.target)

    @property
    def place(self) -> str:
        """The file and line of the user's function `there`; empty if it is not written in Python.

        A function that polyver wraps around a user's function names it as `__wrapped__`.
        """
        code = getattr(inspect.unwrap(self.there), "__code__", None)
        return f"{code.co_filename}:{code.co_firstlineno}" if code is not None else ""


@dataclass(frozen=True, slots=True)
class _ByUnfitRules(ByRules):
    """One direction of an edge whose rules name fields that do not exist in a version.

    An API server prunes the values of such fields. So polyver treats these rules like functions:
    any field may be lost.
    """

    @property
    def _functions(self) -> ByFunctions:
        there, back = (ByRules(self.block, way).run for way in (self.back, not self.back))
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


def calls_functions(step: ConversionStep) -> bool:
    """Report whether a conversion step calls functions of users."""
    return isinstance(step, ByFunctions) or (
        isinstance(step, ByRules) and step.block.calls_functions
    )


def compilable(hops: Sequence[Hop[ConversionStep]]) -> list[ByRules] | None:
    """Return the steps of a conversion path if they can be compiled; otherwise return None.

    Rules cannot be compiled if they name fields that a version does not have. They also cannot be
    compiled if only one of the two versions of a step has a schema, because any field may be lost
    then.
    """
    steps = [hop.convert for hop in hops if isinstance(hop.convert, ByRules)]
    half_known = any(step.block.places.count(None) == 1 for step in steps)
    fits = all(step.block.fits for step in steps)
    return steps if len(steps) == len(hops) and fits and not half_known else None


def by_rules(block: RuleBlock, *, back: bool) -> ByRules:
    """Build one direction of an edge that is declared by rules.

    With `back`, it converts from the version `to` to the version `from`.
    """
    return (ByRules if block.fits else _ByUnfitRules)(block, back)


def _guarded(lost: Lost) -> Lost:
    """Return the lost fields with an empty guard for each value; the guards are set later."""
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
    """An object that has only fields of its schema, so an API server would prune nothing."""


def _called(function: Function, obj: Object, target: StructuralSchema | None) -> Object:
    """Call a conversion function, prune its result, and copy the fixed metadata from the input.

    Functions cannot change apiVersion, kind and metadata, except labels and annotations, and do not
    get managedFields. An API server may also send objects that have only metadata. The function is
    not called for them.
    """
    if not obj.keys() - {"kind", "metadata"}:
        same: Object = _copied(obj)
        return same
    made = function(_copied(_without_managed_fields(obj)))
    rest = {name: value for name, value in made.items() if name not in _FIXED}
    if type(made) is not PrunedObject and (prune := pruner(target)) is not None:
        prune(rest)
    kept = {name: obj[name] for name in _FIXED if name in obj}
    if type(obj.get("metadata")) is dict:
        after = made.get("metadata")
        free = {n: v for n, v in after.items() if n in _FREE} if type(after) is dict else {}
        fixed = {n: v for n, v in obj["metadata"].items() if n not in _FREE}
        kept["metadata"] = {**fixed, **free}
    return kept | rest


def _without_managed_fields(obj: Object) -> Object:
    """Return an object without managedFields, which can be larger than the rest of the object."""
    metadata = obj.get("metadata")
    if type(metadata) is not dict or "managedFields" not in metadata:
        return obj
    rest = {name: value for name, value in metadata.items() if name != "managedFields"}
    return {**obj, "metadata": rest}


def _without_fixed(obj: Object) -> Object:
    """Return an object without the metadata that functions cannot change."""
    metadata = obj.get("metadata")
    if type(metadata) is not dict:
        return obj
    return {**obj, "metadata": {name: metadata[name] for name in _FREE if name in metadata}}


def _copied(value: Any) -> Any:
    """Return a copy of JSON data."""
    try:
        return msgspec.to_builtins(value)
    except TypeError:
        # The result cannot be written as JSON; writing the converted object raises the error later.
        return fresh(value)


_FIXED = ("apiVersion", "kind", "metadata")
_FREE = ("labels", "annotations")
