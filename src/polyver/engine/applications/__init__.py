"""Applications that are applied: resolved, recorded, rendered, applied, and followed."""

from polyver.engine.applications._controller import ApplicationController

__all__ = ["ApplicationController"]
