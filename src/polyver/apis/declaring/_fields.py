"""Read the fields of a class: a plain class, a dataclass, a Struct or a TypedDict.

Python does not keep the docstrings of fields, so they are read from the source of the class. If
there is no source, such as for a class typed in a console, the fields have no descriptions.
"""

from __future__ import annotations

import ast
import dataclasses
import inspect
import keyword
import linecache
import sys
import typing
from collections.abc import Callable, Iterator, Mapping
from functools import lru_cache
from itertools import pairwise
from typing import Any, ClassVar, dataclass_transform, get_origin

import msgspec

from polyver.apis.declaring._markers import ABSENT
from polyver.apis.definition import InvalidKind

__all__ = ["DeclaredField", "Fields", "docstring", "fields_of", "flavour", "shown_name"]


@dataclass_transform(kw_only_default=True)
class Fields:
    """Base class that users may give their declared classes.

    With it, type checkers know the keyword arguments with which objects are created.
    """


@dataclasses.dataclass(frozen=True, slots=True)
class DeclaredField:
    """A field of a class, as a user declared it."""

    name: str
    hint: Any
    default: Any
    key: str
    """The name of the field in objects, which may differ from its name in Python."""
    doc: str


def shown_name(declared: type | Callable[..., Any]) -> str:
    """Return the name of a class or function for messages, without enclosing functions."""
    return declared.__qualname__.rpartition("<locals>.")[2]


def flavour(cls: type) -> str:
    """Return how a class was declared: as `typed dict`, `struct`, `dataclass` or `plain`."""
    if typing.is_typeddict(cls):
        return "typed dict"
    if issubclass(cls, msgspec.Struct):
        return "struct"
    return "dataclass" if dataclasses.is_dataclass(cls) else "plain"


def fields_of(cls: type, names: Mapping[str, Any]) -> list[DeclaredField]:
    """Return the fields of a class in declaration order; fields of base classes come first."""
    defaults = {"typed dict": _missing, "struct": _struct, "dataclass": _dataclass}
    known = defaults.get(flavour(cls), _plain)(cls)
    found: dict[str, DeclaredField] = {}
    for base in reversed(cls.__mro__ if flavour(cls) != "typed dict" else (cls,)):
        docs = _docs_of(base)
        for name, hint in _hints(base, names).items():
            if get_origin(hint) is ClassVar or hint is ClassVar or name.startswith("_"):
                continue
            key, default = known.get(name, (_key(name), ABSENT))
            found[name] = DeclaredField(name, hint, default, key, docs.get(name, ""))
    return list(found.values())


def _hints(cls: type, names: Mapping[str, Any]) -> dict[str, Any]:
    """Return the type hints of a class, without base classes; resolve hints that are strings."""
    module = sys.modules.get(cls.__module__)
    known = vars(module) if module else {}
    # Hints of a class from another module refer to the names of that module.
    is_here = names.get("__name__") == cls.__module__
    around = {**known, **names} if is_here else {**names, **known}
    # A field may have the same name as its type, as in `date: date | None`. So only names of
    # classes are used.
    around |= {name: value for name, value in vars(cls).items() if isinstance(value, type)}
    around[cls.__name__] = cls
    own = dict(vars(cls).get("__annotations__", {}))
    holder = type(cls.__name__, (), {"__annotations__": own})
    try:
        return typing.get_type_hints(holder, around, around, include_extras=True)
    except NameError as error:
        fact = f"{error.name} is not defined where {shown_name(cls)} is declared"
        raise InvalidKind(fact, hint=f"declare {error.name} before it") from None
    except (TypeError, SyntaxError) as error:
        raise InvalidKind(f"invalid type: {error}", at=shown_name(cls)) from None


def _key(name: str) -> str:
    """Return the name that a Python field has in objects.

    For example, the name of `from_` is `from`, because `from` is a Python keyword.
    """
    word = name.removesuffix("_")
    return word if keyword.iskeyword(word) else name


def _plain(cls: type) -> dict[str, tuple[str, Any]]:
    body = {name: value for base in reversed(cls.__mro__) for name, value in vars(base).items()}
    return {name: (_key(name), value) for name, value in body.items()}


