"""Converts type hints to argument types, for the signatures of functions and for models.

A model is a class that declares the fields of a mapping: a dataclass, a Struct or a TypedDict.
"""

from __future__ import annotations

import dataclasses
import inspect
import keyword
import types
import typing
from collections.abc import Callable, Mapping, MutableMapping, MutableSequence, Sequence
from dataclasses import dataclass
from enum import Enum
from typing import Any, Literal, Union, get_args, get_origin

import msgspec

from polyver.core import PolyverError
from polyver.core.annotated import Description
from polyver.functions.registering._types import (
    ArgumentField,
    ChoiceType,
    ListOf,
    MapOf,
    OneOf,
    Record,
)
from polyver.functions.registering.arguments import (
    ANYTHING,
    DURATION,
    FLAG,
    NUMBER,
    TEXT,
    WHOLE,
    ArgumentReader,
    ArgumentType,
    Duration,
)

__all__ = [
    "REQUIRED",
    "Alias",
    "Description",
    "InvalidFunction",
    "Unrendered",
    "field_of",
    "fields_of_model",
    "hints_of",
    "maker_of",
    "type_of",
]

REQUIRED: Any = inspect.Parameter.empty
"""Stands for the default of an argument that must be passed."""


class InvalidFunction(PolyverError):
    """A function cannot be registered. `at` is the file and the line of the registration."""


@dataclass(frozen=True, slots=True)
class Alias:
    """Sets the name of an argument in blueprints, if that name is not a valid name in Python.

    >>> from typing import Annotated
    >>> Header = Annotated[str, Alias("x-trace")]
    """

    name: str


@dataclass(frozen=True, slots=True)
class Unrendered:
    """Marks an argument whose templates the function renders itself, instead of polyver.

    >>> from typing import Annotated
    >>> Condition = Annotated[str, Unrendered()]

    `sees_params=True` means that the function renders the templates with `ctx.params`. polyver then
    checks them before the action runs, except the templates under the keys in `but`. With
    `sees_params=False`, polyver checks no template of the argument.
    """

    sees_params: bool = False
    but: tuple[str, ...] = ()


_SCALARS: Mapping[Any, ArgumentType] = {
    str: TEXT,
    int: WHOLE,
    float: NUMBER,
    bool: FLAG,
    Duration: DURATION,
    Any: ANYTHING,
    object: ANYTHING,
    REQUIRED: ANYTHING,
    list: ListOf(ANYTHING),
    dict: MapOf(ANYTHING),
}
_LISTS = (list, Sequence, MutableSequence)
_MAPPINGS = (dict, Mapping, MutableMapping)
_WRAPPERS = (typing.Required, typing.NotRequired, typing.Final)


def type_of(hint: Any, at: str, names: Mapping[str, Any]) -> ArgumentType:
    """Convert a type hint to an argument type.

    `at` is the position of the hint, for error messages. `names` are the names that the hint may
    use.
    """
    if _is_key(hint) and hint in _SCALARS:
        return _SCALARS[hint]
    same = getattr(hint, "__supertype__", None) or getattr(hint, "__value__", None)
    if same is not None and not isinstance(hint, type):
        return type_of(same, at, names)  # NewType and `type X = …`
    form = _FORMS.get(get_origin(hint))
    return form(hint, at, names) if form else _class(hint, at, names)


def _class(hint: Any, at: str, names: Mapping[str, Any]) -> ArgumentType:
    if isinstance(hint, type) and issubclass(hint, Enum):
        return ChoiceType({member.value: member for member in hint})
    if _is_model(hint):
        return Record(hint.__name__, fields_of_model(hint, at, names), maker_of(hint))
    known = "str, int, float, bool, Duration, list, dict, Literal, an Enum, a model, or unions"
    raise InvalidFunction(f"{_shown(hint)} is not a type for an argument", at=at, hint=known)


def _wrapped(hint: Any, at: str, names: Mapping[str, Any]) -> ArgumentType:
    """Convert the inner type of a hint such as Annotated[…] or Required[…].

    The outer part does not change the type.
    """
    return type_of(get_args(hint)[0], at, names)


def _literal(hint: Any, at: str, names: Mapping[str, Any]) -> ArgumentType:
    del at, names
    return ChoiceType({value: value for value in get_args(hint)})


def _list(hint: Any, at: str, names: Mapping[str, Any]) -> ArgumentType:
    return ListOf(type_of(get_args(hint)[0], f"{at}[]", names))


def _is_key(hint: Any) -> bool:
    try:
        hash(hint)
    except TypeError:
        return False
    return True


def _union(hint: Any, at: str, names: Mapping[str, Any]) -> ArgumentType:
    members = [each for each in get_args(hint) if each is not types.NoneType]
    found = tuple(type_of(each, at, names) for each in members)
    return found[0] if len(found) == 1 else OneOf(found)


def _mapping(hint: Any, at: str, names: Mapping[str, Any]) -> ArgumentType:
    key, value = get_args(hint)
    if key is not str:
        raise InvalidFunction(f"the keys of {_shown(hint)} are not strings", at=at)
    return MapOf(type_of(value, f"{at}{{}}", names))


_FORMS: Mapping[Any, Callable[[Any, str, Mapping[str, Any]], ArgumentType]] = {
    **dict.fromkeys((typing.Annotated, *_WRAPPERS), _wrapped),
    **dict.fromkeys((Union, types.UnionType), _union),
    **dict.fromkeys(_LISTS, _list),
    **dict.fromkeys(_MAPPINGS, _mapping),
    Literal: _literal,
}


