"""What one rendering may take, so that no template keeps anybody waiting or fills the memory."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from polyver.languages.gotemplate._values import TemplateFailure

__all__ = ["DEEPEST", "RenderBudget", "RenderLimits"]

DEEPEST = 100
"""How deep values, actions and calls of templates may nest."""


@dataclass(frozen=True, slots=True)
class RenderLimits:
    """The most that one rendering may take."""

    steps: int = 300_000
    """Actions, calls, turns of loops; large values count for several."""
    size: int = 2 * 1024 * 1024
    """Characters of the output, and of any text on the way there."""


class RenderBudget:
    """What is left of the limits while a template is rendered."""

    __slots__ = ("_left", "limits")

    def __init__(self, limits: RenderLimits) -> None:
        self.limits = limits
        self._left = limits.steps

    def spend(self, steps: int = 1) -> None:
        """Take some steps."""
        self._left -= steps
        if self._left < 0:
            raise TemplateFailure(
                f"rendering takes more than {self.limits.steps} steps",
                "loop over less, or do less in each turn",
            )

    def fit(self, size: int) -> None:
        """A text may have this size."""
        if size > self.limits.size:
            raise TemplateFailure(
                f"a text grows past {self.limits.size} characters", "render less into one text"
            )

    def hold(self, size: int) -> None:
        """Make a text of a size."""
        self.fit(size)
        self.spend(size // 64)

    def joined(self, between: str, parts: Iterable[str]) -> str:
        """Texts as one, as long as it does not grow too large."""
        found: list[str] = []
        size = 0
        for part in parts:
            found.append(part)
            size += len(part) + len(between)
            self.fit(size - len(between))
        self.spend(size // 64)
        return between.join(found)

    def read(self, values: Iterable[object]) -> None:
        """Look at what a function is given: it may go over texts character by character."""
        self.spend(1 + sum(len(value) for value in values if isinstance(value, str)) // 8)

    def keep(self, value: object) -> None:
        """Hold a value that a function has made."""
        if isinstance(value, str):
            self.hold(len(value))
        elif isinstance(value, list | dict):
            self.spend(len(value) // 8)

    def dive(self, depth: int) -> None:
        """Look into values inside of values."""
        self.spend()
        if depth > DEEPEST:
            raise TemplateFailure(f"values nest more than {DEEPEST} levels deep")
