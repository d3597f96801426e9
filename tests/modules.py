"""Modules that a test writes and imports."""

from __future__ import annotations

import sys
from pathlib import Path


def forget_modules(folder: Path) -> None:
    """Have the modules in a folder imported again the next time, and no others.

    polyver's own must stay: a class of a module that is imported twice is two classes.
    """
    for name, module in list(sys.modules.items()):
        # A namespace package has no file, and its paths cannot be asked for without its parent.
        paths = getattr(getattr(module, "__path__", None), "_path", ())
        files = [getattr(module, "__file__", None), *paths]
        if any(Path(each).is_relative_to(folder) for each in files if each):
            del sys.modules[name]
