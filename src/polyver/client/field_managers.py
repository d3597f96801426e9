"""Names of the field managers under which polyver writes.

A field manager owns the fields that it has set. The API server stores the names of field managers
in objects, so these names must not change.
"""

from __future__ import annotations

from typing import Final

__all__ = ["POLYVER", "manager_for"]

POLYVER: Final = "polyver"
"""The field manager of all writes for which polyver uses no other field manager."""
_LONGEST: Final = 128
"""The maximum number of characters in the name of a field manager."""


def manager_for(family: str, kind: str, uid: str) -> str:
    """Return the name of the field manager that a family of managers uses for one owner.

    >>> manager_for("polyver-composites", "Shop", "7d3a")
    'polyver-composites-shop-7d3a'
    """
    end = f"-{kind.lower()}-{uid}"
    return f"{family[: _LONGEST - len(end)]}{end}"[-_LONGEST:]