def _missing(cls: type) -> dict[str, tuple[str, Any]]:
    """Return the name and the default of each key of a TypedDict.

    A TypedDict states no defaults. So the default is None for a key that is not required, and
    ABSENT (no default) for a required key.
    """
    hints: Mapping[str, Any] = vars(cls).get("__annotations__", {})
    needed: frozenset[str] = vars(cls)["__required_keys__"]
    optional = [name for name in hints if name not in needed or "NotRequired" in str(hints[name])]
    return {name: (name, None if name in optional else ABSENT) for name in hints}


def _struct(cls: type) -> dict[str, tuple[str, Any]]:
    return dict(_struct_fields(cls))


def _struct_fields(cls: Any) -> Iterator[tuple[str, tuple[str, Any]]]:
    pairs = zip(cls.__struct_fields__, cls.__struct_encode_fields__, strict=True)
    defaults = [ABSENT] * (len(cls.__struct_fields__) - len(cls.__struct_defaults__))
    for (name, key), default in zip(pairs, [*defaults, *cls.__struct_defaults__], strict=True):
        made = getattr(default, "factory", lambda default=default: default)
        yield name, (key, ABSENT if default is msgspec.NODEFAULT else made())


def _dataclass(cls: type) -> dict[str, tuple[str, Any]]:
    found: dict[str, tuple[str, Any]] = {}
    for field in dataclasses.fields(cls):
        default = ABSENT if field.default is dataclasses.MISSING else field.default
        if field.default_factory is not dataclasses.MISSING:
            default = field.default_factory()
        found[field.name] = (_key(field.name), default)
    return found


# Docstrings of fields.


_NAMED = (ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)


def docstring(cls: type) -> str:
    """Return the docstring of the class itself. A docstring that the class inherits is ignored."""
    text = vars(cls).get("__doc__") or ""
    # Python gives a dataclass without a docstring its signature.
    return "" if text.startswith(f"{cls.__name__}(") else inspect.cleandoc(text)


def _docs_of(cls: type) -> dict[str, str]:
    """Return the docstrings below the fields of a class, by field name."""
    names = {*vars(cls).get("__annotations__", {})}
    found = [node for node in _classes(cls) if _is(node, cls, names)]
    if not found:
        return {}
    body = found[-1].body
    docs: dict[str, str] = {}
    for field, text in pairwise(body):
        if isinstance(field, ast.AnnAssign) and isinstance(field.target, ast.Name):
            said = _text(text)
            docs |= {field.target.id: inspect.cleandoc(said)} if said else {}
    return docs


def _text(node: ast.stmt) -> str:
    match node:
        case ast.Expr(value=ast.Constant(value=str(text))):
            return text
        case _:
            return ""


def _is(node: ast.ClassDef, cls: type, names: set[str]) -> bool:
    fields = {
        each.target.id
        for each in node.body
        if isinstance(each, ast.AnnAssign) and isinstance(each.target, ast.Name)
    }
    said = ast.get_docstring(node) or ""
    return fields == names and (not said or said == docstring(cls))


def _classes(cls: type) -> Iterator[ast.ClassDef]:
    """Yield the class statements in the source file that may define a class.

    Several class statements may have the same name.
    """
    module = sys.modules.get(cls.__module__)
    file = getattr(module, "__file__", None)
    if not file:
        return iter(())
    steps = [step for step in cls.__qualname__.split(".") if step != "<locals>"]
    return _inside(_tree("".join(linecache.getlines(file))), steps)


def _inside(node: ast.AST, steps: list[str]) -> Iterator[ast.ClassDef]:
    for child in ast.iter_child_nodes(node):
        if not isinstance(child, _NAMED):
            # A class statement may also be inside of an `if`, `try` or `with` statement.
            yield from _inside(child, steps)
        elif child.name != steps[0]:
            continue
        elif len(steps) > 1:
            yield from _inside(child, steps[1:])
        elif isinstance(child, ast.ClassDef):
            yield child


@lru_cache(maxsize=32)
def _tree(text: str) -> ast.Module:
    try:
        return ast.parse(text)
    except SyntaxError:
        return ast.Module([], [])
