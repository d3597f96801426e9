"""The three kinds of versions, each with its own order: Kubernetes API, semantic and serial.

A string is parsed once and then compared as a value; no other module compares version strings.
Comparing two kinds of versions raises TypeError, because no result would be meaningful.
"""

from __future__ import annotations

import re
from functools import lru_cache
from typing import Self

from polyver.core.errors import PolyverError

__all__ = ["InvalidVersion", "KubeVersion", "SemVer", "Serial", "Series", "Version"]

_LONGEST = 256


class InvalidVersion(PolyverError):
    """A string that is not a version, and a description of the expected string."""

    def __init__(self, text: str, expected: str) -> None:
        shown = text if len(text) <= 64 else f"{text[:60]}…"
        quoted = '"' + "".join(c if c.isprintable() else repr(c)[1:-1] for c in shown) + '"'
        super().__init__(f"{quoted} is not {expected}")
        self.text = text
        self.expected = expected


class _Ordered:
    """A version that cannot be changed; it is compared by a key that the parser computes once."""

    __slots__ = ("_key", "_text")

    _key: tuple[object, ...]
    _text: str

    @classmethod
    def _make(cls, key: tuple[object, ...], text: str) -> Self:
        made = object.__new__(cls)
        _set_key(made, key)
        _set_text(made, text)
        return made

    def __setattr__(self, name: str, value: object) -> None:
        raise AttributeError(f"{type(self).__name__} is immutable")

    def __delattr__(self, name: str) -> None:
        raise AttributeError(f"{type(self).__name__} is immutable")

    def __reduce__(self) -> tuple[object, tuple[object, ...]]:
        return type(self)._make, (self._key, self._text)

    def __str__(self) -> str:
        return self._text

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self._text!r})"

    def __hash__(self) -> int:
        return hash(self._key)

    def __eq__(self, other: object) -> bool:
        if other.__class__ is not self.__class__:
            return NotImplemented
        return self._key == other._key

    # functools.total_ordering would make sorting several times slower.
    def __lt__(self, other: Self) -> bool:
        if other.__class__ is not self.__class__:
            return NotImplemented
        return self._key < other._key

    def __le__(self, other: Self) -> bool:
        if other.__class__ is not self.__class__:
            return NotImplemented
        return self._key <= other._key

    def __gt__(self, other: Self) -> bool:
        if other.__class__ is not self.__class__:
            return NotImplemented
        return self._key > other._key

    def __ge__(self, other: Self) -> bool:
        if other.__class__ is not self.__class__:
            return NotImplemented
        return self._key >= other._key


# The setters of the slots bypass __setattr__ and are twice as fast as object.__setattr__.
_set_key = _Ordered.__dict__["_key"].__set__
_set_text = _Ordered.__dict__["_text"].__set__


class KubeVersion(_Ordered):
    """A Kubernetes API version, ordered by Kubernetes version priority and not by age.

    >>> sorted(map(KubeVersion.parse, ["v1", "foo10", "v2beta1", "foo1"]), reverse=True)
    [KubeVersion('v1'), KubeVersion('v2beta1'), KubeVersion('foo1'), KubeVersion('foo10')]
    """

    __slots__ = ()

    @classmethod
    def parse(cls, text: str) -> Self:
        if not _is_word(text) or "/" in text:
            raise InvalidVersion(text, "an API version: expected a word such as v1 or v2beta1")
        found = _KUBE.fullmatch(text)
        if found is None:
            return cls._make((0, *_descending(text)), text)
        major, stability, minor = found.groups()
        numbers = int(major), int(minor or 0)
        if max(numbers) > _INT64:  # kube-apiserver does not sort these as versions
            return cls._make((0, *_descending(text)), text)
        return cls._make((_STABILITY[stability], *numbers, *_descending(text)), text)


# As in kube-apiserver, v0 and v01 also count as versions.
_KUBE = re.compile(r"v([0-9]+)(?:(alpha|beta)([0-9]+))?")
_STABILITY = {"alpha": 1, "beta": 2, None: 3}
_INT64 = 2**63 - 1


def _descending(text: str) -> tuple[int, ...]:
    """Return a key that sorts strings in descending order; a string sorts before its prefixes."""
    return (*(-ord(character) for character in text), 1)


