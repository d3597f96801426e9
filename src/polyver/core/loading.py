"""Lazy imports: names of a Python package that are imported when they are first used."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from importlib import import_module

__all__ = ["imported_on_use"]


def imported_on_use(package: str, homes: Mapping[str, str]) -> Callable[[str], object]:
    """Build the `__getattr__` of a Python package that imports its names when they are first used.

    `homes` maps each module to the names that it defines, separated by spaces. `from package import
    name` then loads only the module that defines this name.
    """
    home = {name: module for module, names in homes.items() for name in names.split()}

    def find(name: str) -> object:
        if name not in home:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        found: object = getattr(import_module(home[name]), name)
        setattr(import_module(package), name, found)
        return found

    return find
