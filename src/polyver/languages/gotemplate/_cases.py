"""Template functions for upper and lower case, and for snake, kebab and camel case."""

from __future__ import annotations

import unicodedata
from collections.abc import Callable, Iterator, Mapping

from polyver.languages.gotemplate._functions import FunctionTable

__all__ = ["CASES", "SPACES", "lower", "title", "upper"]

CASES = FunctionTable("names")
SPACES = "\t\n\v\f\r \x85\xa0\u1680\u2028\u2029\u202f\u205f\u3000" + "".join(
    map(chr, range(0x2000, 0x200B))
)


def _each(changed: Callable[[str], str]) -> Callable[[str], str]:
    """Build a function that applies `changed` to each character of a string.

    If `changed` would turn a character into several characters, the character stays unchanged.
    """

    def change(text: str) -> str:
        if text.isascii():
            return "".join(map(changed, text)) if len(text) == 1 else changed(text)
        return "".join(new if len(new := changed(char)) == 1 else char for char in text)

    return change


upper = _each(str.upper)
lower = _each(str.lower)


def _titled(char: str) -> str:
    new = char.title()
    return new if len(new) == 1 else char


def title(text: str) -> str:
    """Convert the first character of each word to title case."""
    before = " "
    parts: list[str] = []
    for char in text:
        parts.append(_titled(char) if _separates(before) else char)
        before = char
    return "".join(parts)


def _separates(char: str) -> bool:
    if char.isascii():
        return not (char.isalnum() or char == "_")
    if unicodedata.category(char)[0] == "L" or char.isdecimal():
        return False
    return char in SPACES


@CASES.add("untitle", "string")
def _untitle(text: str) -> str:
    before = " "
    parts: list[str] = []
    for char in text:
        parts.append(lower(char) if before in SPACES else char)
        before = char
    return "".join(parts)


@CASES.add("swapcase", "string")
def _swapcase(text: str) -> str:
    parts: list[str] = []
    start = True
    for char in text:
        category = unicodedata.category(char)
        if category in ("Lu", "Lt"):
            parts.append(lower(char))
            start = False
        elif category == "Ll":
            parts.append(_titled(char) if start else upper(char))
            start = False
        else:
            parts.append(char)
            start = char in SPACES
    return "".join(parts)


# Words in names


def _connects(char: str) -> bool:
    return char in "-_" or char in SPACES


@CASES.add("camelcase", "string")
def _camelcase(text: str) -> str:
    start = next((index for index, char in enumerate(text) if not _connects(char)), len(text))
    if start >= len(text):
        return text + text[-1:]  # sprig repeats the last character
    parts = [text[:start]]
    capital = text[start].isupper()
    now = upper(text[start])
    for char in text[start + 1 :]:
        before, now = now, char
        if _connects(now) and _connects(before):
            parts.append(before)
            continue
        if _connects(before):
            capital = now.isupper()
            now = upper(now)
            continue
        if capital:
            capital = now.isupper()
            now = lower(now)
        parts.append(before)
    return "".join([*parts, now])


def _is_letter(char: str) -> bool:
    """Report whether a character is a letter.

    East Asian characters, which have no case, do not count.
    """
    if unicodedata.category(char)[0] != "L":
        return False
    # Letters of Han, Hiragana, Katakana and Hangul do not form words here.
    return not unicodedata.name(char, "").startswith(("CJK", "HIRAGANA", "KATAKANA", "HANGUL"))


def _is_punctuation(char: str) -> bool:
    return unicodedata.category(char)[0] == "P"


def _is_number(char: str) -> bool:
    return unicodedata.category(char)[0] == "N"


def _kind(char: str) -> str:
    if _connects(char):
        return "connector"
    if _is_punctuation(char):
        return "punctuation"
    if char.isupper() and unicodedata.category(char) == "Lu":
        return "upper"
    if _is_letter(char):
        return "letters"
    return "number" if _is_number(char) else "other"


def _run(text: str, at: int, holds: Callable[[str], bool]) -> int:
    while at < len(text) and holds(text[at]):
        at += 1
    return at


def _small(char: str) -> bool:
    return _is_letter(char) and unicodedata.category(char) != "Lu"


_RUNS: Mapping[str, Callable[[str], bool]] = {
    "connector": _connects,
    "punctuation": _is_punctuation,
    "letters": _small,
    "number": _is_number,
    "other": lambda char: _kind(char) == "other",
}


def _word_end(text: str, at: int, kind: str) -> int:
    if kind != "upper":
        return _run(text, at, _RUNS[kind])
    capitals = _run(text, at, lambda char: unicodedata.category(char) == "Lu")
    if capitals - at == 1:
        return _run(text, capitals, _small)
    # If a small letter follows several capitals, the last capital begins the next word:
    # `HTTPServer` has the words `HTTP` and `Server`.
    last = capitals < len(text) and _is_letter(text[capitals])
    return capitals - 1 if last else capitals


def _words(text: str) -> list[tuple[str, str]]:
    """Divide a name into words, each with its kind, such as `number` or `letters`."""
    found: list[tuple[str, str]] = []
    at = 0
    while at < len(text):
        kind = _kind(text[at])
        end = max(_word_end(text, at, kind), at + 1)
        found.append((kind, text[at:end]))
        at = end
    return found


_BETWEEN = ("connector", "punctuation")


def _units(words: list[tuple[str, str]]) -> Iterator[tuple[str, str]]:
    """Join words that stay together, such as `v` and `2` in `v2`, or `2` and `nd` in `2nd`."""
    at = 0
    while at < len(words):
        kind, unit = words[at]
        kinds = [each for each, _ in words[at + 1 : at + 3]]
        unit = lower(unit) if kind == "upper" else unit
        at += 1
        if kind == "number":
            while at < len(words) and words[at][0] in ("letters", "number"):
                unit += words[at][1]
                at += 1
        elif kind not in _BETWEEN and kinds[:1] == ["number"] and kinds[1:] != ["letters"]:
            unit += words[at][1]
            at += 1
        yield kind, unit


def _joined(text: str, sign: str) -> str:
    """Write the words of a name in lower case, with the character `sign` between two words."""
    parts: list[str] = []
    before = "connector"
    for kind, unit in _units(_words(text)):
        if kind not in _BETWEEN and before not in _BETWEEN:
            parts.append(sign)
        parts.append(sign * len(unit) if kind == "connector" else unit)
        before = kind
    return "".join(parts)


CASES.put("snakecase", "string", lambda text: _joined(text, "_"))
CASES.put("kebabcase", "string", lambda text: _joined(text, "-"))
