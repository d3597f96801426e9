"""The entry point of polyver: the list of capabilities, and the commands that run or install it."""

from polyver.app.main import main

__all__ = ["main"]
