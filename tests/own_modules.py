"""A fixture that forgets the modules that commands imported from the folder of a test."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest


@pytest.fixture(autouse=True)
def own_modules(tmp_path: Path) -> Iterator[None]:
    """Modules that a command imported from the folder of a test are not those of the next one."""
    path = sys.path[:]
    yield
    sys.path[:] = path
    for name, module in [*sys.modules.items()]:
        if Path(getattr(module, "__file__", None) or "/").is_relative_to(tmp_path):
            del sys.modules[name]
