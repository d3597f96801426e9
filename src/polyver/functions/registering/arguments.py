"""Reading of arguments: the interface of types, and collected problems.

Before rendering, a string with a template may become anything; afterwards it is converted to the
number, list or mapping that the type requires.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Final, Protocol

from polyver.languages.values.manifests import dotted

__all__ = [
    "UNKNOWN",
    "ArgumentProblem",
    "ArgumentReader",
    "ArgumentType",
    "Path",
    "found_words",
    "is_template",
]

Path = tuple[str | int, ...]
UNKNOWN: Final = object()
"""Stands for a value that cannot be used: it contains a template, or is invalid."""


def is_template(value: object) -> bool:
    """Report whether a value is a string that contains a template."""
    return isinstance(value, str) and "{{" in value


@dataclass(frozen=True, slots=True)
class ArgumentProblem:
    """A problem of an argument, with its path below the arguments."""

    path: Path
    fact: str
    hint: str = ""

    def __str__(self) -> str:
        place = f"{dotted(self.path)}: " if self.path else ""
        return f"{place}{self.fact}{f' ({self.hint})' if self.hint else ''}"


@dataclass(slots=True)
class ArgumentReader:
    """Reads one set of arguments, and collects the problems."""

    before_rendering: bool
    wrong: list[ArgumentProblem] = field(default_factory=list)

    def refuse(self, path: Path, fact: str, hint: str = "") -> object:
        self.wrong.append(ArgumentProblem(path, fact, hint))
        return UNKNOWN

    def may_be_anything(self, value: object) -> bool:
        return self.before_rendering and is_template(value)


class ArgumentType(Protocol):
    """A type that an argument may have."""

    @property
    def words(self) -> str:
        """Its name in messages."""

    @property
    def schema(self) -> dict[str, Any]:
        """Its JSON schema."""

    def fits(self, value: object) -> bool:
        """Report whether a value has this type without a conversion."""

    def read(self, value: object, path: Path, reading: ArgumentReader) -> object:
        """Return the value as a function gets it."""


def found_words(value: object) -> str:
    """Return a description of a value for messages."""
    match value:
        case None:
            return "null"
        case bool():
            return "true" if value else "false"
        case int() | float():
            return f"{value}"
        case str():
            return f'"{value}"' if len(value) <= 40 else "a long string"
        case list() | tuple():
            return "a list"
        case _:
            return "a mapping"
