"""The conversion rule that takes a string apart by the named groups of a pattern."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

from polyver.apis.conversion.paths import Path
from polyver.apis.conversion.rules import InvalidRule, Ports
from polyver.apis.conversion.text_rules import TypedRule
from polyver.apis.conversion.values import MISSING, Type, cast
from polyver.core import listed
from polyver.core.plain import Schema
from polyver.languages.regexp import (
    InvalidPattern,
    StringTemplate,
    UnfixedPattern,
    read_template,
)

__all__ = ["PatternRule", "template_of"]


@dataclass(frozen=True, eq=False)
class PatternRule(TypedRule):
    """Takes a string of the version `from` apart into several fields of the version `to`."""

    source: Path
    into: tuple[Path, ...]
    groups: tuple[str, ...]
    """The names of the groups for the paths in `into`."""
    types: tuple[Type, ...]
    template: StringTemplate
    name: ClassVar[str] = "pattern"

    @property
    def sources(self) -> tuple[Path, ...]:
        return (self.source,)

    @property
    def targets(self) -> tuple[Path, ...]:
        return self.into

    def run(self, values: Ports, *, back: bool) -> Ports:
        if back:
            return (self._together(values),)
        found = self.template.taken_apart(values[0]) if type(values[0]) is str else None
        if found is None:
            return (MISSING,) * len(self.into)
        return tuple(
            cast(found.get(group, MISSING), "string", kind)
            for group, kind in zip(self.groups, self.types, strict=True)
        )

    def _together(self, values: Ports) -> Any:
        parts = zip(self.groups, values, self.types, strict=True)
        texts = {group: cast(value, kind, "string") for group, value, kind in parts}
        known = {group: text for group, text in texts.items() if text is not MISSING}
        text = self.template.put_together(known) if known else None
        return MISSING if text is None else text

    def schemas(self, *, back: bool) -> tuple[Schema, ...]:
        return tuple({"type": kind} for kind in (self.types if back else ("string",)))

    def samples(self) -> Iterator[Any]:
        yield from ("", 7, "7", "a")
        for text in self.template.examples():
            yield from (text, f"{text} ", *(self.template.taken_apart(text) or {}).values())


def template_of(pattern: str, into: Mapping[str, str], types: Mapping[str, str]) -> StringTemplate:
    """Compile a pattern; raise an error unless it has exactly the groups in `into`."""
    try:
        template = read_template(pattern)
    except UnfixedPattern as error:
        raise InvalidRule(error.fact, hint=error.hint) from None
    except InvalidPattern as error:
        raise InvalidRule(error.fact) from None
    if not template.names:
        raise InvalidRule("the pattern has no named group", hint="write (?P<name>…)")
    for name in template.names:
        if name not in into:
            raise InvalidRule(f"the group {name} has no field", hint="add it to into")
    for name in (*into, *types):
        if name not in template.names:
            known = f"known: {listed(template.names)}"
            raise InvalidRule(f"the pattern has no group {name}", hint=known)
    return template
