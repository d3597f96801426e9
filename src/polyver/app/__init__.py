"""The entry point: the list of capabilities, and the commands that start and install them."""

from polyver.app.main import main

__all__ = ["main"]
