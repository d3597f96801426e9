"""Selectors: how a dependent states which release of a lineage it uses.

A selector is one release, a series such as 1.2, a set of labels, or unspecified.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from polyver.core.versions import Series, Version

__all__ = ["UNSPECIFIED", "Exact", "Labels", "Selector", "Unspecified"]


@dataclass(frozen=True, slots=True)
class Exact:
    """One release, named by its version or by its name.

    A selector with `wish` may apply to several lineages. If one of them does not have this release,
    the dependent gets the default choice of that lineage, and no error is raised.
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
