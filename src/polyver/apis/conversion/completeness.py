"""The fields of which an author has decided that polyver preserves them instead of converting them.

With `completeness: acknowledged`, `polyver check` fails and admission refuses a Conversion as long
as there is another field that a version cannot express.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

__all__ = ["Completeness", "PreservedNames", "covers"]


@dataclass(frozen=True, slots=True)
class PreservedNames:
    """The fields of one version that an author has named."""

    fields: tuple[str, ...] = ()
    """Fields that another version cannot express, and that polyver preserves.

    They have the notation of the ledger: `spec.ports[].name`, `spec.env{}`.
    """
    edits_lose: tuple[str, ...] = ()
    """Lists in which an edit of an item in another version may lose a part of the item."""
    place: str = ""
    """The file and line of the declaration."""


@dataclass(frozen=True, slots=True)
class Completeness:
    """All decisions of an author about preserved fields of a kind."""

    required: bool = False
    """True if each preserved field must be named."""
    preserved: Mapping[str, PreservedNames] = field(default_factory=dict)
    """The named fields, by version."""

    def names(self, version: str) -> PreservedNames:
        return self.preserved.get(version, PreservedNames())


def covers(name: str, path: str) -> bool:
    """Report whether a name stands for a field: it is the name of the field or of a parent.

    >>> covers("spec.job", "spec.job.args[].name"), covers("spec.job", "spec.jobs")
    (True, False)
    """
    return path == name or (path.startswith(name) and path[len(name)] in ".[{")
