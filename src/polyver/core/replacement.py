"""Find the objects that a release deletes without a replacement."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Final, NamedTuple, TypeVar

__all__ = ["Role", "without_replacement"]

T = TypeVar("T")


class Role(NamedTuple):
    """The properties that decide whether a new object replaces a deleted object."""

    part: str
    """The part of the dependent that creates the object, such as a component."""
    kind: str
    name: str


def without_replacement(gone: Iterable[T], new: Iterable[T], role: Callable[[T], Role]) -> list[T]:
    """Return the deleted objects (`gone`) that no new object replaces.

    A new object replaces a deleted object if the same part creates the two objects, and if their
    kinds or their names are the same. A new object replaces at most one deleted object.

    >>> a, b, c = (Role("web", "ConfigMap", name) for name in "abc")
    >>> [each.name for each in without_replacement([a, b], [c], lambda each: each)]
    ['b']
    """
    left, free = [*gone], [*new]
    for fits in _CLOSEST_FIRST:
        for each in [*left]:
            wanted = role(each)
            found = next((other for other in free if fits(role(other), wanted)), None)
            if found is not None:
                free.remove(found)
                left.remove(each)
    return left


_CLOSEST_FIRST: Final[tuple[Callable[[Role, Role], bool], ...]] = (
    lambda one, other: one == other,
    lambda one, other: (one.part, one.name) == (other.part, other.name),
    lambda one, other: (one.part, one.kind) == (other.part, other.kind),
)
