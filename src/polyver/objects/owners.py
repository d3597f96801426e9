"""Who controls an object, by its owner references.

There is one controller at most: API servers take no object with two.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

__all__ = ["controller_of", "controlling"]

Object = Mapping[str, Any]


def controller_of(obj: Object) -> str:
    """The uid of the object that controls this one; empty if none does.

    >>> owner = {"apiVersion": "ex.io/v1", "kind": "Shop", "metadata": {"name": "a", "uid": "u"}}
    >>> controller_of({"metadata": {"ownerReferences": [controlling(owner)]}})
    'u'
    """
    owners = obj["metadata"].get("ownerReferences") or ()
    return next((each.get("uid", "") for each in owners if each.get("controller")), "")


def controlling(owner: Object) -> dict[str, Any]:
    """The reference to an object in what it controls."""
    metadata: Object = owner["metadata"]
    return {
        "apiVersion": owner["apiVersion"],
        "kind": owner["kind"],
        "name": metadata["name"],
        "uid": metadata.get("uid", ""),
        "controller": True,
        "blockOwnerDeletion": True,
    }
