"""Find fields that clients see differently with the new conversions of a kind.

polyver generates test objects from the old schemas, because existing objects follow these schemas.
The caller can also pass the existing objects of a cluster. polyver converts each object with the
old and the new conversions, and compares the results. It does this twice: for the object itself,
and for the same object after the old conversions have converted it to another version for storage.
polyver also checks if the new schemas still allow the objects that the old schemas allow.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from typing import Any

from polyver.apis.checking import (
    ConversionFinding,
    Counterexample,
    found,
    guessed,
    rule_place,
    words_of,
)
from polyver.apis.checking.schema_paths import ITEM, VALUE, Place, show
from polyver.apis.conversion.values import MISSING
from polyver.apis.trials._generated_objects import Mixer, drawn, shrunk
from polyver.apis.trials._run import CheckedKind
from polyver.apis.trials._trials import (
    ConversionCache,
    ConversionTrial,
    plain_path,
    run_trial,
    shown_value,
)
from polyver.core.plain import Object
from polyver.kube.objects.schema import Schema, compile_schema
from polyver.languages.values.strings import same

__all__ = ["BehaviourComparison", "EarlierConversions"]

_DRAWN = 40
_SHRINKING = 1000
_MOST = 40
"""The maximum number of differences that are reported for a kind.

There is a limit because it takes time to find the smallest object for each difference.
"""
_MOST_COUNTED = 1000
"""The maximum number of differences that are counted for a kind."""


@dataclass(frozen=True, slots=True)
class EarlierConversions:
    """The conversions of a kind in an earlier state of the project or the cluster."""

    versions: tuple[str, ...]
    schemas: Mapping[str, Mapping[str, Any]]
    convert: Callable[[Object, str], tuple[Object, Object]]
    """Converts an object to a version; returns the converted object in two forms.

    The first form has preserved fields, as the object is stored. The second form has none, as
    clients see the object.
    """

    @classmethod
    def of(cls, subject: CheckedKind) -> EarlierConversions:
        """Return the conversions of `subject`, a kind that was loaded in this process."""
        converter = subject.converter

        def convert(obj: Object, version: str) -> tuple[Object, Object]:
            made = converter.convert(obj, version)
            return made, converter.visible(made)

        return cls(converter.versions, subject.schemas, convert)


@dataclass(frozen=True, slots=True)
class _Way:
    """The versions through which an object is converted for one comparison.

    With `stored`, the old conversions convert the object to this version first. Then the old and
    the new conversions convert it to the version `target`.
    """

    source: str
    target: str
    stored: str = ""

    @property
    def versions(self) -> tuple[str, ...]:
        if self.source == self.target and not self.stored:
            return (self.source,)
        return (self.source, *([self.stored] if self.stored else []), self.target)


@dataclass(frozen=True, slots=True)
class _Change:
    """A difference between the old and the new conversions or schemas, in one object."""

    rule: str
    version: str
    """The version in which clients see the difference."""
    path: str
    fact: str
    example: Counterexample

    @property
    def key(self) -> tuple[str, str, str]:
        return self.rule, self.version, self.path


@dataclass(slots=True)
class _Difference:
    """All that is known about one difference: the first object that shows it, and counts."""

    way: _Way
    change: _Change
    ways: set[tuple[str, ...]] = field(default_factory=set)
    objects: int = 0
    """The number of objects of a cluster that show the difference."""
    object: str = ""


@dataclass(slots=True)
class BehaviourComparison:
    """Compares the new conversions of a kind with the old ones, and collects findings."""

    subject: CheckedKind
    """The kind with the new conversions."""
    before: EarlierConversions
    dropped: frozenset[str] = frozenset()
    """The old versions that the new conversions do not reach any more."""
    notes: list[str] = field(default_factory=list)
    """Remarks about parts that were not compared."""
    _found: dict[tuple[str, str, str], _Difference] = field(default_factory=dict)
    _old: dict[str, Schema] = field(default_factory=dict)
    _overflow: bool = False

    def __post_init__(self) -> None:
        self._old = {name: compile_schema(e) for name, e in self.before.schemas.items()}

    @property
    def versions(self) -> list[str]:
        """The versions to compare: those that both states convert, and the dropped versions."""
        now = self.subject.converter.versions
        return [each for each in self.before.versions if each in now or each in self.dropped]

    def generate(
        self, *, examples: int, seed: int, progress: Callable[[int], None] = lambda _: None
    ) -> None:
        """Compare generated objects: `examples` objects in all."""
        versions = self.versions
        objects = {each: self._mixer(each, examples, seed).objects() for each in versions}
        for number in range(examples if versions else 0):
            version = versions[number % len(versions)]
            self.look(next(objects[version]), version)
            progress(1)

    def _mixer(self, version: str, examples: int, seed: int) -> Mixer:
        converter = self.subject.converter
        known = self.before.schemas.get(version) or self.subject.schemas.get(version)
        schema = known or guessed(converter, version)
        head = {"apiVersion": f"{converter.group}/{version}", "kind": converter.kind}
        count = min(_DRAWN, -(-examples // len(self.versions)))
        objects = drawn(schema, count=count, seed=seed, head=head)
        return Mixer(schema, objects, words_of(converter), seed=seed)

    def look(
        self, obj: Object, version: str, *, stored: Sequence[str] | None = None, name: str = ""
    ) -> None:
        """Compare the conversions of one object, which has the version `version`.

        `stored` are the versions in which the object may be stored; by default, all versions.
        `name` is the namespace and name of an object of a cluster.
        """
        versions = self.versions
        others = [each for each in versions if each != version]
        ways = [_Way(version, each) for each in [version, *others]]
        stops = [each for each in others if stored is None or each in stored]
        ways += [
            _Way(version, last, stop)
            for stop, last in itertools.product(stops, versions)
            if last != stop
        ]
        counted: set[tuple[str, str, str]] = set()
        for way in ways:
            for change in self._changes(obj, way):
                self._note(obj, way, change, name if change.key not in counted else "")
                counted.add(change.key)

    def _note(self, obj: Object, way: _Way, change: _Change, name: str) -> None:
        known = self._found.get(change.key)
        if known is None and len(self._found) >= _MOST_COUNTED:
            self._overflow = True
            return
        if known is None or (not known.object and name) or _is_shorter(way, known.way):
            small = self._smallest(obj, way, change) if len(self._found) < _MOST else change
            counts = (known.ways, known.objects, known.object) if known else (set(), 0, "")
            known = self._found[change.key] = _Difference(way, small, *counts)
        known.ways.add(way.versions)
        known.objects += bool(name)
        known.object = known.object or name

    def _smallest(self, obj: Object, way: _Way, change: _Change) -> _Change:
        """Return the same difference, shown by the smallest object that polyver finds."""
        schema = self._old.get(way.source)

        def shows(small: Object) -> bool:
            if schema is not None and schema.validate(small):
                return False
            return any(each.key == change.key for each in self._changes(small, way))

        small = shrunk(obj, shows, tries=_SHRINKING)
        return next((e for e in self._changes(small, way) if e.key == change.key), change)

    def _changes(self, obj: Object, way: _Way) -> Iterator[_Change]:
        """Yield the differences between the old and the new conversions for one object.

        If the old conversions fail for this object, yield nothing.
        """
        try:
            given = self.before.convert(obj, way.stored)[0] if way.stored else obj
            was = self.before.convert(given, way.target)[1]
        except Exception:  # users' code may raise anything
            return
        gone = [each for each in (way.stored, way.source, way.target) if each in self.dropped]
        if gone:
            fact = f"{gone[0]} could be converted before, and no edge connects it any more"
            yield _Change("unconverted", gone[0], "", fact, Counterexample(obj, was))
            return
        converter = self.subject.converter
        try:
            now = converter.visible(converter.convert(given, way.target))
        except Exception as error:  # likewise
            text = " ".join(str(error).split()) or type(error).__name__
            fact = f"{_stored(way)}it could be read in {way.target} before, and now fails: {text}"
            yield _Change("view-changed", way.target, "", fact, Counterexample(obj, was))
            return
        if not same(was, now):
            yield from self._different(obj, given, was, now, way)
        if not way.stored:
            yield from self._refused(obj, was, now, way.target)

    def _different(
        self, obj: Object, given: Object, was: Object, now: Object, way: _Way
    ) -> Iterator[_Change]:
        random = self._random(given, was, way)
        if random is not None:
            yield from random
            return
        schema = self.before.schemas.get(way.target)
        example = Counterexample(obj, was, now)
        seen = set()
        for place, one, other in _differences(was, now, (), schema):
            path = show(place)
            if path not in seen:
                seen.add(path)
                fact = f"{_stored(way)}in {way.target} it was {shown_value(one)}, and is now "
                yield _Change(
                    "view-changed", way.target, path, f"{fact}{shown_value(other)}", example
                )

    def _random(self, given: Object, was: Object, way: _Way) -> list[_Change] | None:
        """Return the differences if a function is not deterministic; None if all functions are."""
        if not same(self.before.convert(given, way.target)[1], was):
            note = f"the earlier functions of {self.subject.name} are not deterministic, so parts "
            if (note := f"{note}of their results are not compared") not in self.notes:
                self.notes.append(note)
            return []
        converter = self.subject.converter
        if not converter.calls_functions:
            return None
        trial = ConversionTrial("repeatable", (way.stored or way.source, way.target))
        failure = run_trial(ConversionCache(converter, given), trial)
        if failure is None:
            return None
        path = plain_path(failure.path)
        return [_Change(failure.rule, failure.way[-1], path, failure.fact, failure.example)]

    def _refused(self, obj: Object, was: Object, now: Object, version: str) -> Iterator[_Change]:
        """Yield the fields for which the new schema refuses an object that the old one allowed."""
        old, new = self._old.get(version), self.subject.converter.schemas.get(version)
        if old is None or new is None or not (causes := new.validate(now)) or old.validate(was):
            return
        for cause in causes:
            fact = f"{version} now refuses an object that it allowed before: {cause.message}"
            example = Counterexample(obj, got=now)
            yield _Change("refused", version, plain_path(cause.field), fact, example)

    def findings(self) -> Iterator[ConversionFinding]:
        """Yield a finding for each difference, with the smallest object that shows it."""
        if len(self._found) > _MOST or self._overflow:
            most = f"more than {_MOST_COUNTED}" if self._overflow else str(len(self._found))
            note = f"{self.subject.name} has {most} differences; only {_MOST} are reported"
            self.notes.append(note)
        worst = sorted(self._found.values(), key=lambda each: -each.objects)
        yield from map(self._finding, worst[:_MOST])

    def _finding(self, each: _Difference) -> ConversionFinding:
        change, name = each.change, self.subject.name
        more = len(each.ways) - 1
        also = f" (and on {more} more path{'s' * (more > 1)})" if more else ""
        versions = each.way.versions
        made = found(change.rule, name, change.fact + also, versions=versions, path=change.path)
        return replace(
            made,
            place=self._place(each.way, change) or self.subject.place,
            example=change.example,
            objects=each.objects,
            object=each.object,
        )

    def _place(self, way: _Way, change: _Change) -> str:
        """Return the file and line of the rule that causes a difference; "" if no rule does.

        It is in the first step of the conversion path whose result differs.
        """
        converter, obj = self.subject.converter, change.example.given
        if change.rule == "refused" or self.dropped & {*way.versions}:
            return ""
        with suppress(
            Exception
        ):  # users' code may raise anything, and old conversions lack versions
            given = self.before.convert(obj, way.stored)[0] if way.stored else obj
            for hop in converter.tree.way(way.stored or way.source, way.target):
                was = self.before.convert(given, hop.target)[1]
                now = converter.visible(converter.convert(given, hop.target))
                schema = self.before.schemas.get(hop.target)
                if found := next(_differences(was, now, (), schema), None):
                    ends = (hop.source, hop.target)
                    return rule_place(converter, ends, show(found[0]), hop.target)
        return rule_place(converter, way.versions, change.path, change.version)


def _is_shorter(way: _Way, other: _Way) -> bool:
    return len(way.versions) < len(other.versions)


def _stored(way: _Way) -> str:
    return f"stored in {way.stored} before, " if way.stored else ""


def _differences(
    one: Any, other: Any, place: Place, schema: Mapping[str, Any] | None
) -> Iterator[tuple[Place, Any, Any]]:
    """Yield each field that differs between two objects: its path and its two values.

    For a list, compare the items if both lists have the same length. The path of a value in a map
    does not name its key, so that all values of the map are one field.
    """
    if same(one, other):
        return
    inside = schema or {}
    if type(one) is dict and type(other) is dict:
        fields, others = inside.get("properties") or {}, inside.get("additionalProperties")
        for name in sorted(one.keys() | other.keys()):
            before, after = one.get(name, MISSING), other.get(name, MISSING)
            is_key = name not in fields and bool(others)
            below = others if is_key and isinstance(others, Mapping) else fields.get(name)
            yield from _differences(before, after, (*place, VALUE if is_key else name), below)
        return
    if type(one) is list and type(other) is list and len(one) == len(other):
        for before, after in zip(one, other, strict=True):
            yield from _differences(before, after, (*place, ITEM), inside.get("items"))
        return
    yield place, one, other
