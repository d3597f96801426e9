"""Objects as JSON of which only the outer levels are read: what is inside of them stays bytes.

Whoever changes a few fields of many objects reads the others once, to find where they end.
"""

from __future__ import annotations

from typing import Any

from msgspec import UNSET, Raw, Struct, UnsetType, field

from polyver.kube.objects.codec import prepare

__all__ = ["Opened"]

_NONE = Raw()


class Opened(Struct, forbid_unknown_fields=True):
    """An object with the fields that nearly all objects have, and no others."""

    api_version: str = field(name="apiVersion")
    kind: str
    metadata: Raw = _NONE
    spec: dict[str, Raw] | UnsetType = UNSET
    status: Raw = _NONE

    def fields(self) -> dict[str, Any]:
        """All that it has, in a mapping that may be changed."""
        found: dict[str, Any] = {"apiVersion": self.api_version, "kind": self.kind}
        if self.metadata is not _NONE:
            found["metadata"] = self.metadata
        if self.spec is not UNSET:
            found["spec"] = self.spec
        if self.status is not _NONE:
            found["status"] = self.status
        return found


prepare(Opened)
