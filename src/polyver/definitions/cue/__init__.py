"""All template engines: the built-in engine for Go templates, the engine for CUE, and plugins.

The package `rendering` calls the engines, and does no I/O itself. The engine for CUE starts a
program, so it is in this package.
"""

from __future__ import annotations

from pathlib import Path

from polyver.definitions.cue._cue import SECONDS, CueEngine
from polyver.definitions.cue._engine_plugins import installed_engines
from polyver.definitions.cue._program import CueFailed, find_cue
from polyver.definitions.rendering import Engines, GoTemplates, TemplateEngine

__all__ = ["CueEngine", "CueFailed", "engines", "find_cue"]


def engines(*, cue: Path | None = None, seconds: float = SECONDS) -> Engines:
    """Return all engines, by the field of `schematic` that each engine renders.

    `cue` is the path of the program `cue`. If it is None, the engine searches the program when a
    template needs it. `seconds` is the timeout of the program for each template. If an installed
    Python package has an engine for the same field, that engine replaces polyver's engine. Several
    threads may use an engine at the same time. An engine may block, so it must not be called on the
    event loop.
    """
    own: dict[str, TemplateEngine] = {
        "gotemplate": GoTemplates(),
        "cue": CueEngine(cue, seconds=seconds),
    }
    return own | installed_engines()
