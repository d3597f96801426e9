"""Markers for `typing.Annotated` that several capabilities read."""

from __future__ import annotations

from dataclasses import dataclass

__all__ = ["Description"]


@dataclass(frozen=True, slots=True)
class Description:
    """A sentence that describes a field or an argument.

    `kubectl explain` and `polyver functions` print the sentence. A marker may also be an object of
    another class, if it has an attribute `description`.
    """

    description: str
