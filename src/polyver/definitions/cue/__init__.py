"""The template engines: those built in, programs, and plugins.

`rendering` calls them; the engines that have to start a program are in this package.
"""

from __future__ import annotations

from pathlib import Path

from polyver.definitions.cue._cue import SECONDS, CueEngine
from polyver.definitions.cue._engine_plugins import installed_engines
from polyver.definitions.cue._program import CueFailed, find_cue
from polyver.definitions.rendering import Engines, GoTemplates, TemplateEngine

__all__ = ["CueEngine", "CueFailed", "engines", "find_cue"]


def engines(*, cue: Path | None = None, seconds: float = SECONDS) -> Engines:
    """Return all engines, by the field of `schematic` that each renders.

    `cue` is the path of the program; if it is None, the program is looked up when a template needs
    it. `seconds` is its timeout for each template. Engines of installed packages replace polyver's
    own. Several threads may use an engine at once. Calls may block: keep them off the event loop.
    """
    own: dict[str, TemplateEngine] = {
        "gotemplate": GoTemplates(),
        "cue": CueEngine(cue, seconds=seconds),
    }
    return own | installed_engines()
