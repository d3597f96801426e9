"""Selectors: the ways in which a dependent can select a release of a lineage.

A selector is one release, a series such as 1.2, labels, or unspecified.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from polyver.core.versions import Series, Version

__all__ = ["UNSPECIFIED", "Exact", "Labels", "Selector", "Unspecified"]


@dataclass(frozen=True, slots=True)
class Exact:
    """One release, by its version or by its name.

    A selector with `wish` may apply to several lineages. In a lineage that lacks this release, the
    dependent gets the default choice instead of an error.
    """

    wanted: Version | str
    wish: bool = False

    def __str__(self) -> str:
        return str(self.wanted)


@dataclass(frozen=True, slots=True)
class Labels:
    """Releases that have all of these labels.

    >>> print(Labels.of({"channel": "alpha"}))
    channel=alpha
    """

    wanted: tuple[tuple[str, str], ...]

    @classmethod
    def of(cls, labels: Mapping[str, str]) -> Labels:
        return cls(tuple(sorted(labels.items())))

    def __str__(self) -> str:
        return ",".join([f"{key}={value}" for key, value in self.wanted])


@dataclass(frozen=True, slots=True)
class Unspecified:
    """No selector: the dependent gets the default choice of the policy."""

    def __str__(self) -> str:
        return ""


UNSPECIFIED = Unspecified()

Selector = Exact | Series | Labels | Unspecified
