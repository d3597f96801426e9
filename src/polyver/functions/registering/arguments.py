"""The reading of arguments: what is found wrong on the way, and what every type has to offer.

Before templates are rendered, a text that holds one may become anything; afterwards it is a text
like any other, and a text is read as the number, list or mapping that is wanted.
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
"""What a value is that cannot be told: it holds a template, or it is wrong."""


def is_template(value: object) -> bool:
    """Whether a value is a text that is still to be rendered."""
    return isinstance(value, str) and "{{" in value


@dataclass(frozen=True, slots=True)
class ArgumentProblem:
    """Something that is wrong with an argument: the place below the arguments, and why."""

    path: Path
    fact: str
    hint: str = ""

    def __str__(self) -> str:
        place = f"{dotted(self.path)}: " if self.path else ""
        return f"{place}{self.fact}{f' ({self.hint})' if self.hint else ''}"


@dataclass(slots=True)
class ArgumentReader:
    """The reading of one set of arguments, and what was found wrong on the way."""

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
        """What it is called in sentences."""

    @property
    def schema(self) -> dict[str, Any]:
        """The same as a JSON schema."""

    def fits(self, value: object) -> bool:
        """Whether a value is of the type as it stands."""

    def read(self, value: object, path: Path, reading: ArgumentReader) -> object:
        """The value as a function gets it."""


def found_words(value: object) -> str:
    """What was found, as sentences name it."""
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
