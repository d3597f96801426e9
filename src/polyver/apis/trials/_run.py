"""Run trials of a kind's conversions with many objects, and report the findings."""

from __future__ import annotations

import itertools
import random
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from polyver.apis.checking import (
    RULES,
    ConversionFinding,
    Ledger,
    Observed,
    acknowledged,
    edits_lose,
    fitting,
    guessed,
    ledger,
    list_edit_finding,
    ranked,
    rule_place,
    words_of,
)
from polyver.apis.checking.schema_paths import schema_at
from polyver.apis.conversion import Converter
from polyver.apis.conversion.completeness import Completeness
from polyver.apis.conversion.hops import ByFunctions, calls_functions
from polyver.apis.conversion.paths import pick
from polyver.apis.conversion.values import MISSING
from polyver.apis.declaring import Kind
from polyver.apis.trials._generated_objects import Mixer, drawn, shrunk
from polyver.apis.trials._trials import (
    ConversionCache,
    ConversionTrial,
    Edit,
    TrialFailure,
    edited,
    hops_on,
    plain_path,
    run_trial,
)
from polyver.core.plain import Object
from polyver.kube.objects.converted_metadata import fresh
from polyver.kube.objects.schema import Schema
from polyver.languages.values.strings import same

__all__ = ["CheckedKind", "ConversionCheckResult", "Progress", "check"]

Progress = Callable[[int], None]
_DRAWN = 40
"""The maximum number of objects that Hypothesis generates for a version.

All other objects are mixed from the values of these objects.
"""

_THOROUGH = 600
"""The number of objects that are tried on every conversion path.

Each later object is tried on one random path.
"""
_EDITS = 4
_SLOW = ("compiled", "edited", "defaults")
_RANDOM = "not-deterministic"
_UNTOLD = ("law", "edit-lost", "default-loses", "compiled", "unstable")
"""The findings that mean nothing if a function of the conversion path is not deterministic."""


@dataclass(frozen=True, slots=True)
class CheckedKind:
    """A kind with several versions, and its converter."""

    converter: Converter
    schemas: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    """The openAPIV3Schema of each version that has one."""
    name: str = ""
    place: str = ""
    completeness: Completeness = field(default_factory=Completeness)

    @classmethod
    def of(cls, kind: Kind | Converter | CheckedKind) -> CheckedKind:
        """Build a CheckedKind from a kind or a converter.

        With a converter, there are no schemas to check.
        """
        if isinstance(kind, CheckedKind):
            return kind
        if isinstance(kind, Converter):
            return cls(kind, name=f"{kind.kind} of {kind.group}")
        definition, converter = kind.definition(), kind.converter
        if converter is None:
            names = [version.name for version in definition.versions]
            converter = Converter(definition.group, definition.kind, names[:1], [])
        schemas = {
            version.name: _without(version.schema, kind.carry)
            for version in definition.versions
            if version.schema is not None
        }
        return cls(converter, schemas, definition.name, kind.place, kind.completeness)


def _without(schema: Mapping[str, Any], name: str) -> Mapping[str, Any]:
    """Return a schema without the field that is reserved for preserved fields."""
    fields = {each: value for each, value in schema.get("properties", {}).items() if each != name}
    return {**schema, "properties": fields} if name else schema


@dataclass(frozen=True, slots=True)
class ConversionCheckResult:
    """The result of a check of a kind's conversions."""

    findings: tuple[ConversionFinding, ...]
    ledgers: tuple[Ledger, ...]
    objects: int
    """The number of objects that were tried."""
    seed: int