def _takes_none(hint: Any) -> bool:
    origin = get_origin(hint)
    if origin is typing.Annotated or origin in _WRAPPERS:
        return _takes_none(get_args(hint)[0])
    if origin in (Union, types.UnionType):
        return any(each is types.NoneType or _takes_none(each) for each in get_args(hint))
    return False


def field_of(
    python: str, hint: Any, default: Any, at: str, names: Mapping[str, Any]
) -> ArgumentField:
    """Build an argument or a field of a model from its hint.

    If the hint allows None, the argument is optional.
    """
    place = f"{at}, argument {python}"
    marks = _marks(hint)
    alias = next((each.name for each in marks if isinstance(each, Alias)), "")
    said = next((each.description for each in marks if getattr(each, "description", "")), "")
    kind, nullable = type_of(hint, place, names), _takes_none(hint)
    if default is REQUIRED:
        required, default = not nullable, None
    else:
        required, default = False, _default(default, kind, at=place)
    raw = next((each for each in marks if isinstance(each, Unrendered)), None)
    renders = frozenset(raw.but) if raw is not None and raw.sees_params else None
    name = alias or _plain(python)
    about = (kind, required, default, said, nullable, raw is not None, renders)
    return ArgumentField(name, python, *about)


def _marks(hint: Any) -> tuple[Any, ...]:
    found: tuple[Any, ...] = ()
    while get_origin(hint) is typing.Annotated or get_origin(hint) in _WRAPPERS:
        found += getattr(hint, "__metadata__", ())
        hint = get_args(hint)[0]
    return found


def _plain(name: str) -> str:
    """Remove the last underscore of a name such as `from_`, if the rest is a Python keyword."""
    word = name.removesuffix("_")
    return word if keyword.iskeyword(word) else name


def _default(default: Any, kind: ArgumentType, *, at: str) -> object:
    """Convert a default to the value that the function gets: `"1m"` to a Duration of 60 seconds."""
    if default is None:
        return None
    if isinstance(default, Enum) or _is_model(type(default)):
        return default
    reading = ArgumentReader(before_rendering=False)
    found = kind.read(default, (), reading)
    if reading.wrong:
        raise InvalidFunction(f"its default is invalid: {reading.wrong[0].fact}", at=at)
    return found


# Models: classes that declare the fields of a mapping.


def _is_model(hint: Any) -> bool:
    if not isinstance(hint, type):
        return False
    return (
        typing.is_typeddict(hint)
        or dataclasses.is_dataclass(hint)
        or issubclass(hint, msgspec.Struct)
    )


def fields_of_model(model: Any, at: str, names: Mapping[str, Any]) -> tuple[ArgumentField, ...]:
    """Return the fields of a model: a dataclass, a Struct or a TypedDict."""
    if not _is_model(model):
        fact = f"{_shown(model)} is not a model"
        raise InvalidFunction(
            fact, at=at, hint="write a dataclass, a msgspec.Struct or a TypedDict"
        )
    hints, known = hints_of(model, at, names), _written(model)
    fields = []
    for name, hint in hints.items():
        if name in known:
            key, default = known[name]
            field = field_of(name, hint, default, f"{at}, {model.__name__}", names)
            fields.append(dataclasses.replace(field, name=key) if key != name else field)
    return tuple(fields)


def hints_of(declared: Any, at: str, names: Mapping[str, Any]) -> dict[str, Any]:
    """Resolve the type hints of a function or a class.

    `names` are the names in the module that declares it.
    """
    is_here = getattr(declared, "__module__", None) == names.get("__name__")
    try:
        return typing.get_type_hints(
            declared, localns=dict(names) if is_here else None, include_extras=True
        )
    except NameError as error:
        fact = f"{error.name} is not known where {_shown(declared)} is declared"
        hint = f"import or declare {error.name} above it"
        raise InvalidFunction(fact, at=at, hint=hint) from None
    except (TypeError, SyntaxError) as error:
        raise InvalidFunction(f"invalid type: {error}", at=at) from None


def _written(model: Any) -> dict[str, tuple[str, Any]]:
    """Return, for each field of a model, its name in blueprints and its default."""
    if typing.is_typeddict(model):
        needed = _needed(model)
        names = (*model.__required_keys__, *model.__optional_keys__)
        return {name: (name, REQUIRED if name in needed else None) for name in names}
    if issubclass(model, msgspec.Struct):
        return {
            each.name: (each.encode_name, _made(each.default, each.default_factory))
            for each in msgspec.structs.fields(model)
        }
    return {
        each.name: (each.name, _made(each.default, each.default_factory))
        for each in dataclasses.fields(model)
        if each.init
    }


def _needed(model: Any) -> set[str]:
    """Return the required keys of a TypedDict.

    Python's `__required_keys__` is wrong in one case: if a hint is a string such as
    "NotRequired[int]", it contains the key although the key is optional.
    """
    hints = model.__annotations__
    hidden = {name for name, hint in hints.items() if "NotRequired[" in str(hint)}
    return {*model.__required_keys__} - hidden


def _made(default: Any, factory: Any) -> Any:
    absent = (id(dataclasses.MISSING), id(msgspec.NODEFAULT))
    if id(factory) not in absent:
        return factory()
    return REQUIRED if id(default) in absent else default


def maker_of(model: Any) -> Callable[[dict[str, object]], object]:
    """Return a callable that builds an object of the model from its fields.

    If the model is a TypedDict, optional fields with the value None are left out.
    """
    if typing.is_typeddict(model):
        needed = _needed(model)
        return lambda found: {
            name: value for name, value in found.items() if value is not None or name in needed
        }
    return lambda found: model(**found)


def _shown(hint: Any) -> str:
    if isinstance(hint, type) or inspect.isroutine(hint):
        return hint.__name__
    return str(hint).replace("typing.", "")
