"""Validation of CronJob schedules: five fields, or one word such as `@daily`."""

from __future__ import annotations

import re
from collections.abc import Mapping

__all__ = ["schedule_problem"]

_MONTHS = "jan feb mar apr may jun jul aug sep oct nov dec".split()
_DAYS = "sun mon tue wed thu fri sat".split()
_NAMES: Mapping[int, Mapping[str, int]] = {
    3: {name: number for number, name in enumerate(_MONTHS, 1)},
    4: {name: number for number, name in enumerate(_DAYS)},
}
_RANGES = ((0, 59), (0, 23), (1, 31), (1, 12), (0, 6))
_WORDS = ("@yearly", "@annually", "@monthly", "@weekly", "@daily", "@midnight", "@hourly")
_EVERY = re.compile(r"([0-9]+(\.[0-9]*)?(ns|us|µs|ms|s|m|h))+")


def schedule_problem(schedule: str) -> str:
    """Return the problem of a schedule as kube-apiserver words it; an empty string if valid.

    >>> schedule_problem("*/5 8-17 * * MON-FRI")
    ''
    >>> schedule_problem("61 * * * *")
    'end of range (61) above maximum (59): 61'
    """
    if schedule.startswith("@"):
        return _word_problem(schedule)
    fields = schedule.split()
    if len(fields) != 5:
        return f"expected exactly 5 fields, found {len(fields)}: [{' '.join(fields)}]"
    for number, field in enumerate(fields):
        for part in filter(None, field.split(",")):
            if problem := _part_problem(part, number):
                return problem
    return ""


def _word_problem(word: str) -> str:
    if word.startswith("@every "):
        span = word.removeprefix("@every ")
        if _EVERY.fullmatch(span):
            return ""
        return f'failed to parse duration {word}: time: invalid duration "{span}"'
    return "" if word in _WORDS else f"unrecognized descriptor: {word}"


def _part_problem(part: str, number: int) -> str:
    span, *steps = part.split("/")
    low, *high = span.split("-")
    try:
        least, most = _RANGES[number]
        begin, end = (least, most) if low in ("*", "?") else (_number(low, number),) * 2
        if low not in ("*", "?") and len(high) == 1:
            end = _number(high[0], number)
        if len(high) > 1:
            return f"too many hyphens: {part}"
        step = _integer(steps[0]) if steps else 1
        if len(steps) > 1:
            return f"too many slashes: {part}"
        end = most if steps and not high and low not in ("*", "?") else end
    except ValueError as error:
        return str(error)
    return _range_problem(part, begin, end, step, _RANGES[number])


def _range_problem(part: str, begin: int, end: int, step: int, span: tuple[int, int]) -> str:
    least, most = span
    if begin < least:
        return f"beginning of range ({begin}) below minimum ({least}): {part}"
    if end > most:
        return f"end of range ({end}) above maximum ({most}): {part}"
    if begin > end:
        return f"beginning of range ({begin}) beyond end of range ({end}): {part}"
    return "" if step else f"step of range should be a positive number: {part}"


def _number(text: str, field: int) -> int:
    named = _NAMES.get(field, {}).get(text.lower())
    return _integer(text) if named is None else named


def _integer(text: str) -> int:
    if not re.fullmatch("[-+]?[0-9]+", text):
        problem = f'strconv.Atoi: parsing "{text}": invalid syntax'
        raise ValueError(f"failed to parse int from {text}: {problem}")
    if text.startswith("-"):
        raise ValueError(f"negative number ({int(text)}) not allowed: {text}")
    return int(text)
