"""The engines that render components and traits, put together: those built in, and programs.

Rendering itself is decided in capabilities; what has to start a program to do so is here.
"""

from __future__ import annotations

from pathlib import Path

from polyver.definitions.cue._cue import SECONDS, CueEngine
from polyver.definitions.cue._engine_plugins import installed_engines
from polyver.definitions.cue._program import CueFailed, find_cue
from polyver.definitions.rendering import Engines, GoTemplates, TemplateEngine

__all__ = ["CueEngine", "CueFailed", "engines", "find_cue"]


def engines(*, cue: Path | None = None, seconds: float = SECONDS) -> Engines:
    """All engines that there are, by the field of `schematic` that each renders.

    `cue` is the program to run, else it is looked for when a template needs it; it has some
    seconds for each template. What installed packages bring takes the place of polyver's own. They
    may be used by several threads at once. Calls may block: keep them off an event loop.
    """
    own: dict[str, TemplateEngine] = {
        "gotemplate": GoTemplates(),
        "cue": CueEngine(cue, seconds=seconds),
    }
    return own | installed_engines()
