"""Errors about messages, with the path of the problem."""

from __future__ import annotations

__all__ = ["MessageError", "UnreadableMessage", "UnwritableMessage"]


class MessageError(Exception):
    """A problem in a message, and its path: field names, and keys or indices in brackets."""

    def __init__(self, problem: str, *way: str) -> None:
        super().__init__(problem)
        self.problem = problem
        self.way = list(way)

    def inside(self, *steps: str) -> MessageError:
        """Return the error with steps added in front of its path."""
        self.way[:0] = steps
        return self

    @property
    def at(self) -> str:
        """Return the path as a string.

        >>> MessageError("odd", "spec", "[a.b]", "[0]", "name").at
        'spec[a.b][0].name'
        """
        steps = (step if step.startswith("[") else f".{step}" for step in self.way)
        return "".join(steps).removeprefix(".")


class UnreadableMessage(MessageError):
    """Bytes that are not a valid message."""


class UnwritableMessage(MessageError):
    """A value that the protocol cannot represent exactly."""
