"""The command line: the composition root, where everything is wired."""

from polyver.cli._app import main

__all__ = ["main"]
