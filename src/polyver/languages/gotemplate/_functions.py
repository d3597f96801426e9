"""Declaration of functions that templates can call, with the Go types of their arguments."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any, TypeVar

from polyver.languages.gotemplate._values import Int, NilDict, Version

__all__ = ["FunctionTable", "TemplateFunction", "fits"]

Made = TypeVar("Made", bound=Callable[..., object])

_FITTING: Mapping[str, Callable[[object], bool]] = {
    "any": lambda _: True,
    "bool": lambda value: type(value) is bool,
    "int": lambda value: type(value) is Int,
    "float64": lambda value: type(value) is float,
    "string": lambda value: type(value) is str,
    "map[string]interface {}": lambda value: type(value) in (dict, NilDict),
    "time.Time": lambda value: isinstance(value, datetime),
    "*semver.Version": lambda value: isinstance(value, Version),
}
_SHORT = {"dict": "map[string]interface {}", "time": "time.Time", "version": "*semver.Version"}


def fits(wanted: str, value: object) -> bool:
    """Report whether a function accepts a value for a parameter of the Go type `wanted`."""
    return _FITTING[wanted](value)


@dataclass(frozen=True, slots=True)
class TemplateFunction:
    """A template function and the Go types of its arguments.

    A variadic function takes any number of arguments of the last type.
    """

    name: str
    takes: tuple[str, ...]
    variadic: bool
    run: Callable[..., Any]
    budgeted: bool
    """True if `run` takes the `RenderBudget` as its first argument.

    These are functions that may take many steps or return a large result.
    """
    group: str

    def type_at(self, index: int) -> str:
        return self.takes[min(index, len(self.takes) - 1)]


class FunctionTable:
    """The template functions of one group, such as "encodings"."""

    def __init__(self, group: str) -> None:
        self.group = group
        self.functions: dict[str, TemplateFunction] = {}

    def add(self, names: str, takes: str = "", *, budgeted: bool = False) -> Callable[[Made], Made]:
        """Build a decorator that declares a function: `@TABLE.add("trunc", "int string")`.

        `names` has one or more names, and `takes` has the Go types of the arguments, both separated
        by spaces. `...` after the last type means any number of such arguments.
        """
        types = [_SHORT.get(word, word) for word in takes.replace("...", " ...").split()]
        variadic = "..." in types
        wanted = tuple(word for word in types if word != "...")

        def declare(made: Made) -> Made:
            for name in names.split():
                self.functions[name] = TemplateFunction(
                    name, wanted, variadic, made, budgeted, self.group
                )
            return made

        return declare

    def put(self, names: str, takes: str, made: Callable[..., object]) -> None:
        """Declare a function without a decorator, such as a lambda.

        `names` and `takes` are as in `add`.
        """
        self.add(names, takes)(made)
