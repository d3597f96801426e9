"""Limits of one rendering of a template, so that no template takes too much time or memory."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from polyver.languages.gotemplate._values import TemplateFailure

__all__ = ["DEEPEST", "RenderBudget", "RenderLimits"]

DEEPEST = 100
"""The maximum nesting of values, of blocks such as `{{ if }}`, and of template calls."""


@dataclass(frozen=True, slots=True)
class RenderLimits:
    """The maximum numbers of steps and characters of one rendering."""

    steps: int = 300_000
    """The maximum number of steps.

    Each template action (`{{ }}`), each call and each repetition of a loop is one step. A function
    call with long arguments, or with a long result, counts as several steps.
    """
    size: int = 2 * 1024 * 1024
    """The maximum number of characters in the rendered text, and in each intermediate string."""


class RenderBudget:
    """Counts down the steps that one rendering may still use."""

    __slots__ = ("_left", "limits")

    def __init__(self, limits: RenderLimits) -> None:
        self.limits = limits
        self._left = limits.steps

    def spend(self, steps: int = 1) -> None:
        """Subtract some steps; raise `TemplateFailure` if too few steps are left."""
        self._left -= steps
        if self._left < 0:
            raise TemplateFailure(
                f"rendering takes more than {self.limits.steps} steps",
                "loop over fewer items, or do less for each",
            )

    def fit(self, size: int) -> None:
        """Raise `TemplateFailure` if a string of `size` characters is too large."""
        if size > self.limits.size:
            raise TemplateFailure(
                f"a string grows past {self.limits.size} characters", "render less into one string"
            )

    def hold(self, size: int) -> None:
        """Subtract the steps for a new string of `size` characters.

        Raise `TemplateFailure` if the string is too large, or if too few steps are left.
        """
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
        """Subtract the steps for a function call with the arguments `values`.

        Long strings among the arguments need more steps.
        """
        self.spend(1 + sum(len(value) for value in values if isinstance(value, str)) // 8)

    def keep(self, value: object) -> None:
        """Subtract the steps for a value that a function returned.

        A large value needs more steps.
        """
        if isinstance(value, str):
            self.hold(len(value))
        elif isinstance(value, list | dict):
            self.spend(len(value) // 8)

    def dive(self, depth: int) -> None:
        """Subtract the step for a nested value; raise `TemplateFailure` if it is nested too deeply.

        `depth` is the number of lists and mappings around the value.
        """
        self.spend()
        if depth > DEEPEST:
            raise TemplateFailure(f"values nest more than {DEEPEST} levels deep")
