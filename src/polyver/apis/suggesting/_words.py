"""Compare the names and the descriptions of fields, word by word; find units in names."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from difflib import SequenceMatcher
from fractions import Fraction
from functools import lru_cache
from math import log
from typing import Final

__all__ = ["Vocabulary", "description_words", "unit_of", "words_alike", "words_of_name"]

_WORD: Final = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|[0-9]+")
_PROSE: Final = re.compile(r"[A-Za-z][a-z]*")
_SYNONYMS: Final = (
    {"suspend", "pause"},
    {"delete", "remove", "prune"},
    {"count", "number", "num"},
    {"url", "uri", "endpoint", "address"},
    {"replica", "instance"},
    {"disable", "off"},
    {"enable", "on"},
)
_STOP_WORDS: Final = frozenset(
    "a an and are as be by can default defaults field for from has if in is it its may more must "
    "no not of on one only or set should specifies specified than that the then there these this "
    "to used value when which will with".split()
)
_SECONDS: Final = {
    "nanosecond": Fraction(1, 10**9),
    "nano": Fraction(1, 10**9),
    "microsecond": Fraction(1, 10**6),
    "micro": Fraction(1, 10**6),
    "millisecond": Fraction(1, 1000),
    "milli": Fraction(1, 1000),
    "msec": Fraction(1, 1000),
    "ms": Fraction(1, 1000),
    "second": Fraction(1),
    "sec": Fraction(1),
    "minute": Fraction(60),
    "hour": Fraction(3600),
    "day": Fraction(86400),
}
_BYTES: Final = {"byte": Fraction(1)} | {
    f"{prefix}ib": Fraction(1024**power) for power, prefix in enumerate("kmgt", 1)
}
_UNITS: Final[Mapping[str, tuple[str, Fraction]]] = {
    **{word: ("time", factor) for word, factor in _SECONDS.items()},
    **{word: ("size", factor) for word, factor in _BYTES.items()},
}


@lru_cache(maxsize=65536)
def words_of_name(name: str) -> tuple[str, ...]:
    """Split the name of a field into words in lower case, in the singular.

    >>> words_of_name("timeoutSeconds"), words_of_name("podCIDRs")
    (('timeout', 'second'), ('pod', 'cidr'))
    """
    return tuple(_singular(word) for word in _split(re.sub(r"(?<=[A-Z])s(?![a-z])", "", name)))


def _split(name: str) -> list[str]:
    # MiB and GiB are one word, not two.
    parts = re.split(r"((?<![A-Za-z])[KMGT]iB|(?<=[a-z])[KMGT]iB)", name)
    return [
        word.lower()
        for part in parts
        for word in ([part] if re.fullmatch("[KMGT]iB", part) else _WORD.findall(part))
    ]


def _singular(word: str) -> str:
    if len(word) > 4 and word.endswith("ies"):
        return f"{word[:-3]}y"
    if len(word) > 4 and word.endswith(("sses", "xes", "ches", "shes")):
        return word[:-2]
    plural = len(word) > 2 and word[-1] == "s" and word[-2] not in "su"
    return word[:-1] if plural and word not in _UNITS else word


def unit_of(words: Sequence[str]) -> tuple[Sequence[str], str, Fraction] | None:
    """Return the words before a unit, the quantity and the size of the unit; None without a unit.

    >>> unit_of(words_of_name("timeoutMillis"))
    (('timeout',), 'time', Fraction(1, 1000))
    """
    if len(words) < 2 or words[-1] not in _UNITS:
        return None
    return (words[:-1], *_UNITS[words[-1]])


@lru_cache(maxsize=65536)
def words_alike(one: str, other: str) -> float:
    """Return how alike two words are, from 0 to 1.

    >>> words_alike("repo", "repository"), words_alike("a", "b")
    (0.85, 0.0)
    """
    if one == other:
        return 1.0
    if any(one in group and other in group for group in _SYNONYMS):
        return 0.8
    short, long = sorted((one, other), key=len)
    if len(short) > 2 and (long.startswith(short) or _is_abbreviation(short, long)):
        return 0.85
    if len(short) < 4:
        return 0.0
    ratio = SequenceMatcher(None, one, other, autojunk=False).ratio()
    return ratio * 0.9 if ratio >= 0.8 else 0.0


def _is_abbreviation(short: str, long: str) -> bool:
    """Report whether a word is the first letter and then consonants of a longer word: `cmd`."""
    if short[0] != long[0] or set(short[1:]) & set("aeiou"):
        return False
    rest = iter(long)
    return all(letter in rest for letter in short)


@lru_cache(maxsize=65536)
def description_words(text: str) -> frozenset[str]:
    """Return the words of a description that say what a field is for."""
    words = {_singular(word.lower()) for word in _PROSE.findall(text)}
    return frozenset(word for word in words if len(word) > 2 and word not in _STOP_WORDS)


class Vocabulary:
    """The words in the names of two schemas; rare words say more than frequent ones."""

    def __init__(self, names: Iterable[str]) -> None:
        self.names = Counter(names)
        counts = Counter(
            word for name, count in self.names.items() for word in words_of_name(name) * count
        )
        total = sum(counts.values()) or 1
        self._weights = {word: log(1 + total / count) for word, count in counts.items()}

    def alike(self, one: Collection[str], other: Collection[str]) -> float:
        """Return how alike two lists of words are, from 0 to 1."""
        left = [*other]
        shared = 0.0
        for word in one:
            best = max(left, key=lambda each: words_alike(word, each), default=None)
            if best is not None and (found := words_alike(word, best)):
                left.remove(best)
                shared += found * (self._weight(word) + self._weight(best))
        total = sum(map(self._weight, one)) + sum(map(self._weight, other))
        return shared / total if total else 0.0

    def _weight(self, word: str) -> float:
        return self._weights.get(word, 1.0)
