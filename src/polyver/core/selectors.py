"""Selectors of a dependent: one release, a series, labels, or unspecified."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from polyver.core.versions import Series, Version

__all__ = ["UNSPECIFIED", "Exact", "Labels", "Selector", "Unspecified"]


@dataclass(frozen=True, slots=True)
class Exact:
    """One release, by its version, or by its name if releases have names.

    A wish is a preferred version for several lineages: a lineage without it uses its default.
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
    """No selector: the policy's default."""

    def __str__(self) -> str:
        return ""


UNSPECIFIED = Unspecified()

Selector = Exact | Series | Labels | Unspecified
