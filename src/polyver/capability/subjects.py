"""The interface by which a capability answers `polyver why` and `polyver impact`."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from polyver.cli.output import OutputFormat

__all__ = ["ImpactQuestion", "Subject", "WhyQuestion"]


@dataclass(frozen=True, slots=True, kw_only=True)
class WhyQuestion:
    """The arguments of `polyver why`."""

    kind: str
    """The part of the argument KIND/NAME before the slash, as the user wrote it."""
    name: str
    namespace: str
    context: str
    functions: list[str] | None
    catalogue: list[str] | None
    output: OutputFormat
    explain: bool
    traceback: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class ImpactQuestion:
    """The arguments of `polyver impact`."""

    text: str
    """The argument: NAME, NAME@VERSION or KIND/NAME@VERSION."""
    files: Sequence[str]
    """Files and folders with manifests, '-' for standard input, 'cluster:' for a cluster."""
    functions: list[str] | None
    catalogue: list[str] | None
    output: OutputFormat
    traceback: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Subject:
    """One type of objects that `polyver why` or `polyver impact` explains."""

    names: tuple[str, ...] = ()
    """The names of the kind, as written before the slash.

    A Subject without names answers for every other kind.
    """
    why: Callable[[WhyQuestion], None] | None = None
    impact: Callable[[ImpactQuestion], None] | None = None
