"""Applications that are applied: resolved, recorded, rendered, applied, and followed."""

from polyver.definitions.controllers.applications._controller import ApplicationController

__all__ = ["ApplicationController"]
