"""Choose the pairs of versions to connect, and draft the rules of each pair."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

from polyver.apis.checking import ConversionFinding, fitting
from polyver.apis.compatibility import FindingSeverity
from polyver.apis.conversion import Converter, build_converter, read_conversion
from polyver.apis.conversion.paths import Path, show_path
from polyver.apis.definition import Definition
from polyver.apis.suggesting._drafting import SuggestedRule, draft_rules
from polyver.apis.suggesting._fields import SchemaField, fields_of
from polyver.core.plain import Schema
from polyver.kube.objects import encode_json, load_manifests

__all__ = ["SuggestedConversion", "SuggestedEdge", "suggest"]


@dataclass(frozen=True, slots=True)
class SuggestedEdge:
    """Two versions and the drafted rules between them."""

    source: str
    target: str
    rules: tuple[SuggestedRule, ...]

    def as_data(self) -> dict[str, Any]:
        rules = [each.as_data() for each in self.rules]
        return {"from": self.source, "to": self.target} | ({"rules": rules} if rules else {})


@dataclass(frozen=True, slots=True)
class SuggestedConversion:
    """A drafted Conversion of a kind."""

    definition: Definition
    versions: tuple[str, ...]
    """The versions, the older ones first."""
    edges: tuple[SuggestedEdge, ...]

    def as_data(self) -> dict[str, Any]:
        """Return the Conversion as a manifest."""
        spec = {
            "group": self.definition.group,
            "kind": self.definition.kind,
            "versions": list(self.versions),
            "edges": [each.as_data() for each in self.edges],
        }
        return {
            "apiVersion": "polyver.dev/v1alpha1",
            "kind": "Conversion",
            "metadata": {"name": self.definition.name},
            "spec": spec,
        }

    @property
    def schemas(self) -> dict[str, Schema]:
        """The schema of each version."""
        return {each.name: each.schema or {} for each in self.definition.versions}

    def converter(self) -> Converter:
        """Build the converter of the drafted Conversion."""
        [document] = load_manifests(encode_json(self.as_data()).decode(), self.definition.name)
        return build_converter(read_conversion(document), self.definition)

    def without(self, findings: Iterable[ConversionFinding]) -> SuggestedConversion:
        """Return the Conversion without the rules that breaking findings are about.

        The fields of these rules are listed as preserved. If no rule has the field of a finding,
        all rules of its versions are replaced.
        """
        made = self
        for each in _breaking(findings):
            edges = tuple(_without(edge, each) for edge in made.edges)
            made = replace(made, edges=edges)
        return made


def suggest(
    definition: Definition, versions: Sequence[str], *, minimum: float = 0.6
) -> SuggestedConversion:
    """Draft the Conversion of a kind. `versions` are its versions, the older ones first.

    `minimum` is the least confidence of a rule. The drafted rules fit the schemas: rules for which
    `fitting` has a breaking finding are left out.
    """
    schemas = {each.name: each.schema or {} for each in definition.versions}
    pairs = _tree([(name, schemas[name]) for name in versions])
    edges = tuple(_edge(schemas, pair, minimum) for pair in pairs)
    made = SuggestedConversion(definition, tuple(versions), edges)
    for _ in range(_MOST_REPAIRS):
        findings = [*_breaking(fitting(made.converter(), schemas, definition.name))]
        if not findings:
            break
        made = made.without(findings)
    return made


_MOST_REPAIRS: Final = 8


def _breaking(findings: Iterable[ConversionFinding]) -> Iterator[ConversionFinding]:
    return (each for each in findings if each.severity is FindingSeverity.BREAKING)


# The tree of versions.


def _tree(versions: Sequence[tuple[str, Schema]]) -> Iterator[tuple[str, str]]:
    """Yield pairs of versions that connect all versions: each is connected to the most similar one.

    In each pair, the older version is the first.
    """
    names = [name for name, _ in versions]
    paths = {name: frozenset(_paths(fields_of(schema, root=True))) for name, schema in versions}
    connected, left = names[:1], names[1:]
    while left:
        _, one, other = max(
            (_overlap(paths[names[i]], paths[names[j]]), i, -j)
            for i, j in ((names.index(a), names.index(b)) for a in connected for b in left)
        )
        added = names[-other]
        yield (names[one], added) if one < -other else (added, names[one])
        connected.append(added)
        left.remove(added)


def _paths(fields: Iterable[SchemaField]) -> Iterator[str]:
    for top in fields:
        for each in top.within():
            yield f"{each}:{each.shape}"
            yield from (f"{each}{inner}" for inner in each.features if not each.children)


def _overlap(one: frozenset[str], other: frozenset[str]) -> float:
    total = len(one | other)
    return len(one & other) / total if total else 1.0


# The direction of an edge. Some rules, such as `wrap`, exist in one direction only.


def _edge(schemas: dict[str, Schema], pair: tuple[str, str], minimum: float) -> SuggestedEdge:
    there, back = (
        SuggestedEdge(
            *names, draft_rules(schemas[names[0]], schemas[names[1]], names, minimum=minimum)
        )
        for names in (pair, pair[::-1])
    )
    return back if _gain(back) > _gain(there) + _CLEARLY else there


_CLEARLY: Final = 0.5


def _gain(edge: SuggestedEdge) -> float:
    found = [each for rule in edge.rules for each in rule.all() if not each.preserves]
    return sum(each.confidence for each in found if each.name not in ("each", "within"))


# Rules that `polyver check` refuses.


def _without(edge: SuggestedEdge, finding: ConversionFinding) -> SuggestedEdge:
    versions = (edge.source, edge.target)
    if finding.versions and not {*finding.versions} & {*versions}:
        return edge
    converting = [each for each in edge.rules if not each.preserves]
    wrong = [each for each in converting if _is_about(each, finding.path)] or converting
    kept = [each for each in edge.rules if each not in wrong]
    return replace(edge, rules=(*kept, *(made for each in wrong for made in _split(each, finding))))


def _is_about(rule: SuggestedRule, path: str) -> bool:
    return any(_covers(own, path) for own in (rule.source, rule.target) if own)


def _covers(own: Path, path: str) -> bool:
    text = show_path(own)
    return path == text or path.startswith((f"{text}.", f"{text}[", f"{text}{{"))


def _split(rule: SuggestedRule, finding: ConversionFinding) -> Iterator[SuggestedRule]:
    """Yield rules that preserve both fields of a rule, instead of converting them."""
    reason = f"not converted by {rule.name}: {finding.fact}"
    if rule.source != rule.target or rule.name != "each":
        yield SuggestedRule("drop", {"at": show_path(rule.source)}, 1.0, reason, rule.source)
        yield SuggestedRule("add", {"at": show_path(rule.target)}, 1.0, reason, (), rule.target)
