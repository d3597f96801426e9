"""CEL functions for strings: substrings, positions, patterns."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from polyver.languages.cel._formatting import formatted
from polyver.languages.cel._values import CelEvaluationError, List
from polyver.languages.regexp import CompiledPattern, InvalidPattern, read_pattern
from polyver.languages.values.strings import ESCAPES

__all__ = ["TEXTS"]

_LOWER = {code: code + 32 for code in range(ord("A"), ord("Z") + 1)}
_UPPER = {code: code - 32 for code in range(ord("a"), ord("z") + 1)}
_SPACES = "\t\n\v\f\r \x85\xa0\u1680\u2028\u2029\u202f\u205f\u3000" + "".join(
    map(chr, range(0x2000, 0x200B))
)


def _outside(index: int) -> CelEvaluationError:
    return CelEvaluationError(f"index out of range: {index}")


def _char_at(text: str, index: int) -> str:
    if not 0 <= index <= len(text):
        raise _outside(index)
    return text[index : index + 1]


def _index_of(text: str, part: str, start: int = 0) -> int:
    if start < 0:
        raise _outside(start)
    if not part:
        return min(start, len(text))
    return text.find(part, start) if start < len(text) else -1


def _last_index_of(text: str, part: str) -> int:
    if not part:
        return len(text)
    return _last_index_before(text, part, len(text) - 1) if len(part) <= len(text) else -1


def _last_index_before(text: str, part: str, start: int) -> int:
    if start < 0:
        raise _outside(start)
    if not part:
        return min(start, len(text))
    return text.rfind(part, 0, start + len(part)) if start < len(text) else -1


def _replace(text: str, old: str, new: str, times: int = -1) -> str:
    return text.replace(old, new, times)


def _split(text: str, between: str, most: int = -1) -> List:
    if most == 0:
        return List([])
    if not between:
        if most < 0 or most >= len(text):
            return List(list(text))
        return List([*text[: most - 1], text[most - 1 :]])
    return List(text.split(between, most - 1 if most > 0 else -1))


def _substring(text: str, start: int, end: int | None = None) -> str:
    if end is not None and start > end:
        raise CelEvaluationError(f"invalid substring range. start: {start}, end: {end}")
    for index in (start, *(() if end is None else (end,))):
        if not 0 <= index <= len(text):
            raise _outside(index)
    return text[start:end]


def _join(found: List, between: str = "") -> str:
    for item in found.items:
        if not isinstance(item, str):
            raise CelEvaluationError(f"join: invalid input: {item}")
    return between.join(found.items)


def _quote(text: str) -> str:
    return f'"{"".join(ESCAPES.get(char, char) for char in text)}"'


def _pattern(text: str, prefix: str = "") -> CompiledPattern:
    try:
        return read_pattern(text)
    except InvalidPattern as problem:
        raise CelEvaluationError(f"{prefix}{problem}") from problem


def _matches(text: str, pattern: str) -> bool:
    return _pattern(pattern).matches(text)


def _find(text: str, pattern: str) -> str:
    span = _pattern(pattern, "Illegal regex: ").find(text)
    return text[span[0] : span[1]] if span else ""


def _find_all(text: str, pattern: str, most: int = -1) -> List:
    return List(_pattern(pattern, "Illegal regex: ").find_all(text, most))


TEXTS: dict[str, Callable[..., Any]] = {
    "contains_string": lambda text, part: part in text,
    "ends_with_string": lambda text, part: text.endswith(part),
    "starts_with_string": lambda text, part: text.startswith(part),
    "matches": _matches,
    "matches_string": _matches,
    "string_char_at_int": _char_at,
    "string_format": formatted,
    "string_index_of_string": _index_of,
    "string_index_of_string_int": _index_of,
    "string_last_index_of_string": _last_index_of,
    "string_last_index_of_string_int": _last_index_before,
    "list_join": _join,
    "list_join_string": _join,
    "string_lower_ascii": lambda text: text.translate(_LOWER),
    "string_upper_ascii": lambda text: text.translate(_UPPER),
    "string_replace_string_string": _replace,
    "string_replace_string_string_int": _replace,
    "string_split_string": _split,
    "string_split_string_int": _split,
    "strings_quote": _quote,
    "string_substring_int": _substring,
    "string_substring_int_int": _substring,
    "string_trim": lambda text: text.strip(_SPACES),
    "string_find_string": _find,
    "string_find_all_string": _find_all,
    "string_find_all_string_int": _find_all,
}
