"""One version of a blueprint function: its code, its arguments and where it was registered."""

from __future__ import annotations

import copy
import inspect
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from polyver.core import PolyverError, SemVer
from polyver.functions.registering._hints import (
    InvalidFunction,
    field_of,
    fields_of_model,
    hints_of,
    maker_of,
    type_of,
)
from polyver.functions.registering._types import ArgumentField, read_fields
from polyver.functions.registering.arguments import ArgumentProblem, ArgumentReader, ArgumentType

__all__ = ["Arguments", "Function", "FunctionOutputs", "InvalidArguments", "arguments_of"]

_P = inspect.Parameter


class InvalidArguments(PolyverError):
    """A function does not accept the arguments of a call. `wrong` has all problems."""

    def __init__(self, function: str, wrong: tuple[ArgumentProblem, ...]) -> None:
        facts = "; ".join(map(str, wrong))
        super().__init__(f"{function} does not accept these arguments: {facts}")
        self.wrong = wrong


@dataclass(frozen=True, slots=True)
class Arguments:
    """The arguments that a function declares, without its first argument, the context."""

    fields: tuple[ArgumentField, ...]
    further: ArgumentType | None = None
    """Type of all arguments that are not in `fields`. None if the function refuses such arguments.
    """
    make: Callable[[dict[str, object]], object] | None = None
    """Builds the object of the model from the arguments. None if the function takes no model."""

    def check(self, given: Mapping[str, object]) -> tuple[ArgumentProblem, ...]:
        """Return the problems of arguments whose templates are not rendered yet."""
        reading = ArgumentReader(before_rendering=True)
        self._read(given, reading)
        return tuple(reading.wrong)

    def bind(self, given: Mapping[str, object], reading: ArgumentReader) -> dict[str, object]:
        """Convert rendered arguments to the values for the call, by their Python names."""
        found = self._read(given, reading)
        left_out = [each for each in self.fields if given.get(each.name) is None]
        return found | {each.python: copy.deepcopy(each.default) for each in left_out}

    def _read(self, given: Mapping[str, object], reading: ArgumentReader) -> dict[str, object]:
        return read_fields(self.fields, given, (), reading, what="argument", further=self.further)


@dataclass(frozen=True, slots=True)
class FunctionOutputs:
    """The keys of the returned mapping, as the author of the function declares them."""

    names: tuple[str, ...]
    others: bool = False
    """True if the returned mapping may have further keys."""


@dataclass(frozen=True, slots=True, eq=False)
class Function:
    """One version of a blueprint function, with the Python code to call."""

    name: str
    version: SemVer
    code: Callable[..., Any]
    arguments: Arguments
    place: str
    """File and line of the registration: `backup.py:12`."""
    said: bool = False
    """True if the registration names a version. Otherwise, the version is v0.0.0."""
    stable: bool = False
    idempotent: bool = False
    """True if polyver may call the function again when it does not know how far a call got."""
    sensitive: tuple[str, ...] = ()
    """Names of the outputs that polyver must not show; `*` means all outputs."""
    outputs: FunctionOutputs | None = None
    """The outputs that the author declares. None if the author declares no outputs."""

    @property
    def label(self) -> str:
        return f"{self.name} v{self.version}"

    @property
    def description(self) -> str:
        return inspect.getdoc(_written(self.code)) or ""

    @property
    def is_async(self) -> bool:
        """True if the function is declared with `async def`, so a call returns an awaitable."""
        return inspect.iscoroutinefunction(_written(self.code))

    def check(self, given: Mapping[str, object]) -> tuple[ArgumentProblem, ...]:
        """Return the problems of the arguments in a blueprint, which may contain templates."""
        return self.arguments.check(given)

    def call(self, ctx: object, rendered: Mapping[str, object]) -> Any:
        """Call the function with rendered arguments. For an async function, return an awaitable.

        If the function does not accept the arguments, raise InvalidArguments instead of calling it.
        """
        reading = ArgumentReader(before_rendering=False)
        found = self.arguments.bind(rendered, reading)
        made: object = None
        if self.arguments.make is not None and not reading.wrong:
            try:
                made = self.arguments.make(found)
            except (TypeError, ValueError, PolyverError) as error:
                reading.refuse((), str(error))
        if reading.wrong:
            raise InvalidArguments(self.label, tuple(reading.wrong))
        return self.code(ctx, **found) if self.arguments.make is None else self.code(ctx, made)


def arguments_of(
    code: Callable[..., Any], model: Any, at: str, names: Mapping[str, Any]
) -> Arguments:
    """Find the arguments of a function in its signature, or in its model."""
    try:
        parameters = list(inspect.signature(code).parameters.values())
    except (TypeError, ValueError):
        raise InvalidFunction("its signature cannot be read", at=at) from None
    if not parameters or parameters[0].kind not in (_P.POSITIONAL_ONLY, _P.POSITIONAL_OR_KEYWORD):
        hint = "write def name(ctx, …)"
        raise InvalidFunction("the first argument of a function is its context", at=at, hint=hint)
    if model is not None:
        if len(parameters) != 2 or parameters[1].kind is _P.KEYWORD_ONLY:
            raise InvalidFunction("with a model, it takes only its context and the model", at=at)
        fields = fields_of_model(model, at, names)
        return Arguments(_distinct(fields, at), make=maker_of(model))
    return _signature(parameters[1:], hints_of(_written(code), at, names), at, names)


def _signature(
    parameters: list[inspect.Parameter],
    hints: Mapping[str, Any],
    at: str,
    names: Mapping[str, Any],
) -> Arguments:
    fields: list[ArgumentField] = []
    further: ArgumentType | None = None
    for each in parameters:
        hint = hints.get(each.name, each.empty)
        match each.kind:
            case _P.VAR_KEYWORD:
                further = type_of(hint, f"{at}, argument {each.name}", names)
            case _P.VAR_POSITIONAL | _P.POSITIONAL_ONLY:
                fact = f"{each.name} cannot be passed by name"
                raise InvalidFunction(fact, at=at, hint="blueprints pass arguments by name")
            case _:
                fields.append(field_of(each.name, hint, each.default, at, names))
    return Arguments(_distinct(tuple(fields), at), further)


def _distinct(fields: tuple[ArgumentField, ...], at: str) -> tuple[ArgumentField, ...]:
    seen: set[str] = set()
    for each in fields:
        if each.name in seen:
            raise InvalidFunction(f"two arguments have the name {each.name}", at=at)
        seen.add(each.name)
    return fields


def _written(code: Callable[..., Any]) -> Any:
    """Return the function inside of a partial, a wrapper, or an object with `__call__`."""
    told = inspect.unwrap(getattr(code, "func", code))
    if inspect.isroutine(told) or isinstance(told, type):
        return told
    return getattr(told, "__call__", told)  # noqa: B004 - of an object that is called
