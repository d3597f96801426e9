"""The builder of the cases of a `when` rule."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from polyver.apis.conversion._block import RuleBlock
from polyver.apis.conversion.case_rules import WhenCase, WhenRule
from polyver.apis.conversion.rules import InvalidRule
from polyver.apis.conversion.values import MISSING

if TYPE_CHECKING:
    from polyver.apis.conversion._building import Rules
    from polyver.apis.conversion.recursion import RepeatedRules

__all__ = ["WhenRules"]


class WhenRules:
    """The cases of a `when` rule. Exactly one of them must apply to each value."""

    def __init__(self, new: Callable[[], Rules], *, root: bool) -> None:
        """Create a builder without cases. `root` is True if the rules convert whole objects."""
        self._new = new
        self._root = root
        self._cases: list[tuple[WhenCase, Rules]] = []
        self._otherwise: Rules | None = None

    def case(self, value: Any, *, to: Any = MISSING) -> Rules:
        """Add the case for a value of the deciding field, or for a list of values.

        None stands for a missing field. In the second version, the deciding field has the value
        `to`; by default, the same value. Each value of a list is converted to the value of `to` at
        the same position; if there is none, to the first value of `to`.

        Return an empty `Rules`, to which the caller adds the rules for this case.
        """
        values = _listed(value)
        others = values if to is MISSING else _listed(to)
        if not values or not others:
            raise InvalidRule("a case of when needs a value")
        made = self._new()
        self._cases.append((WhenCase(values, others, RuleBlock()), made))
        return made

    def otherwise(self) -> Rules:
        """Add the case for all values of the deciding field that belong to no other case.

        The deciding field keeps its value if all cases keep it; otherwise, the second version does
        not have the field, and the value is preserved.
        """
        if self._otherwise is not None:
            raise InvalidRule("when has two cases for all other values")
        self._otherwise = self._new()
        return self._otherwise

    def completed(self, rule: WhenRule, around: tuple[RepeatedRules, ...] = ()) -> WhenRule:
        """Return a rule with these cases; raise an error if not exactly one applies to a value.

        `around` are the blocks around the rule.
        """
        cases = [
            replace(case, block=rules.block(around, is_case=True)) for case, rules in self._cases
        ]
        others = rule.otherwise
        if self._otherwise is not None:
            others = replace(others, block=self._otherwise.block(around, is_case=True))
        made = replace(rule, cases=tuple(cases), otherwise=others)
        made.check()
        if self._root:
            made.check_constants()
        if self._otherwise is None:
            made.check_cover()
        return made


def _listed(value: Any) -> tuple[Any, ...]:
    return tuple(value) if isinstance(value, list | tuple) else (value,)
