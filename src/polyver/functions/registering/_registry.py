"""Registries of blueprint functions; there is no global registry.

The decorator `register` of this module stores a registry in the module in which it is used. So
polyver knows exactly the functions of the modules that it has loaded.
"""

from __future__ import annotations

import inspect
import sys
from collections.abc import Callable, Iterable, Iterator
from types import EllipsisType, FrameType, ModuleType
from typing import Any, NamedTuple, TypeVar

from polyver.core import InvalidVersion, SemVer
from polyver.functions.registering._hints import InvalidFunction
from polyver.functions.registering.function import Function, FunctionOutputs, arguments_of

__all__ = ["Registry", "register"]

F = TypeVar("F", bound=Callable[..., Any])
_KEPT = "__polyver_functions__"
_MARK = "__polyver_registered__"
_UNVERSIONED = SemVer.parse("v0.0.0")
_NAME = 253


class Registry:
    """A collection of blueprint functions, in the order of their registration.

    >>> registry = Registry()
    >>> @registry.register("Greet")
    ... def greet(ctx, name: str = "you") -> dict[str, str]:
    ...     return {"text": f"Hello, {name}!"}
    >>> [function.label for function in registry]
    ['Greet v0.0.0']
    """

    def __init__(self, functions: Iterable[Function] = ()) -> None:
        self._functions = list(functions)

    def __iter__(self) -> Iterator[Function]:
        return iter(self._functions)

    def __len__(self) -> int:
        return len(self._functions)

    def __repr__(self) -> str:
        return f"Registry({[function.label for function in self]})"

    def register(
        self,
        name: str,
        *,
        version: str | None = None,
        stable: bool = False,
        idempotent: bool = False,
        sensitive: Iterable[str] | bool = (),
        model: type | None = None,
        outputs: Iterable[str | EllipsisType] | None = None,
    ) -> Callable[[F], F]:
        """Register the decorated function as one version of a blueprint function.

        The function `register` of this module describes the arguments.
        """
        said = _Said(name, version, stable, idempotent, sensitive, model, outputs)
        return self._registers(sys._getframe(1), said)

    def _registers(self, frame: FrameType, said: _Said) -> Callable[[F], F]:
        place = f"{frame.f_code.co_filename}:{frame.f_lineno}"
        names = {**frame.f_globals, **frame.f_locals}
        _check_name(said.name, place)
        version = _version(said.version, place)
        outputs = _outputs(said.outputs, place)

        def decorate(code: F) -> F:
            if not callable(code):
                raise InvalidFunction(f"{said.name} is not a function", at=place)
            known = arguments_of(code, said.model, place, names)
            has_version = said.version is not None
            hidden = _sensitive(said.sensitive, place)
            options = (has_version, said.stable, said.idempotent, hidden, outputs)
            function = Function(said.name, version, code, known, place, *options)
            self._functions.append(function)
            _mark(code, function)
            return code

        return decorate

    @classmethod
    def of(cls, module: ModuleType) -> Registry:
        """Collect the functions of a module.

        These are the functions that were registered in the module or in its loaded submodules.
        Functions and registries that the module imports from other modules are included.
        """
        below = f"{module.__name__}."
        inside = [each for name, each in [*sys.modules.items()] if name.startswith(below)]
        found: dict[int, Function] = {}
        for each in (module, *inside):
            found |= {id(function): function for function in _kept(each)}
        for value in vars(module).values():
            found |= {id(function): function for function in _named(value)}
        return cls(found.values())


def register(
    name: str,
    *,
    version: str | None = None,
    stable: bool = False,
    idempotent: bool = False,
    sensitive: Iterable[str] | bool = (),
    model: type | None = None,
    outputs: Iterable[str | EllipsisType] | None = None,
) -> Callable[[F], F]:
    """Register the decorated function as a version of a function that blueprints may call.

    The default of `version` is v0.0.0. `stable` declares that this version is the stable version;
    if a catalogue lists the function, the stage in the catalogue has precedence. `idempotent`
    declares that polyver may call the function again after an interrupted call. `sensitive` names
    the outputs that polyver stores in a Secret instead of the status; True means all outputs. The
    first argument of the function is always its context. If `model` is a class, the fields of the
    class are the arguments for blueprints, and the function gets one object of the class as its
    second argument; otherwise its signature defines the arguments for blueprints. `outputs` are
    the keys of the returned mapping; add `...` if there may be other keys. polyver refuses a
    blueprint if its templates read a key that is not among the `outputs`.
    """
    frame = sys._getframe(1)
    registry: Registry = frame.f_globals.setdefault(_KEPT, Registry())
    said = _Said(name, version, stable, idempotent, sensitive, model, outputs)
    return registry._registers(frame, said)


class _Said(NamedTuple):
    """The arguments of one use of the decorator `register`."""

    name: str
    version: str | None
    stable: bool
    idempotent: bool
    sensitive: Iterable[str] | bool
    model: type | None
    outputs: Iterable[str | EllipsisType] | None


def _outputs(said: object, place: str) -> FunctionOutputs | None:
    if said is None:
        return None
    keys = [*said] if isinstance(said, Iterable) and not isinstance(said, str) else [None]
    names = [each for each in keys if isinstance(each, str) and each]
    if len(names) + keys.count(...) != len(keys):
        hint = 'write outputs=["size", "path"], and ... as the last one if there may be others'
        raise InvalidFunction("outputs must be a list of names", at=place, hint=hint)
    return FunctionOutputs(tuple(names), ... in keys)


def _check_name(name: object, place: str) -> None:
    if not isinstance(name, str):
        hint = 'write @register("Name")'
        raise InvalidFunction("the name of the function is missing", at=place, hint=hint)
    if not name or len(name) > _NAME or not name.isprintable() or set(name) & set(" @/{}"):
        fact = f"{name!r} is not a valid name for a function"
        raise InvalidFunction(fact, at=place, hint="without spaces, @ or /")


def _sensitive(said: Iterable[str] | bool, place: str) -> tuple[str, ...]:
    if isinstance(said, bool):
        return ("*",) if said else ()
    found = said if isinstance(said, str) else tuple(said)
    if isinstance(found, str) or not all(isinstance(each, str) for each in found):
        fact, hint = "sensitive must be a list of outputs, or True", 'write sensitive=["password"]'
        raise InvalidFunction(fact, at=place, hint=hint)
    return found


def _version(text: str | None, place: str) -> SemVer:
    if text is None:
        return _UNVERSIONED
    if not isinstance(text, str):
        raise InvalidFunction("a version must be a string", at=place, hint='write version="v0.1.0"')
    try:
        return SemVer.complete(text)
    except InvalidVersion as error:
        raise InvalidFunction(error.fact, at=place) from None


def _mark(code: object, function: Function) -> None:
    """Mark a Python function as registered, so that it is found in modules that import it.

    If the object does not allow new attributes, it stays unmarked.
    """
    try:
        marks = vars(code).setdefault(_MARK, [])
    except (AttributeError, TypeError):
        return
    marks.append(function)


def _kept(module: ModuleType) -> Iterator[Function]:
    kept = getattr(module, _KEPT, None)
    if isinstance(kept, Registry):
        yield from kept


def _named(value: object) -> Iterator[Function]:
    if isinstance(value, Registry):
        yield from value
    elif inspect.isroutine(value):
        marks = getattr(value, _MARK, ())
        yield from (each for each in marks if isinstance(each, Function))
