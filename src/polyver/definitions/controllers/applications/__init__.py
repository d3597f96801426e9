"""Controller of applications: resolves their versions, renders and applies their objects."""

from polyver.definitions.controllers.applications._controller import ApplicationController

__all__ = ["ApplicationController"]
