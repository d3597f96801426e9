"""Limits of one rendering, so that no template blocks its caller or fills the memory."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from polyver.languages.gotemplate._values import TemplateFailure

__all__ = ["DEEPEST", "RenderBudget", "RenderLimits"]

DEEPEST = 100
"""The maximum nesting of values, actions and template calls."""


@dataclass(frozen=True, slots=True)
class RenderLimits:
    """The steps and characters that one rendering may use."""

    steps: int = 300_000
    """Actions, calls and loop turns; large values count as several steps."""
    size: int = 2 * 1024 * 1024
    """Characters of the output and of each intermediate string."""


class RenderBudget:
    """The steps that are left while a template is rendered."""

    __slots__ = ("_left", "limits")

    def __init__(self, limits: RenderLimits) -> None:
        self.limits = limits
        self._left = limits.steps

    def spend(self, steps: int = 1) -> None:
        """Use some steps; raise `TemplateFailure` if too few are left."""
        self._left -= steps
        if self._left < 0:
            raise TemplateFailure(
                f"rendering takes more than {self.limits.steps} steps",
                "loop over less, or do less in each turn",
            )

    def fit(self, size: int) -> None:
        """Raise `TemplateFailure` if a string of this size is too large."""
        if size > self.limits.size:
            raise TemplateFailure(
                f"a text grows past {self.limits.size} characters", "render less into one text"
            )

    def hold(self, size: int) -> None:
        """Use the steps for a new string of a size, and check the size."""
        self.fit(size)
        self.spend(size // 64)

    def joined(self, between: str, parts: Iterable[str]) -> str:
        """Join strings; raise `TemplateFailure` as soon as the result grows too large."""
        found: list[str] = []
        size = 0
        for part in parts:
            found.append(part)
            size += len(part) + len(between)
            self.fit(size - len(between))
        self.spend(size // 64)
        return between.join(found)

    def read(self, values: Iterable[object]) -> None:
        """Use the steps for reading arguments: a function may scan strings by character."""
        self.spend(1 + sum(len(value) for value in values if isinstance(value, str)) // 8)

    def keep(self, value: object) -> None:
        """Use the steps for a value that a function returned."""
        if isinstance(value, str):
            self.hold(len(value))
        elif isinstance(value, list | dict):
            self.spend(len(value) // 8)

    def dive(self, depth: int) -> None:
        """Use a step at a nesting depth; raise `TemplateFailure` if values nest too deeply."""
        self.spend()
        if depth > DEEPEST:
            raise TemplateFailure(f"values nest more than {DEEPEST} levels deep")
