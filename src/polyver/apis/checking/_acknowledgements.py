"""Compare the fields that polyver preserves with the fields that the author of a kind has named.

A rule that reads a field and writes no other, such as `drop`, names the field, too.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace

from polyver.apis.checking._findings import ConversionFinding, found
from polyver.apis.checking._ledger import Ledger, trace
from polyver.apis.checking._list_edits import edits_lose, rule_at
from polyver.apis.checking.schema_paths import Place, places, schema_at, show
from polyver.apis.conversion import Converter, DeclaredConversion
from polyver.apis.conversion.completeness import Completeness, covers
from polyver.apis.conversion.hops import ByFunctions, ByRules, ConversionStep
from polyver.core import Hop
from polyver.core.plain import Schema

__all__ = ["acknowledged", "check_acknowledged"]


def check_acknowledged(
    declared: DeclaredConversion, converter: Converter, schemas: Mapping[str, Schema], kind: str
) -> None:
    """Raise an error if a Conversion must name each preserved field, and does not name one."""
    if not declared.completeness.required:
        return
    lists = edits_lose(converter, schemas, kind)
    for each in acknowledged(converter, schemas, kind, declared.completeness, lists=lists):
        if each.rule == "unacknowledged":
            fact = f"{each.path} of {each.versions[0]}: {each.fact}" if each.path else each.fact
            hint = "convert it, or name it in a rule drop or add, or in spec.preserved"
            raise declared.error(fact, "spec", "completeness", hint=hint)


def acknowledged(
    converter: Converter,
    schemas: Mapping[str, Schema],
    kind: str,
    decided: Completeness,
    *,
    lists: Iterable[ConversionFinding],
    observed: Iterable[Ledger] = (),
) -> Iterator[ConversionFinding]:
    """Yield a finding for each preserved field that nobody has named, and for each outdated name.

    `lists` are the findings about lists in which edits lose data; those that nobody has named are
    yielded, too. `observed` are the ledgers of conversion functions.
    """
    run = _Decisions(converter, schemas, kind, decided, [*observed])
    lost, edited = [*run.preserved()], [*lists]
    if decided.required:
        yield from run.unnamed(lost)
    for each in edited:
        if each.path not in decided.names(each.versions[0]).edits_lose:
            yield (
                replace(run.refused(each.fact, each.versions, each.path), place=each.place)
                if (decided.required)
                else each
            )
    yield from run.outdated(lost, edited)


@dataclass(frozen=True, slots=True)
class _Preserved:
    """A field of the version `source` that the neighbouring version `target` cannot express."""

    source: str
    target: str
    path: str
    is_named: bool
    """True if a rule of the user names the field."""
    place: str


@dataclass(frozen=True, slots=True)
class _Decisions:
    """The decisions about preserved fields of a kind, and its conversions."""

    converter: Converter
    schemas: Mapping[str, Schema]
    kind: str
    decided: Completeness
    observed: list[Ledger]

    def preserved(self) -> Iterator[_Preserved]:
        for edge in self.converter.tree.edges:
            for source, target in ((edge.source, edge.target), (edge.target, edge.source)):
                [hop] = self.converter.tree.way(source, target)
                if isinstance(hop.convert, ByRules) and source in self.schemas:
                    yield from self._by_rules(hop, hop.convert)
                elif isinstance(hop.convert, ByFunctions):
                    yield from self._by_functions(hop, hop.convert)

    def _by_rules(self, hop: Hop[ConversionStep], rules: ByRules) -> Iterator[_Preserved]:
        schema = self.schemas[hop.source]
        for place in places(schema, leaves=True):
            stops = trace(rules, place, hop.target, schema_at(schema, place))
            if all(each.carried for each in stops):
                named = _is_named(rules, place)
                yield _Preserved(hop.source, hop.target, show(place), named, rules.place)

    def _by_functions(
        self, hop: Hop[ConversionStep], function: ByFunctions
    ) -> Iterator[_Preserved]:
        pair = (hop.source, hop.target)
        for ledger in [each for each in self.observed if (each.source, each.target) == pair]:
            for fate in ledger.fates:
                if fate.how == "carried":
                    yield _Preserved(*pair, fate.path, False, function.place)

    def unnamed(self, lost: Iterable[_Preserved]) -> Iterator[ConversionFinding]:
        for version in self.converter.versions:
            if version not in self.schemas:
                fact = f"{version} has no schema, so polyver cannot determine its preserved fields"
                yield self.refused(fact, (version,), "")
        for each in lost:
            names = self.decided.names(each.source).fields
            if not each.is_named and not any(covers(name, each.path) for name in names):
                fact = f"{each.target} cannot express it, and nobody has decided to preserve it"
                finding = self.refused(fact, (each.source, each.target), each.path)
                yield replace(finding, place=each.place)

    def refused(self, fact: str, versions: tuple[str, ...], path: str) -> ConversionFinding:
        return found("unacknowledged", self.kind, fact, versions=versions, path=path)

    def outdated(
        self, lost: list[_Preserved], edited: list[ConversionFinding]
    ) -> Iterator[ConversionFinding]:
        """Yield a finding for each name that stands for no preserved field."""
        for version, names in self.decided.preserved.items():
            if version not in self.schemas or self._calls_functions(version):
                continue  # the preserved fields are not known exactly
            kept = [each.path for each in lost if each.source == version]
            lists = [each.path for each in edited if each.versions[0] == version]
            unused = [e for e in names.fields if not any(covers(e, path) for path in kept)]
            for path in (*unused, *(each for each in names.edits_lose if each not in lists)):
                fact = f"{version} has no such field, or every version can express it"
                made = found("outdated-name", self.kind, fact, versions=(version,), path=path)
                yield replace(made, place=names.place)

    def _calls_functions(self, version: str) -> bool:
        edges = [e for e in self.converter.tree.edges if version in (e.source, e.target)]
        return any(isinstance(each.forward, ByFunctions) for each in edges)


def _is_named(rules: ByRules, place: Place) -> bool:
    """Report whether a rule of the user reads a field and writes no other."""
    covering = rule_at(rules.block, place, back=rules.back)
    if covering is None:
        return False
    rule, back = covering
    return bool(rule.place) and not rule.ports(back=back)[1]
