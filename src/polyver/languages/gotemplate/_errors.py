"""Errors in templates and in rendering, with the position in the template."""

from __future__ import annotations

from polyver.core import PolyverError

__all__ = ["InvalidTemplate", "RenderFailed", "TemplateError", "located"]

_LONGEST = 60


class TemplateError(PolyverError):
    """An error in a template, with its line and column, counted from 1."""

    def __init__(
        self, fact: str, *, name: str, line: int, column: int, near: str, hint: str = ""
    ) -> None:
        super().__init__(fact, at=f"{name}:{line}:{column}, near {near}", hint=hint)
        self.line = line
        self.column = column
        self.near = near


class InvalidTemplate(TemplateError):
    """A template has invalid syntax, an unknown function or an undefined variable."""


class RenderFailed(TemplateError):
    """A template cannot be rendered with the given data."""


def located(source: str, at: int) -> tuple[int, int, str]:
    """Return the line and column of a position, and the text around the position.

    The text is the `{{ … }}` that contains the position, or else its line.

    >>> located("a\\nb {{ .x }} c", 8)
    (2, 7, '{{ .x }}')
    """
    at = min(at, len(source))
    start = source.rfind("\n", 0, at) + 1
    return source.count("\n", 0, at) + 1, at - start + 1, _near(source, at, start)


def _near(source: str, at: int, start: int) -> str:
    opened = source.rfind("{{", 0, at + 2)
    closed = source.find("}}", opened) if opened >= 0 else -1
    if opened >= 0 and (closed < 0 or closed + 2 > at):
        end = closed + 2 if closed >= 0 else len(source)
        return _shortened(source[opened:end], at - opened)
    end = source.find("\n", at)
    return _shortened(source[start : end if end >= 0 else len(source)], at - start)


def _shortened(text: str, at: int) -> str:
    """Shorten a string to the part around the position `at`.

    `…` marks where something is missing.
    """
    text = text.replace("\n", " ")
    if len(text) <= _LONGEST:
        return text or "the end"
    start = max(0, min(at - _LONGEST // 2, len(text) - _LONGEST))
    end = start + _LONGEST
    return f"{'…' if start else ''}{text[start:end]}{'…' if end < len(text) else ''}"
