"""Trials: each trial checks one property of conversions for one object.

A trial is plain data. So it can be run again with smaller objects, to find the smallest object for
which it fails.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import msgspec

from polyver.apis.checking import Counterexample
from polyver.apis.conversion import Converter
from polyver.apis.conversion.hops import ByFunctions, ConversionStep
from polyver.apis.conversion.paths import parse_path, pick, put, show_path, take
from polyver.apis.conversion.values import MISSING
from polyver.core import Hop, PolyverError
from polyver.core.plain import Object
from polyver.kube.objects import encode_json
from polyver.kube.objects.converted_metadata import check_identity, check_kept, fresh, restored
from polyver.languages.values.strings import same, shown

__all__ = [
    "ConversionCache",
    "ConversionTrial",
    "Edit",
    "TrialFailure",
    "edited",
    "hops_on",
    "plain_path",
    "run_trial",
    "shown_value",
]


@dataclass(frozen=True, slots=True)
class Edit:
    """A change of one field by a client: its path, and its new value; MISSING removes the field."""

    path: tuple[str, ...]
    value: Any


@dataclass(frozen=True, slots=True)
class ConversionTrial:
    """The name of the property to check, and the versions through which to convert the object."""

    name: str
    way: tuple[str, ...]
    edit: Edit | None = None


@dataclass(frozen=True, slots=True)
class TrialFailure:
    """A result that violates a property."""

    rule: str
    way: tuple[str, ...]
    path: str
    fact: str
    example: Counterexample

    @property
    def at(self) -> str:
        """The version that has the field `path`."""
        return self.way[{"edit-lost": 1, "default-loses": 0}.get(self.rule, -1)]


class _Failed(Exception):
    """A conversion that raised an exception."""

    def __init__(self, error: Exception, way: tuple[str, ...]) -> None:
        super().__init__(str(error))
        self.error = error
        self.way = way


class ConversionCache:
    """One object, and the results of all conversions of this object so far."""

    def __init__(self, converter: Converter, obj: Object) -> None:
        self.converter = converter
        self.obj = obj
        self._known: dict[tuple[str, ...], Object] = {}

    def after(self, *way: str) -> Object:
        """Convert the object to each version of `way` in turn, starting from its own version."""
        if len(way) == 1:
            return self.obj
        if way not in self._known:
            self._known[way] = _converted(self.converter, self.after(*way[:-1]), way[-1], way)
        return self._known[way]

    def reached(self, *way: str) -> Object | None:
        """Do the same as `after`, but return None if a conversion fails."""
        try:
            return self.after(*way)
        except _Failed:
            return None


def run_trial(tries: ConversionCache, trial: ConversionTrial) -> TrialFailure | None:
    """Run a trial; return its failure, or None if the property holds."""
    try:
        return TRIALS[trial.name](tries, trial)
    except _Failed as failed:
        error = failed.error
        at = error.at if isinstance(error, PolyverError) else ""
        text = " ".join(str(error).split())
        said = text if isinstance(error, PolyverError) else f"{type(error).__name__}: {text}"
        fact = f"it cannot be converted: {said.rstrip(': ')}"
        return TrialFailure("fails", failed.way, at, fact, Counterexample(tries.obj))


def _converted(converter: Converter, obj: Object, version: str, way: tuple[str, ...]) -> Object:
    try:
        return converter.convert(obj, version)
    except Exception as error:  # users' code may raise anything
        raise _Failed(error, way) from error


def _direct(tries: ConversionCache, trial: ConversionTrial) -> TrialFailure | None:
    """Check that a conversion does not change its input, and that its result fits its version.

    Return the failure; None if there is none.
    """
    converter, obj = tries.converter, tries.obj
    source, target = trial.way
    before = fresh(obj)
    made = tries.after(*trial.way)
    if not same(obj, before):
        return _different(
            converter,
            "law",
            trial.way,
            Counterexample(before, before, obj),
            "the conversion changes its input:",
        )
    wrong = _identity(converter, obj, made, target)
    if wrong is not None:
        path, fact = wrong
        return TrialFailure("identity", trial.way, path, fact, Counterexample(before, got=made))
    schema = converter.schemas.get(target)
    said = _called(converter, obj, made, trial.way)
    kept = fresh(said)
    pruned = schema.prune(kept) if schema is not None else []
    if pruned:
        fact = f"{target} has no such field, so an API server drops it"
        return TrialFailure(
            "pruned", trial.way, pruned[0], fact, Counterexample(before, kept, said)
        )
    return _invalid(converter, trial.way, obj, fresh(made)) if source in converter.schemas else None


def _called(converter: Converter, obj: Object, made: Object, way: tuple[str, ...]) -> Object:
    """Return the unpruned result of a user's function.

    If the conversion `way` is not a single call of a function, return the converted object `made`.
    """
    hops = converter.tree.way(*way)
    if len(hops) != 1 or not isinstance(hops[0].convert, ByFunctions):
        return made
    rest = {name: value for name, value in obj.items() if name != "apiVersion"}
    return {"apiVersion": made["apiVersion"]} | hops[0].convert.said(converter.visible(rest))


def _identity(
    converter: Converter, obj: Object, made: Object, target: str
) -> tuple[str, str] | None:
    expected = {"apiVersion": f"{converter.group}/{target}", "kind": converter.kind}
    for name, value in expected.items():
        if made.get(name) != value:
            return name, f"it is {shown(made.get(name))}, not {value}"
    metadata: Mapping[str, Any] = obj.get("metadata") or {}
    try:
        check_identity(obj, made)
        check_kept(metadata, made.get("metadata") or {})
        restored(metadata, made.get("metadata") or {})
    except PolyverError as error:
        return error.at or "metadata", error.fact
    return None


def _invalid(
    converter: Converter, way: tuple[str, ...], obj: Object, made: Object
) -> TrialFailure | None:
    """Fill in the defaults of a converted object, and check it against its version's schema.

    Return the failure; None if there is none, or if the original object was not valid either.
    """
    if way[1] not in converter.schemas or converter.schemas[way[0]].validate(obj):
        return None
    schema = converter.schemas[way[1]]
    schema.default(made)
    causes = schema.validate(made)
    if not causes:
        return None
    fact = f"{way[1]} refuses it: {causes[0].message}"
    return TrialFailure("invalid", way, causes[0].field, fact, Counterexample(obj, got=made))


def _law(tries: ConversionCache, trial: ConversionTrial) -> TrialFailure | None:
    """Return a failure if converting through another version differs from converting directly."""
    source, stop, target = trial.way
    expected = tries.after(source, target) if source != target else tries.obj
    got = tries.after(*trial.way)
    if same(expected, got):
        return None
    said, example = f"converted through {stop}", Counterexample(tries.obj, expected, got)
    return _different(tries.converter, "law", trial.way, example, said)


def _different(
    converter: Converter, rule: str, way: tuple[str, ...], example: Counterexample, said: str
) -> TrialFailure:
    path, one, other = _difference(example.expected, example.got, ())
    fact = f"{said} it is {shown_value(other)}, and should be {shown_value(one)}"
    if path == converter.keeping.path:
        fact = f"{said} other fields are preserved"
    return TrialFailure(rule, way, show_path(path), fact, example)


def _difference(one: Any, other: Any, path: tuple[str, ...]) -> tuple[tuple[str, ...], Any, Any]:
    """Return the path of the first field that differs, and its value in both objects."""
    if type(one) is dict and type(other) is dict:
        for name in sorted(one.keys() | other.keys(), key=lambda name: (name == "metadata", name)):
            before, after = one.get(name, MISSING), other.get(name, MISSING)
            if not same(before, after):
                return _difference(before, after, (*path, name))
    return path, one, other


def plain_path(path: str) -> str:
    """Return a path without the indexes of list items: `ports[].name` for `ports[0].name`."""
    return re.sub(r"\[\d+\]", "[]", path)


def shown_value(value: Any) -> str:
    """Return a value for use in a sentence."""
    if value is MISSING:
        return "absent"
    text = shown(value)
    return text if len(text) <= 60 else f"{text[:57]}..."


def _compiled(tries: ConversionCache, trial: ConversionTrial) -> TrialFailure | None:
    """Return a failure if compiled rules and the interpreter give different results.

    The results are compared for plain data and for JSON.
    """
    converter, given = tries.converter, tries.after(*trial.way[:-1])
    source, target = trial.way[-2:]
    rest = {name: fresh(value) for name, value in given.items() if name != "apiVersion"}
    got = tries.after(*trial.way)
    try:
        made = converter.interpreted(rest, source, target)
        raw = msgspec.json.decode(converter.convert_raw(encode_json(given), target))
    except Exception as error:  # users' code may raise anything
        raise _Failed(error, trial.way) from error
    expected = {**made, "apiVersion": f"{converter.group}/{target}"}
    for found, name in ((got, "compiled"), (raw, "compiled and from bytes")):
        if not same(expected, found):
            example = Counterexample(given, expected, found)
            return _different(converter, "compiled", (source, target), example, name)
    return None


def _edited(tries: ConversionCache, trial: ConversionTrial) -> TrialFailure | None:
    """Return a failure if an edit of an object is lost in a conversion to a version and back."""
    source, stop, other = trial.way
    edit = trial.edit
    assert edit is not None
    given = edited(tries.after(source, stop), edit)
    if given is None:
        return None
    there = _converted(tries.converter, given, other, trial.way)
    got = _converted(tries.converter, there, stop, (*trial.way, stop))
    expected, found = map(tries.converter.visible, (given, got))
    if not same(expected, found):
        path, one, now = _difference(expected, found, ())
        said = f"and read in {other} it is {shown_value(now)}, and should be {shown_value(one)}"
        example = Counterexample(tries.obj, expected, found, given)
        return TrialFailure(
            "edit-lost", trial.way, show_path(path), f"{_edit_of(trial)} {said}", example
        )
    return _unseen(tries, trial, given, there)


def _unseen(
    tries: ConversionCache, trial: ConversionTrial, given: Object, there: Object
) -> TrialFailure | None:
    """Return a failure if preserved fields hide an edit in another version.

    An object with preserved fields must show the edit in the other version in the same way as an
    object without them.
    """
    _, stop, other = trial.way
    edit, way = trial.edit, (*trial.way, stop)
    assert edit is not None
    converter, visible = tries.converter, tries.converter.visible
    plain = _converted(converter, visible(given), other, trial.way)
    expected, found = (
        pick(_converted(converter, visible(each), stop, way), edit.path) for each in (plain, there)
    )
    if same(_filled(expected), _filled(found)):
        return None
    said = f"{other} still has the value {shown_value(found)}, not {shown_value(expected)}"
    example = Counterexample(tries.obj, visible(plain), visible(there), given)
    return TrialFailure(
        "edit-lost", trial.way, show_path(edit.path), f"{_edit_of(trial)} {said}", example
    )


def _filled(value: Any) -> Any:
    """Return a value without empty objects, which rules leave behind when they move fields."""
    if type(value) is not dict:
        return value
    kept = {name: _filled(each) for name, each in value.items()}
    return {name: each for name, each in kept.items() if each is not MISSING} or MISSING


def _edit_of(trial: ConversionTrial) -> str:
    assert trial.edit is not None
    return f"after {show_path(trial.edit.path)} was changed in {trial.way[1]}"


def _stable(tries: ConversionCache, trial: ConversionTrial) -> TrialFailure | None:
    """Return a failure if a second round trip over an edge changes the object.

    The round trip is made without preserved fields, which would hide a change.
    """
    source, target = trial.way
    [forth] = tries.converter.tree.way(source, target)
    [back] = tries.converter.tree.way(target, source)
    whole = {name: value for name, value in tries.obj.items() if name != "apiVersion"}
    obj = tries.converter.visible(whole)
    try:
        expected = forth.convert.run(obj)
        got = forth.convert.run(back.convert.run(expected))
    except Exception as error:  # users' code may raise anything
        raise _Failed(error, (source, target, source)) from error
    if same(expected, got):
        return None
    said = f"after a round trip through {source} without preserved fields,"
    return _different(
        tries.converter,
        "unstable",
        (source, target),
        Counterexample(tries.obj, expected, got),
        said,
    )


def _repeatable(tries: ConversionCache, trial: ConversionTrial) -> TrialFailure | None:
    """Return a failure if a step of a conversion path gives two results for the same object."""
    converter = tries.converter
    obj = converter.visible({k: each for k, each in tries.obj.items() if k != "apiVersion"})
    for hop in hops_on(converter, trial.way):
        try:
            one, other = hop.convert.run(obj), hop.convert.run(obj)
        except Exception:  # users' code may raise anything; another trial reports it
            return None
        if not same(one, other):
            path, first, second = _difference(one, other, ())
            fact = f"converted twice, it is {shown_value(first)} and then {shown_value(second)}"
            example = Counterexample(tries.obj, one, other)
            edge = (hop.source, hop.target)
            return TrialFailure("not-deterministic", edge, show_path(path), fact, example)
        obj = one
    return None


def hops_on(converter: Converter, way: Sequence[str]) -> list[Hop[ConversionStep]]:
    """Return the steps of a conversion through several versions."""
    return [hop for one, other in pairwise(way) for hop in converter.tree.way(one, other)]


def edited(obj: Object, edit: Edit) -> Object | None:
    """Return a copy of an object with an edit; None if the edit is not possible."""
    made: Object = fresh(obj)
    if edit.value is MISSING:
        return made if take(made, edit.path, pinned=len(edit.path)) is not MISSING else None
    around = pick(made, edit.path[:-1])
    if type(around) is not dict or not put(made, edit.path, fresh(edit.value)):
        return None
    return made


def _defaults(tries: ConversionCache, trial: ConversionTrial) -> TrialFailure | None:
    """Return a failure if filling in defaults makes polyver discard a preserved field.

    An API server may fill in defaults between two conversions.
    """
    source, stop = trial.way
    converter, schemas = tries.converter, tries.converter.schemas
    if stop not in schemas:
        return None
    given = fresh(tries.obj)
    if source in schemas:
        schemas[source].default(given)
    there = _converted(converter, given, stop, trial.way)
    filled = fresh(there)
    schemas[stop].default(filled)
    expected = _converted(converter, there, source, trial.way)
    got = _converted(converter, filled, source, trial.way)
    for text in converter.carried(there).get(source, []):
        path = parse_path(text)
        if not same(pick(expected, path), pick(got, path)):
            said = f"with the defaults of {stop}"
            now, was = (shown_value(pick(each, path)) for each in (got, expected))
            fact = f"{said} it is {now}, and was {was}"
            return TrialFailure(
                "default-loses", trial.way, text, fact, Counterexample(given, expected, got)
            )
    return None


TRIALS: Mapping[str, Callable[[ConversionCache, ConversionTrial], TrialFailure | None]] = {
    "direct": _direct,
    "law": _law,
    "compiled": _compiled,
    "edited": _edited,
    "stable": _stable,
    "defaults": _defaults,
    "repeatable": _repeatable,
}
