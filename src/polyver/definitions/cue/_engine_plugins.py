"""Template engines from installed Python packages.

If such an engine fails, only the templates of its own language cannot be rendered.
"""

from __future__ import annotations

import threading
from collections.abc import Mapping
from importlib.metadata import EntryPoint, entry_points
from typing import Any, Final

from polyver.core import PolyverError
from polyver.definitions.rendering import TemplateEngine, TemplateInput, TemplateOutput

__all__ = ["GROUP", "installed_engines"]

GROUP: Final = "polyver.engines"
"""Entry point group of engines.

An entry point has the name of the field of `schematic` that its engine renders.
"""


def installed_engines() -> dict[str, TemplateEngine]:
    """Return the engines of installed Python packages, by the field of `schematic`.

    Each engine is loaded when the first template needs it.
    """
    entries = sorted(entry_points(group=GROUP), key=lambda each: each.name)
    return {entry.name: _Installed(entry) for entry in entries}


class _Installed:
    """An engine of an installed Python package. It is loaded when a template needs it."""

    def __init__(self, entry: EntryPoint) -> None:
        self._entry = entry
        self._lock = threading.Lock()
        self._engine: TemplateEngine | None = None

    def render(self, schematic: Mapping[str, Any], given: TemplateInput) -> TemplateOutput:
        try:
            return self._loaded().render(schematic, given)
        except PolyverError:
            raise
        except (Exception, SystemExit) as error:
            fact = f"the engine {self._entry.name} ({self._entry.value}) failed"
            what = f"{type(error).__name__}: {error}"
            raise PolyverError(f"{fact}: {what}", at=given.at) from error

    def _loaded(self) -> TemplateEngine:
        with self._lock:
            if self._engine is None:
                made: TemplateEngine = self._entry.load()()
                self._engine = made
            return self._engine
