"""Find fields that clients see differently with the new conversions of a kind.

polyver generates test objects from the old schemas, because existing objects follow these schemas.
It converts each object with the old and the new conversions, and compares the results. It does this
twice: for the object itself, and for the same object after the old conversions have converted it to
another version for storage.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from polyver.apis.checking import RULES, ConversionFinding, Counterexample, guessed, words_of
from polyver.apis.conversion.paths import show_path
from polyver.apis.conversion.values import MISSING
from polyver.apis.trials._generated_objects import Mixer, drawn, shrunk
from polyver.apis.trials._run import CheckedKind
from polyver.apis.trials._trials import plain_path, shown_value
from polyver.core.plain import Object
from polyver.kube.objects.schema import Schema, compile_schema
from polyver.languages.values.strings import same

__all__ = ["EarlierConversions", "compare_behaviour"]

_DRAWN = 40
_SHRINKING = 1000
_MOST = 40
"""The maximum number of differences that are reported for a kind.

There is a limit because it takes time to find the smallest object for each difference.
"""


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
        return (self.source, *([self.stored] if self.stored else []), self.target)


@dataclass(frozen=True, slots=True)
class _Change:
    """One field that clients see differently with the new conversions, in one object."""

    path: str
    was: Any
    now: Any
    example: Counterexample


def compare_behaviour(
    subject: CheckedKind,
    before: EarlierConversions,
    *,
    examples: int,
    seed: int,
    progress: Callable[[int], None] = lambda _: None,
) -> Iterator[ConversionFinding]:
    """Yield a finding for each field whose value is different with the new conversions.

    `subject` has the new conversions, and `before` the old ones. Each finding has the smallest
    object that shows the difference.
    """
    versions = [each for each in subject.converter.versions if each in before.versions]
    if len(versions) < 2 or not examples:
        return
    run = _Run(subject, before)
    mixers = {each: _mixer(subject, before, each, examples, seed).objects() for each in versions}
    for number in range(examples):
        version = versions[number % len(versions)]
        run.look(next(mixers[version]), version, versions)
        progress(1)
    yield from run.findings()


def _mixer(
    subject: CheckedKind, before: EarlierConversions, version: str, examples: int, seed: int
) -> Mixer:
    converter = subject.converter
    known = before.schemas.get(version) or subject.schemas.get(version)
    schema = known or guessed(converter, version)
    head = {"apiVersion": f"{converter.group}/{version}", "kind": converter.kind}
    count = min(_DRAWN, -(-examples // len(converter.versions)))
    objects = drawn(schema, count=count, seed=seed, head=head)
    return Mixer(schema, objects, words_of(converter), seed=seed)


@dataclass(slots=True)
class _Run:
    """Runs the comparison of one kind, and collects findings."""

    subject: CheckedKind
    before: EarlierConversions
    found: dict[tuple[str, str], tuple[_Way, _Change]] = field(default_factory=dict)
    """The findings, by the version that was compared and the path of the field."""
    ways: dict[tuple[str, str], set[tuple[str, ...]]] = field(default_factory=dict)
    compiled: dict[str, Schema] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.compiled = {name: compile_schema(e) for name, e in self.before.schemas.items()}

    def look(self, obj: Object, version: str, versions: list[str]) -> None:
        others = [each for each in versions if each != version]
        ways = [_Way(version, each) for each in others]
        stops = itertools.product(others, versions)
        ways += [_Way(version, last, stop) for stop, last in stops if last != stop]
        for way in ways:
            for change in self._changes(obj, way):
                self._note(obj, way, change)

    def _note(self, obj: Object, way: _Way, change: _Change) -> None:
        key = (way.target, change.path)
        self.ways.setdefault(key, set()).add(way.versions)
        known = self.found.get(key)
        if known is not None and len(known[0].versions) <= len(way.versions):
            return
        if known is None and len(self.found) >= _MOST:
            return
        small = shrunk(obj, lambda each: self._shows(each, way, change), tries=_SHRINKING)
        again = [e for e in self._changes(small, way) if e.path == change.path]
        self.found[key] = (way, again[0] if again else change)

    def _shows(self, obj: Object, way: _Way, change: _Change) -> bool:
        schema = self.compiled.get(way.source)
        if schema is not None and schema.validate(obj):
            return False
        return any(each.path == change.path for each in self._changes(obj, way))

    def _changes(self, obj: Object, way: _Way) -> Iterator[_Change]:
        """Yield each field of an object that clients see differently with the new conversions.

        If the old conversions fail for this object, yield nothing. If only the new ones fail, yield
        one change with an empty path.
        """
        try:
            given = self.before.convert(obj, way.stored)[0] if way.stored else obj
            was = self.before.convert(given, way.target)[1]
        except Exception:  # users' code may raise anything
            return
        converter = self.subject.converter
        try:
            now = converter.visible(converter.convert(given, way.target))
        except Exception as error:  # likewise
            text = " ".join(str(error).split()) or type(error).__name__
            yield _Change("", MISSING, text, Counterexample(obj, was))
            return
        for path, one, other in _differences(was, now, ()):
            yield _Change(plain_path(show_path(path)), one, other, Counterexample(obj, was, now))

    def findings(self) -> Iterator[ConversionFinding]:
        rule = RULES["view-changed"]
        for key, (way, change) in self.found.items():
            more = len(self.ways[key]) - 1
            where = f"stored in {way.stored} before, " if way.stored else ""
            was, now = shown_value(change.was), shown_value(change.now)
            fact = f"{where}in {way.target} it was {was}, and is now {now}"
            if not change.path:
                fact = (
                    f"{where}it could be read in {way.target} before, and now fails: {change.now}"
                )
            also = f" (and on {more} more path{'s' * (more > 1)})" if more else ""
            yield ConversionFinding(
                self.subject.name,
                rule.name,
                rule.severity,
                f"{fact}{also}",
                rule.advice,
                way.versions,
                change.path,
                self.subject.place,
                change.example,
            )


def _differences(
    one: Any, other: Any, path: tuple[str, ...]
) -> Iterator[tuple[tuple[str, ...], Any, Any]]:
    """Yield each field that differs between two objects: its path and its two values."""
    if same(one, other):
        return
    if type(one) is dict and type(other) is dict:
        for name in sorted(one.keys() | other.keys()):
            before, after = one.get(name, MISSING), other.get(name, MISSING)
            yield from _differences(before, after, (*path, name))
        return
    yield path, one, other
