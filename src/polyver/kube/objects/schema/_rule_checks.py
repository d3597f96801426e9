"""Checks that the CEL rules in a schema compile, use oldSelf correctly and have a bounded cost."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Final

from polyver.core.plain import Schema
from polyver.kube.objects.schema.printed_schema import rule_text
from polyver.kube.objects.status import Cause, forbidden_field
from polyver.languages import cel
from polyver.languages.values.strings import shown

__all__ = ["check_rules"]

_RULES: Final = "x-kubernetes-validations"
_MOST_PER_RULE: Final = 10_000_000
_MOST_IN_ALL: Final = 100_000_000
_ENDLESS: Final = 2**64 - 1


@dataclass(slots=True)
class _Total:
    """The estimated cost of all rules of a schema, and the rules that cost the most."""

    cost: int = 0
    largest: list[tuple[int, str]] = field(default_factory=list)

    def observe(self, path: str, cost: int) -> None:
        self.cost = min(self.cost + cost, _ENDLESS)
        if cost >= _MOST_IN_ALL // 100:
            self.largest = sorted([*self.largest, (cost, path)], key=lambda each: -each[0])[:4]


@dataclass(frozen=True, slots=True)
class _Context:
    """The properties of a schema's position in the whole schema that affect its rules."""

    total: _Total
    broken: Sequence[str]
    """The paths at which earlier checks found errors in the schema."""
    times: int | None = 1
    """The maximum number of values in one object to which the schema applies; None if unlimited."""
    uncorrelated: str = ""
    """The path of a list around this schema whose items have no keys; "" if there is no such list.

    An update cannot match the old items of such a list with the new items, so rules cannot use
    oldSelf.
    """
    root: bool = True

    def inside(self, schema: Schema) -> _Context:
        """Return the context for the schemas of the fields, items or map values of `schema`."""
        match schema.get("type"):
            case "object" if schema.get("additionalProperties") is not None:
                most = schema.get("maxProperties")
            case "array":
                most = schema.get("maxItems")
            case _:
                most = 1
        times = None
        if most is not None and self.times is not None:
            times = min(self.times * max(most, 0), _ENDLESS)
        return replace(self, times=times, root=False)


def check_rules(schema: Schema, path: str, problems: Sequence[Cause]) -> list[Cause]:
    """Return the errors in the rules of a schema; `problems` are the errors of earlier checks."""
    total = _Total()
    context = _Context(total, [each.field for each in problems])
    causes = _check(schema, path, context)
    if total.cost > _MOST_IN_ALL:
        text = "contributed to estimated rule cost total exceeding cost limit for entire "
        causes += [forbidden_field(at, f"{text}OpenAPIv3 schema") for _, at in total.largest]
        name = f"{_RULES} estimated rule cost total for entire OpenAPIv3 schema"
        causes.append(forbidden_field(path, _too_costly(name, total.cost, _MOST_IN_ALL)))
    return causes


def _check(schema: Schema, path: str, context: _Context) -> list[Cause]:
    causes: list[Cause] = []
    inner = context.inside(schema)
    others, items = schema.get("additionalProperties"), schema.get("items")
    if isinstance(others, Mapping):
        causes += _check(others, f"{path}.additionalProperties", inner)
    fields = schema.get("properties") or {}
    for name in sorted(fields):
        causes += _check(fields[name], f"{path}.properties[{name}]", inner)
    if isinstance(items, Mapping):
        correlated = schema.get("x-kubernetes-list-type") == "map"
        where = context.uncorrelated or ("" if correlated else path)
        causes += _check(items, f"{path}.items", replace(inner, uncorrelated=where))
    if schema.get(_RULES) and not any(_is_within(each, path) for each in context.broken):
        causes += _check_own(schema, path, context)
    return causes


def _is_within(field_path: str, path: str) -> bool:
    return field_path.startswith(path) and field_path[len(path) : len(path) + 1] in ("", ".", "[")


