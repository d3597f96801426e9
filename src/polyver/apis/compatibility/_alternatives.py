"""Compare anyOf, oneOf, allOf and not, as far as one option obviously implies another."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, Final

from polyver.apis.compatibility._findings import (
    CompatibilityFinding,
    FindingSeverity,
    Schema,
    SchemaPair,
    within,
)
from polyver.apis.compatibility._normalized import ALTERNATIVES, INT_OR_STRING, bare
from polyver.apis.compatibility._values import compare_type, compare_value
from polyver.languages.values.strings import same

__all__ = ["compare_alternatives"]

_INTEGER_OR_STRING: Final = [{"type": "integer"}, {"type": "string"}]
_INSIDE: Final = ("properties", "items", "additionalProperties", *ALTERNATIVES)


def compare_alternatives(place: SchemaPair) -> Iterator[CompatibilityFinding]:
    """Yield a finding for each of anyOf, oneOf, allOf and not that changed."""
    for name in ALTERNATIVES:
        old, new = _options(place.old, name), _options(place.new, name)
        if _without(old, new) or _without(new, old):
            fits = not new or _WIDENED[name](old, new)
            rule = "alternatives-widened" if fits else "alternatives-changed"
            fact = f"{name} {'was added' if not old else 'changed' if new else 'was removed'}"
            yield place.found(rule, fact)


def _options(schema: Schema, name: str) -> list[Any]:
    """Return the options of a keyword, without those that int-or-string implies."""
    found = schema.get(name)
    options = [found] if name == "not" and found is not None else found or []
    made = [bare(each) for each in options]
    if not schema.get(INT_OR_STRING):
        return made
    if name == "anyOf" and made == _INTEGER_OR_STRING:
        return []
    return [each for each in made if name != "allOf" or each != {"anyOf": _INTEGER_OR_STRING}]


def _without(options: Sequence[Any], others: Sequence[Any]) -> list[Any]:
    """Return the options that are not in `others`; each of the others cancels one option."""
    left, found = [*others], []
    for option in options:
        place = next((i for i, other in enumerate(left) if same(option, other)), None)
        if place is None:
            found.append(option)
        else:
            del left[place]
    return found


def _any_widened(old: list[Any], new: list[Any]) -> bool:
    return bool(old) and all(any(_implies(one, other) for other in new) for one in old)


def _all_widened(old: list[Any], new: list[Any]) -> bool:
    return all(any(_implies(one, other) for one in old) for other in new)


def _never(_: list[Any], __: list[Any]) -> bool:
    """Return False, as any change of these options is a finding.

    A wider option of `oneOf` may let a second option match; a wider option of `not` forbids more.
    """
    return False


_WIDENED = {"anyOf": _any_widened, "allOf": _all_widened, "oneOf": _never, "not": _never}


def _implies(one: Schema, other: Schema) -> bool:
    """Report whether each value that passes one option obviously passes the other."""
    if not all(same(one.get(name), other.get(name)) for name in _INSIDE):
        return False
    if not {*(other.get("required") or ())} <= {*(one.get("required") or ())}:
        return False
    place = SchemaPair(one, other)
    return compare_type(place) is None and not within(compare_value(place), FindingSeverity.RISKY)