def check(
    kind: Any, *, examples: int = 500, seed: int = 0, progress: Progress = lambda _: None
) -> ConversionCheckResult:
    """Check a kind or a converter, with its schemas and with generated objects.

    The result has a finding for each rule that does not fit the schemas, and for each property of
    conversions that a generated object violates. `progress` is called with the number of objects
    that were tried since its last call.
    """
    subject = CheckedKind.of(kind)
    run = _Run(subject, seed)
    if examples and len(subject.converter.versions) > 1:
        run.draw(examples)
        run.try_all(examples, progress)
    about = (subject.converter, subject.schemas, subject.name)
    lists = [*edits_lose(*about), *run.list_edits()]
    ledgers = [*run.ledgers()]
    observed = [each for each in ledgers if each.observed]
    named = acknowledged(*about, subject.completeness, lists=lists, observed=observed)
    findings = [*fitting(*about), *run.findings(), *named]
    placed = [each if each.place else replace(each, place=subject.place) for each in findings]
    return ConversionCheckResult(tuple(ranked(placed)), tuple(ledgers), run.tried, seed)


@dataclass(slots=True)
class _Run:
    """Runs one check: generates objects, runs trials, and collects failures."""

    subject: CheckedKind
    seed: int
    tried: int = 0
    mixers: dict[str, Mixer] = field(default_factory=dict)
    schemas: dict[str, Mapping[str, Any]] = field(default_factory=dict)
    broken: dict[tuple[str, tuple[str, ...]], tuple[ConversionTrial, TrialFailure]] = field(
        default_factory=dict
    )
    observed: dict[tuple[str, str], Observed] = field(default_factory=dict)

    def draw(self, examples: int) -> None:
        converter = self.subject.converter
        words = words_of(converter)
        for version in converter.versions:
            schema = self.subject.schemas.get(version) or guessed(converter, version)
            self.schemas[version] = schema
            head = {"apiVersion": f"{converter.group}/{version}", "kind": converter.kind}
            count = min(_DRAWN, -(-examples // len(converter.versions)))
            objects = drawn(schema, count=count, seed=self.seed, head=head)
            self.mixers[version] = Mixer(schema, objects, words, seed=self.seed)
        for pair in itertools.permutations(converter.versions, 2):
            if ledger(converter, self.subject.schemas, *pair) is None:
                self.observed[pair] = Observed(converter, *pair, self.schemas[pair[0]])

    def try_all(self, examples: int, progress: Progress) -> None:
        chance = random.Random(self.seed)  # noqa: S311 - to be the same each time
        versions = self.subject.converter.versions
        sources = {version: self.mixers[version].objects() for version in versions}
        for number in range(examples):
            version = versions[number % len(versions)]
            self._try(version, next(sources[version]), chance)
            self.tried += 1
            progress(1)

    def _try(self, version: str, obj: Object, chance: random.Random) -> None:
        tries = ConversionCache(self.subject.converter, obj)
        for trial in self._trials(version, tries, chance):
            broken = run_trial(tries, trial)
            if broken is not None:
                self._note(trial, broken, obj)
        for (source, target), seen in self.observed.items():
            if source == version and self.tried < 5000:
                made = tries.reached(source, target)
                if made is not None:
                    seen.see(obj, made)

    def _trials(
        self, version: str, tries: ConversionCache, chance: random.Random
    ) -> Iterator[ConversionTrial]:
        """Yield the trials to run with one object, whose version is `version`.

        The first objects are tried on all conversion paths, each later object on one random path.
        """
        versions = tries.converter.versions
        others = [each for each in versions if each != version]
        stop = chance.choice(others)
        back = chance.choice([each for each in versions if each != stop])
        if self.tried >= _THOROUGH:
            yield ConversionTrial("direct", (version, stop))
            yield ConversionTrial("law", (version, stop, back))
            yield from self._edges(version, tries)
            yield from self._slow(chance.choice(_SLOW), (version, stop, back), tries, chance)
            return
        for target in others:
            yield ConversionTrial("direct", (version, target))
        for each in others:
            yield from (
                ConversionTrial("law", (version, each, last)) for last in versions if last != each
            )
        yield from self._edges(version, tries)
        for name in _SLOW:
            yield from self._slow(name, (version, stop, back), tries, chance)

    def _edges(self, version: str, tries: ConversionCache) -> Iterator[ConversionTrial]:
        """Yield trials of functions for each edge of `version` that has functions.

        The properties are that a function returns the same result for the same object, and that a
        second round trip over the edge changes nothing. Rules need no trial of the second property.
        """
        for edge in tries.converter.tree.edges:
            ends = (edge.source, edge.target)
            way = ends if version == edge.source else ends[::-1]
            if version in ends and edge.forward and calls_functions(edge.forward):
                yield ConversionTrial("repeatable", way)
            if version in ends and isinstance(edge.forward, ByFunctions):
                yield ConversionTrial("stable", way)

    def _slow(
        self, name: str, way: tuple[str, str, str], tries: ConversionCache, chance: random.Random
    ) -> Iterator[ConversionTrial]:
        """Yield the trials of the type `name`, such as `edited`, for one conversion path.

        These types of trials are slow, so they are run on few paths.
        """
        version, stop, _ = way
        if name == "compiled":
            yield ConversionTrial(name, (version, stop))
            yield ConversionTrial(name, way)
        elif name == "defaults":
            yield ConversionTrial(name, (version, stop))
        elif (there := tries.reached(version, stop)) is not None:
            several = _EDITS if self.tried < _THOROUGH else 1
            for edit in self._edits(there, stop, chance, most=several):
                yield ConversionTrial(name, way, edit)

    def _edits(
        self, obj: Object, version: str, chance: random.Random, *, most: int
    ) -> Iterator[Edit]:
        """Yield edits of one field each, mostly of fields that the object already has.

        The schema of the version allows the object after each of these edits.
        """
        schema = self.schemas[version]
        known = [path for path in _paths(schema, ()) if pick(obj, path[:-1]) is not MISSING]
        chance.shuffle(known)
        if chance.random() < 0.7:
            known.sort(key=lambda path: pick(obj, path) is MISSING)
        for path in known[:most]:
            place = schema_at(schema, path) or {}
            gone = chance.random() < 0.2
            edit = Edit(path, MISSING if gone else self.mixers[version].value(path, place))
            if self._is_allowed(obj, edit, version):
                yield edit

    def _is_allowed(self, obj: Object, edit: Edit, version: str) -> bool:
        made = edited(obj, edit)
        schema = self.subject.converter.schemas.get(version)
        # If an API server sets the removed field to its default again, the edit changes nothing.
        if made is None or same(*(_filled_in(each, schema) for each in (made, obj))):
            return False
        return schema is None or not schema.validate(made)

    # Failures

    def _note(self, trial: ConversionTrial, broken: TrialFailure, obj: Object) -> None:
        key = (broken.rule, broken.way if broken.rule != "invalid" else (*broken.way, broken.path))
        if key in self.broken or self._may_be_random(broken):
            return
        if self.subject.converter.calls_functions and broken.rule in _UNTOLD:
            trial, broken = self._cause(trial, broken, obj)
            key = (broken.rule, broken.way)
        small, trial = self._smallest(trial, broken, obj)
        again = run_trial(ConversionCache(self.subject.converter, small), trial)
        is_same = again is not None and again.rule == broken.rule
        self.broken[key] = (trial, again if again is not None and is_same else broken)

    def _cause(
        self, trial: ConversionTrial, broken: TrialFailure, obj: Object
    ) -> tuple[ConversionTrial, TrialFailure]:
        """If the cause of a failure is a function that is not deterministic, return this failure.

        Otherwise, return the failure itself, with its trial.
        """
        converter = self.subject.converter
        again = ConversionTrial("repeatable", broken.way)
        found = run_trial(ConversionCache(converter, obj), again)
        if found is not None:
            return again, found
        if run_trial(ConversionCache(converter, obj), trial) is not None:
            return trial, broken
        fact = "converted again in the same way, the result is another one"
        return trial, replace(broken, rule="not-deterministic", fact=fact)

    def _may_be_random(self, broken: TrialFailure) -> bool:
        """Report whether a failure may come from a function that is not deterministic."""
        random = [{*each.way} for _, each in self.broken.values() if each.rule == _RANDOM]
        hops = hops_on(self.subject.converter, broken.way) if random else []
        return broken.rule in _UNTOLD and any({hop.source, hop.target} in random for hop in hops)

    def _smallest(
        self, trial: ConversionTrial, broken: TrialFailure, obj: Object
    ) -> tuple[Object, ConversionTrial]:
        """Find the smallest object and edit for which a trial still fails in the same way."""
        schema = self.subject.converter.schemas.get(trial.way[0])
        must_fit = schema is not None and not schema.validate(obj)

        def shows(trial: ConversionTrial, obj: Object) -> bool:
            if must_fit and schema is not None and schema.validate(obj):
                return False
            found = run_trial(ConversionCache(self.subject.converter, obj), trial)
            return found is not None and _sort(found) == _sort(broken)

        small = shrunk(obj, lambda each: shows(trial, each))
        edit = trial.edit
        if edit is None or edit.value is MISSING:
            return small, trial

        def with_value(value: Any) -> ConversionTrial:
            return replace(trial, edit=Edit(edit.path, value))

        def shows_edit(value: Any) -> bool:
            there = ConversionCache(self.subject.converter, small).after(*trial.way[:2])
            allowed = self._is_allowed(there, Edit(edit.path, value), trial.way[1])
            return allowed and shows(with_value(value), small)

        best = shrunk({"": edit.value}, lambda each: "" in each and shows_edit(each[""]))
        return small, with_value(best[""])

    def findings(self) -> Iterator[ConversionFinding]:
        """Yield one finding for each field and each check rule that it violates.

        If a field fails on several conversion paths, the finding names the shortest of them.
        """
        grouped: dict[tuple[str, str], list[TrialFailure]] = {}
        for broken in [each for _, each in self.broken.values() if not self._may_be_random(each)]:
            grouped.setdefault((broken.rule, plain_path(broken.path)), []).append(broken)
        for (rule, path), several in grouped.items():
            first = min(several, key=lambda each: (len(each.way), len(str(each.example.given))))
            known = RULES[rule]
            more = len({each.way for each in several}) - 1
            ways = f" (and on {more} more path{'s' * (more > 1)})" if more else ""
            yield ConversionFinding(
                self.subject.name,
                rule,
                known.severity,
                f"{first.fact}{ways}",
                known.advice,
                first.way,
                path,
                rule_place(self.subject.converter, first.way, path, first.at),
                example=first.example,
            )

    def list_edits(self) -> Iterator[ConversionFinding]:
        """Yield a finding for each list whose items lose fields that functions do not return."""
        for pair, seen in self.observed.items():
            if len(hops_on(self.subject.converter, pair)) > 1:
                continue  # the findings of the neighbouring versions name the list
            for at, parts in seen.edited_lists.items():
                finding = list_edit_finding(self.subject.name, pair, at, sorted(parts))
                place = rule_place(self.subject.converter, pair, at, pair[0])
                yield replace(finding, place=place)

    def ledgers(self) -> Iterator[Ledger]:
        converter, schemas = self.subject.converter, self.subject.schemas
        for pair in itertools.permutations(converter.versions, 2):
            read = ledger(converter, schemas, *pair)
            if read is not None:
                yield read
            elif pair in self.observed:
                yield self.observed[pair].ledger()


def _sort(broken: TrialFailure) -> tuple[str, ...]:
    """Return the key of a failure. Two failures with equal keys count as the same failure."""
    same_path = (plain_path(broken.path),) if broken.rule == "invalid" else ()
    return (broken.rule, *broken.way, *same_path)


def _paths(schema: Mapping[str, Any], path: tuple[str, ...]) -> Iterator[tuple[str, ...]]:
    """Yield the paths of fields that a client may change."""
    for name, each in (schema.get("properties") or {}).items():
        if not path and name in ("apiVersion", "kind", "metadata"):
            continue
        if path:
            yield (*path, name)
        yield from _paths(each, (*path, name))


def _filled_in(obj: Object, schema: Schema | None) -> Object:
    """Return an object with the defaults of its version filled in; unchanged without a schema."""
    if schema is None:
        return obj
    filled: Object = fresh(obj)
    schema.default(filled)
    return filled
