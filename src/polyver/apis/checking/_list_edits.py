"""Find lists whose items lose preserved fields when a client edits an item in another version.

polyver restores the preserved fields of a list item if it finds the item again: by the fields that
identify it, or else only if the item is unchanged and at the same position. So if nothing
identifies the items, an edit of an item in a version that cannot express all of it drops the
preserved fields of this item.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from polyver.apis.checking._findings import ConversionFinding, found
from polyver.apis.checking._ledger import trace
from polyver.apis.checking.schema_paths import ITEM, Inside, Place, places, schema_at, show
from polyver.apis.conversion import Converter, RuleBlock
from polyver.apis.conversion.hops import ByRules
from polyver.apis.conversion.nested import EachRule, MoveRule
from polyver.apis.conversion.reversal import unreversed
from polyver.apis.conversion.rules import ConversionRule
from polyver.core import Hop, listed
from polyver.core.plain import Schema

__all__ = ["edits_lose", "list_edit_finding", "rule_at"]

_NAMED = 3
"""The number of fields that a finding names."""


def edits_lose(
    converter: Converter, schemas: Mapping[str, Schema], kind: str
) -> Iterator[ConversionFinding]:
    """Yield a finding for each list whose items lose preserved fields when they are edited."""
    for edge in converter.tree.edges:
        for source, target in ((edge.source, edge.target), (edge.target, edge.source)):
            [hop] = converter.tree.way(source, target)
            if isinstance(hop.convert, ByRules) and source in schemas and target in schemas:
                step = _Step(hop, hop.convert, schemas[source])
                yield from step.findings(kind)


def list_edit_finding(
    kind: str, versions: tuple[str, str], at: str, parts: Sequence[str]
) -> ConversionFinding:
    """Build the finding for the list `at`; `parts` are the fields of its items that are lost."""
    more = len(parts) - _NAMED
    names = [*parts[:_NAMED], *([f"{more} more"] if more > 0 else [])]
    fact = (
        f"{versions[1]} cannot express {listed(names)} of an item, and nothing identifies the "
        f"items: if a client edits an item in {versions[1]}, this part of the item is lost"
    )
    return found("edits-lose", kind, fact, versions=versions, path=at)


@dataclass(frozen=True, slots=True)
class _Step:
    """A conversion step by rules, and the schema of the version from which it converts."""

    hop: Hop[Any]
    rules: ByRules
    schema: Schema

    def findings(self, kind: str) -> Iterator[ConversionFinding]:
        lost: dict[Place, list[str]] = {}
        for place in places(self.schema, leaves=True):
            if ITEM in place and not self._is_exact(place):
                at = self._unidentified(place)
                if at is not None:
                    lost.setdefault(at, []).append(show(place[len(at) + 1 :]))
        for at, parts in lost.items():
            versions = (self.hop.source, self.hop.target)
            rule = rule_at(self.rules.block, at, back=self.rules.back)
            line = rule[0].place if rule is not None else ""
            finding = list_edit_finding(kind, versions, show((*at, ITEM)), parts)
            yield replace(finding, place=line or self.rules.place)

    def _is_exact(self, place: Place) -> bool:
        stops = trace(self.rules, place, self.hop.target, schema_at(self.schema, place))
        return all(not each.carried and each.exact for each in stops)

    def _unidentified(self, place: Place) -> Place | None:
        """Return the outermost list of a path whose items nothing identifies, or None.

        A list that the other version lacks as a whole is preserved as a whole, so edits lose
        nothing.
        """
        lists = [place[:number] for number, step in enumerate(place) if step is ITEM]
        for at in lists:
            stops = trace(self.rules, at, self.hop.target, schema_at(self.schema, at))
            if all(each.carried for each in stops):
                return None
            keys = self._keys(at)
            if keys is not None and not (
                keys and all(self._is_exact((*at, ITEM, key)) for key in keys)
            ):
                return at
        return None

    def _keys(self, at: Place) -> Sequence[str] | None:
        """Return the fields that identify the items of a list; () if there are none.

        Return None if a rule converts the list as a whole, such as `keyed` or `wrap`.
        """
        covering = rule_at(self.rules.block, at, back=self.rules.back)
        if covering is None or isinstance(covering[0], MoveRule):
            schema = schema_at(self.schema, at) or {}
            return tuple(schema.get("x-kubernetes-list-map-keys") or ())
        rule, back = covering
        if isinstance(rule, EachRule):
            return rule.target_keys if back else rule.source_keys
        return None


def rule_at(
    block: RuleBlock, at: Sequence[str | Inside], *, back: bool
) -> tuple[ConversionRule, bool] | None:
    """Return the rule whose value is the one at a path, and the direction in which it is run."""
    at = tuple(at)
    for rule in block.rules:
        for port in rule.ports(back=back)[0]:
            if at[: len(port)] != port:
                continue
            inner, inner_back = unreversed(rule, back=back)
            rest = at[len(port) :]
            inside: RuleBlock | None = getattr(inner, "inside", None)
            if not rest or inside is None:
                return inner, inner_back
            while rest and isinstance(rest[0], Inside):
                rest = rest[1:]
            return rule_at(inside, rest, back=inner_back)
    return None
