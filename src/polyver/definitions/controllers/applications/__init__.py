"""Controller of applications: resolves, records, renders, applies and follows them."""

from polyver.definitions.controllers.applications._controller import ApplicationController

__all__ = ["ApplicationController"]