class SemVer(_Ordered):
    """A semantic version; build metadata is kept, but ignored in comparisons.

    >>> SemVer.parse("v1.2.0") == SemVer.parse("1.2.0+linux")
    True
    >>> SemVer.parse("1.2.0-rc.2") < SemVer.parse("1.2.0-rc.10") < SemVer.parse("1.2.0")
    True
    """

    __slots__ = ()

    _key: tuple[int, int, int, tuple[object, ...]]

    @classmethod
    def parse(cls, text: str) -> Self:
        """Parse a version with all three numbers; a leading `v` is allowed."""
        found = _SEMVER.fullmatch(text) if len(text) <= _LONGEST else None
        if found is None:
            raise InvalidVersion(text, f"a semantic version: expected {_EXPECTED}")
        major, minor, patch, prerelease = found.groups()
        key = (int(major), int(minor), int(patch), _precedence(prerelease))
        return cls._make(key, text.removeprefix("v"))

    @classmethod
    def complete(cls, text: str) -> Self:
        """Parse a version; if only the first one or two numbers are given, the others are 0.

        >>> SemVer.complete("3.4")
        SemVer('3.4.0')
        """
        if len(text) <= _LONGEST and _NUMBERS.fullmatch(text):
            return cls.parse(text + ".0" * (2 - text.count(".")))
        try:
            return cls.parse(text)
        except InvalidVersion:
            expected = f"a semantic version: expected {_EXPECTED}, or its first one or two numbers"
            raise InvalidVersion(text, expected) from None

    @property
    def major(self) -> int:
        return self._key[0]

    @property
    def minor(self) -> int:
        return self._key[1]

    @property
    def patch(self) -> int:
        return self._key[2]

    @property
    def is_prerelease(self) -> bool:
        return self._key[3] != _FINAL

    @property
    def build(self) -> str:
        """The build metadata, without its plus sign."""
        return self._text.partition("+")[2]


_NUMBER = "(?:0|[1-9][0-9]*)"
_IDENTIFIER = f"(?:{_NUMBER}|[0-9]*[A-Za-z-][0-9A-Za-z-]*)"
_SEMVER = re.compile(
    rf"v?({_NUMBER})\.({_NUMBER})\.({_NUMBER})"
    rf"(?:-({_IDENTIFIER}(?:\.{_IDENTIFIER})*))?"
    r"(?:\+[0-9A-Za-z-]+(?:\.[0-9A-Za-z-]+)*)?"
)
_NUMBERS = re.compile(rf"v?{_NUMBER}(?:\.{_NUMBER})?")
_EXPECTED = "MAJOR.MINOR.PATCH such as 1.4.2 or 1.4.2-rc.1"
_FINAL = (1,)


@lru_cache(maxsize=1024)
def _precedence(prerelease: str | None) -> tuple[object, ...]:
    if prerelease is None:
        return _FINAL
    parts = prerelease.split(".")
    return (0, *((0, int(part), "") if part.isdigit() else (1, 0, part) for part in parts))


class Serial(_Ordered):
    """The number of a revision, assigned in ascending order: 1, 2, 3, ….

    >>> Serial(9) < Serial(10)
    True
    """

    __slots__ = ()

    _key: tuple[int]

    def __new__(cls, number: int) -> Self:
        if not 1 <= number <= _INT64:
            raise InvalidVersion(str(number), _EXPECTED_SERIAL)
        return cls._make((number,), str(number))

    @classmethod
    def parse(cls, text: str) -> Self:
        if not _SERIAL.fullmatch(text):
            raise InvalidVersion(text, _EXPECTED_SERIAL)
        return cls(int(text))

    @property
    def number(self) -> int:
        return self._key[0]


_SERIAL = re.compile("[1-9][0-9]{0,18}")
_EXPECTED_SERIAL = "a revision number: expected 1, 2, 3, …"


class Series(_Ordered):
    """All semantic versions that begin with the same one or two numbers.

    >>> SemVer.parse("1.2.9") in Series(1, 2)
    True
    >>> str(Series.parse("v1"))
    '1'
    """

    __slots__ = ()

    _key: tuple[int, ...]

    def __new__(cls, major: int, minor: int | None = None) -> Self:
        numbers = (major,) if minor is None else (major, minor)
        if min(numbers) < 0:
            raise InvalidVersion(".".join(map(str, numbers)), _EXPECTED_SERIES)
        return cls._make(numbers, ".".join(map(str, numbers)))

    @classmethod
    def parse(cls, text: str) -> Self:
        if len(text) > _LONGEST or not _NUMBERS.fullmatch(text):
            raise InvalidVersion(text, _EXPECTED_SERIES)
        return cls(*map(int, text.removeprefix("v").split(".")))

    @property
    def numbers(self) -> tuple[int, ...]:
        return self._key

    def __contains__(self, version: SemVer) -> bool:
        return version._key[: len(self._key)] == self._key


_EXPECTED_SERIES = "a series: expected one or two numbers such as 1 or 1.2"

Version = KubeVersion | SemVer | Serial


def _is_word(text: str) -> bool:
    return 0 < len(text) <= _LONGEST and text.isprintable() and not any(map(str.isspace, text))
