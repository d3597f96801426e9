"""The engines that render components and traits, put together: those built in, and programs.

Rendering itself is decided in capabilities; what has to start a program to do so is here.
"""

from __future__ import annotations

from polyver.capabilities.definitions.rendering import Engines, GoTemplates

__all__ = ["engines"]


def engines() -> Engines:
    """All engines that there are, by the field of `schematic` that each renders.

    They may be used by several threads at once. Calls may block: keep them off an event loop.
    """
    return {"gotemplate": GoTemplates()}
