"""Docstrings of fields: Python forgets them, so they are looked up where the class is written.

A class without a source, as in a console, is as good; its fields have no descriptions.
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
    """What a class says of itself, and not what one that it is made from says."""
    text = vars(cls).get("__doc__") or ""
    # A dataclass without one gets its own signature.
    return "" if text.startswith(f"{cls.__name__}(") else inspect.cleandoc(text)


def docs_of(cls: type) -> dict[str, str]:
    """The texts below the fields of a class, by the names of the fields."""
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
    """The statements that may have made a class: several may have its name."""
    module = sys.modules.get(cls.__module__)
    file = getattr(module, "__file__", None)
    if not file:
        return iter(())
    steps = [step for step in cls.__qualname__.split(".") if step != "<locals>"]
    return _inside(_tree("".join(linecache.getlines(file))), steps)


def _inside(node: ast.AST, steps: list[str]) -> Iterator[ast.ClassDef]:
    for child in ast.iter_child_nodes(node):
        if not isinstance(child, _NAMED):
            # An if, a try or a with may stand around it.
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
