"""Objects as JSON of which only the outer levels are decoded: the inner fields stay JSON (Raw).

Code that changes a few fields of many objects does not decode the others.
"""

from __future__ import annotations

from typing import Any

from msgspec import UNSET, MsgspecError, Raw, Struct, UnsetType, field, json

from polyver.kube.objects.codec import prepare

__all__ = ["Opened", "open_object"]

_NONE = Raw()


class Opened(Struct, forbid_unknown_fields=True):
    """An object with only the fields that nearly all objects have."""

    api_version: str = field(name="apiVersion")
    kind: str
    metadata: Raw = _NONE
    spec: dict[str, Raw] | UnsetType = UNSET
    status: Raw = _NONE

    def fields(self) -> dict[str, Any]:
        """Return all fields that are set, in a new dictionary."""
        found: dict[str, Any] = {"apiVersion": self.api_version, "kind": self.kind}
        if self.metadata is not _NONE:
            found["metadata"] = self.metadata
        if self.spec is not UNSET:
            found["spec"] = self.spec
        if self.status is not _NONE:
            found["status"] = self.status
        return found


prepare(Opened)
_opened = json.Decoder(Opened).decode
_fields = json.Decoder(dict[str, Raw]).decode


def open_object(raw: bytes | Raw) -> dict[str, Any]:
    """Return the fields of an object; if it has unusual fields, all of them are Raw.

    >>> raw = b'{"apiVersion": "v1", "kind": "ConfigMap", "data": {"a": "b"}}'
    >>> bytes(open_object(raw)["data"])
    b'{"a": "b"}'
    """
    try:
        return _opened(raw).fields()
    except (MsgspecError, UnicodeError, RecursionError):
        return _fields(raw)
