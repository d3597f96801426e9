"""What simple rules do to plain values when nothing is lost, which is nearly always.

Each is a function from what a rule reads to what it writes, or None if something would be lost:
then the rule itself is asked.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final

from polyver.apis.conversion.rules import Cast, Rule, Scale, Split, Values
from polyver.apis.conversion.values import MISSING, Type
from polyver.languages.values.strings import same

__all__ = ["Fast", "fast"]

Fast = Callable[..., Any]
"""Takes what the rule reads, not all of it missing; gives a sequence if it writes several."""

_MOST: Final = 2**63 - 1
_LARGE: Final = 10**18
"""Beyond this, a whole number may not be read back from its text."""


def fast(rule: Rule, *, back: bool) -> Fast:
    """What a rule does when nothing is lost."""
    match rule:
        case Values():
            return _words(rule, back=back)
        case Cast():
            kinds = (rule.source_type, rule.target_type)
            return _CASTS.get(kinds[::-1] if back else kinds) or _checked(rule, back=back)
        case Scale() if rule.factor.denominator == 1:
            return _scaled(rule.factor.numerator, back=back)
        case Split() if {*rule.types} <= {"string", "integer"}:
            return _joined(rule) if back else _split(rule)
    return _checked(rule, back=back)


def _checked(rule: Rule, *, back: bool) -> Fast:
    single = len(rule.ports(back=back)[1]) == 1

    def run(*values: Any) -> Any:
        made = rule.run(values, back=back)
        if not all(map(same, rule.run(made, back=not back), values)):
            return None
        return made[0] if single else made

    return run


def _words(rule: Values, *, back: bool) -> Fast:
    words = {(type(a), a): b for a, b in rule.words.items()}
    if back:
        words = {(type(b), b): a for (_, a), b in words.items()}
    if all(kind is str for kind, _ in words):
        texts = {text: word for (_, text), word in words.items()}.get
        return lambda value: texts(value) if type(value) is str else None
    get = words.get
    return lambda value: get((type(value), value)) if type(value) in _PLAIN else None


_PLAIN: Final = frozenset([str, int, bool])


def _whole(value: Any) -> Any:
    if type(value) is not str:
        return None
    try:
        made = int(value)
    except ValueError:
        return None
    return made if -_LARGE < made < _LARGE and str(made) == value else None


def _written(value: Any) -> Any:
    return str(value) if type(value) is int and -_LARGE < value < _LARGE else None


_CASTS: Final[Mapping[tuple[Type, Type], Fast]] = {
    ("string", "integer"): _whole,
    ("integer", "string"): _written,
}


def _scaled(factor: int, *, back: bool) -> Fast:
    def times(value: Any) -> Any:
        if type(value) is not int:
            return None
        made = value * factor
        return made if -_MOST <= made <= _MOST else None

    def divided(value: Any) -> Any:
        if type(value) is not int:
            return None
        made, rest = divmod(value, factor)
        return None if rest else made

    return divided if back else times


def _split(rule: Split) -> Fast:
    separator, count, absent = rule.separator, len(rule.into), rule.absent
    numbers = [place for place, kind in enumerate(rule.types) if kind == "integer"]
    most = count - 1

    def split(value: Any) -> Any:
        if type(value) is not str:
            return None
        parts: list[Any] = value.split(separator, most)
        if len(parts) < count:
            if absent is not None:
                return None
            parts += [MISSING] * (count - len(parts))
        elif absent is not None and absent in parts:
            parts = [MISSING if part == absent else part for part in parts]
            if parts.count(MISSING) == count:
                return None
        for place in numbers:
            if parts[place] is not MISSING:
                parts[place] = made = _whole(parts[place])
                if made is None:
                    return None
        return parts

    return split


def _joined(rule: Split) -> Fast:
    separator, absent, last = rule.separator, rule.absent, len(rule.into) - 1
    texted = [kind == "string" for kind in rule.types]

    def joined(*parts: Any) -> Any:
        texts: list[str] = []
        for place, part in enumerate(parts):
            if part is MISSING and absent is not None:
                texts.append(absent)
            elif part is MISSING:
                break
            else:
                text = part if texted[place] else _written(part)
                if type(text) is not str or text == absent or (separator in text and place < last):
                    return None
                texts.append(text)
        rest = parts[len(texts) :]
        if not texts or rest.count(MISSING) < len(rest):
            return None
        return separator.join(texts)

    return joined
