"""Conversion rules that are used in the opposite direction."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from polyver.apis.conversion._delta import Guard, Lost
from polyver.apis.conversion.paths import Path
from polyver.apis.conversion.rules import ConversionRule, Ports
from polyver.core.plain import Schema
from polyver.kube.objects.schema.structure import StructuralSchema

if TYPE_CHECKING:
    from polyver.apis.conversion._block import RuleBlock

__all__ = ["ReversedRule", "unreversed"]


@dataclass(frozen=True, eq=False)
class ReversedRule(ConversionRule):
    """A rule that is written for the conversion from the version `to` to the version `from`."""

    rule: ConversionRule

    @property
    def name(self) -> str:  # type: ignore[override]
        return self.rule.name

    @property
    def sources(self) -> tuple[Path, ...]:
        return self.rule.targets

    @property
    def targets(self) -> tuple[Path, ...]:
        return self.rule.sources

    @property
    def inside(self) -> Any:
        """The block of the rules inside of the rule; None if there is none."""
        return getattr(self.rule, "inside", None)

    @property
    def blocks(self) -> Sequence[RuleBlock]:
        return self.rule.blocks

    @property
    def calls_functions(self) -> bool:
        return self.rule.calls_functions

    @property
    def constant(self) -> Path | None:
        return self.rule.constant

    @property
    def refers(self) -> bool:
        return self.rule.refers

    def resolved(self, metadata: Mapping[str, str]) -> ConversionRule:
        return replace(self, rule=self.rule.resolved(metadata))

    def schemas(self, *, back: bool) -> tuple[Schema, ...]:
        return self.rule.schemas(back=not back)

    def bound(
        self, source: StructuralSchema | None, target: StructuralSchema | None
    ) -> ConversionRule:
        return replace(self, rule=self.rule.bound(target, source))

    def run(self, values: Ports, *, back: bool) -> Ports:
        return self.rule.run(values, back=not back)

    def lost(self, values: Ports, made: Ports, *, back: bool) -> Lost:
        return self.rule.lost(values, made, back=not back)

    def restored(self, made: Ports, lost: Lost, *, back: bool) -> Ports:
        return self.rule.restored(made, lost, back=not back)

    def guards(self, lost: Lost, values: Ports, *, back: bool) -> Iterator[Guard]:
        return self.rule.guards(lost, values, back=not back)


def unreversed(rule: ConversionRule, *, back: bool) -> tuple[ConversionRule, bool]:
    """Return the rule that is reversed, and the direction in which it runs.

    If the rule is not reversed, return the arguments.
    """
    while isinstance(rule, ReversedRule):
        rule, back = rule.rule, not back
    return rule, back
