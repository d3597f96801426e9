"""Markers for `typing.Annotated` that several capabilities read."""

from __future__ import annotations

from dataclasses import dataclass

__all__ = ["Description"]


@dataclass(frozen=True, slots=True)
class Description:
    """A sentence that describes a field or an argument.

    `kubectl explain` and `polyver functions` print the sentence. They also read markers of other
    classes, if the class has an attribute `description`.
    """

    description: str