def _check_own(schema: Schema, path: str, context: _Context) -> list[Cause]:
    embedded = bool(schema.get("x-kubernetes-embedded-resource"))
    declared_type = cel.declared(schema, "selfType", root=context.root or embedded)
    if declared_type is None:
        text = "internal error: failed to construct type information for x-kubernetes-validations"
        text = f"{text} rules: unable to convert structural schema to CEL declarations"
        return [Cause(f"{path}.{_RULES}", f"Internal error: {text}", "InternalError")]
    checks = _Checks(cel.CelEnvironment(declared_type), declared_type, context)
    causes: list[Cause] = []
    for number, rule in enumerate(schema[_RULES]):
        causes += checks.check(rule, f"{path}.{_RULES}[{number}]")
    return causes


class _Checks:
    """Checks the rules of one schema: that they compile, their cost, their use of oldSelf."""

    def __init__(
        self, environment: cel.CelEnvironment, declared_type: cel.DeclaredType, at: _Context
    ) -> None:
        self._environment = environment
        self._context = at
        self._times = at.times
        if self._times is None:
            self._times = cel.MOST_BYTES // (declared_type.least_bytes + 1)

    def check(self, rule: Schema, path: str) -> list[Cause]:
        optional = bool(rule.get("optionalOldSelf"))
        try:
            found = self._environment.rule(rule.get("rule") or "", optional_old=optional)
        except cel.Uncompilable as problem:
            refused = _refused(rule, f"{path}.rule", str(problem))
            return [refused, *self._check_optional(rule, path)]
        cost = min(found.most * (self._times or 0), _ENDLESS)
        causes = self._check_cost("estimated rule cost", f"{path}.rule", cost)
        if rule.get("messageExpression"):
            causes += self._check_message(rule, path)
        if found.uses_old:
            return causes + self._check_correlation(rule, path)
        return causes + self._check_optional(rule, path)

    def _check_message(self, rule: Schema, path: str) -> list[Cause]:
        expression_path, optional = f"{path}.messageExpression", bool(rule.get("optionalOldSelf"))
        try:
            found = self._environment.message(rule["messageExpression"], optional_old=optional)
        except cel.Uncompilable as problem:
            return [_refused(rule, expression_path, str(problem))]
        return self._check_cost("estimated messageExpression cost", expression_path, found.most)

    def _check_cost(self, name: str, path: str, cost: int) -> list[Cause]:
        self._context.total.observe(path, cost)
        if cost <= _MOST_PER_RULE:
            return []
        return [forbidden_field(path, _too_costly(name, cost, _MOST_PER_RULE))]

    def _check_correlation(self, rule: Schema, path: str) -> list[Cause]:
        if not self._context.uncorrelated:
            return []
        text = "oldSelf cannot be used on the uncorrelatable portion of the schema within "
        text = f"Invalid value: {shown(rule['rule'])}: {text}{self._context.uncorrelated}"
        return [Cause(f"{path}.rule", text)]

    def _check_optional(self, rule: Schema, path: str) -> list[Cause]:
        given = rule.get("optionalOldSelf")
        if given is None:
            return []
        text = "may not be set if oldSelf is not used in rule"
        return [Cause(f"{path}.optionalOldSelf", f"Invalid value: {shown(given)}: {text}")]


def _refused(rule: Schema, path: str, text: str) -> Cause:
    return Cause(path, f"Invalid value: {rule_text(rule)}: {text}")


def _too_costly(name: str, cost: int, most: int) -> str:
    factor = cost / most
    if factor > 100:
        shown_factor = "more than 100"
    else:
        shown_factor = f"{factor:f}" if factor < 1.5 else f"{factor:.1f}"
    text = "try simplifying the rule, or adding maxItems, maxProperties, and maxLength where "
    text = f"{text}arrays, maps, and strings are declared"
    return f"{name} exceeds budget by factor of {shown_factor}x ({text})"
