"""What is wrong with a message, and where in it."""

from __future__ import annotations

__all__ = ["MessageError", "UnreadableMessage", "UnwritableMessage"]


class MessageError(Exception):
    """A problem, and the way to it: names of fields, and keys or places in brackets."""

    def __init__(self, problem: str, *way: str) -> None:
        super().__init__(problem)
        self.problem = problem
        self.way = list(way)

    def inside(self, *steps: str) -> MessageError:
        """The same, seen from further outside."""
        self.way[:0] = steps
        return self

    @property
    def at(self) -> str:
        """The way as a path.

        >>> MessageError("odd", "spec", "[a.b]", "[0]", "name").at
        'spec[a.b][0].name'
        """
        steps = (step if step.startswith("[") else f".{step}" for step in self.way)
        return "".join(steps).removeprefix(".")


class UnreadableMessage(MessageError):
    """Bytes that are no such message."""


class UnwritableMessage(MessageError):
    """A value that the protocol cannot carry as it is."""
