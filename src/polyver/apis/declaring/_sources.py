"""Docstrings of fields, read from the source of a class, as Python does not keep them.

A class without source, as in a console, works as well; its fields have no descriptions.
"""

from __future__ import annotations

import ast
import inspect
import linecache
import sys
from collections.abc import Iterator
from functools import lru_cache
from itertools import pairwise

__all__ = ["docs_of", "docstring"]

_NAMED = (ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)


def docstring(cls: type) -> str:
    """Return the docstring of a class itself, not that of a base class."""
    text = vars(cls).get("__doc__") or ""
    # Python gives a dataclass without a docstring its signature.
    return "" if text.startswith(f"{cls.__name__}(") else inspect.cleandoc(text)


def docs_of(cls: type) -> dict[str, str]:
    """Return the docstrings below the fields of a class, by the names of the fields."""
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
    """Yield the statements that may have created a class: several may have its name."""
    module = sys.modules.get(cls.__module__)
    file = getattr(module, "__file__", None)
    if not file:
        return iter(())
    steps = [step for step in cls.__qualname__.split(".") if step != "<locals>"]
    return _inside(_tree("".join(linecache.getlines(file))), steps)


def _inside(node: ast.AST, steps: list[str]) -> Iterator[ast.ClassDef]:
    for child in ast.iter_child_nodes(node):
        if not isinstance(child, _NAMED):
            # An if, a try or a with may contain it.
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
