"""Who controls an object, by its owner references.

There is one controller at most: API servers take no object with two.
"""

from __future__ import annotations

from typing import Any

from polyver.core.plain import ReadOnlyObject

__all__ = ["controller_of", "controller_reference", "controlling"]


def controller_of(obj: ReadOnlyObject) -> str:
    """The uid of the object that controls this one; empty if none does.

    >>> owner = {"apiVersion": "ex.io/v1", "kind": "Shop", "metadata": {"name": "a", "uid": "u"}}
    >>> controller_of({"metadata": {"ownerReferences": [controlling(owner)]}})
    'u'
    """
    reference = controller_reference(obj)
    return reference.get("uid", "") if reference is not None else ""


def controller_reference(obj: ReadOnlyObject) -> ReadOnlyObject | None:
    """The reference to the controller of an object; None if it has none."""
    owners = obj["metadata"].get("ownerReferences") or ()
    return next((each for each in owners if each.get("controller")), None)


def controlling(owner: ReadOnlyObject) -> dict[str, Any]:
    """The reference to an object in what it controls."""
    metadata: ReadOnlyObject = owner["metadata"]
    return {
        "apiVersion": owner["apiVersion"],
        "kind": owner["kind"],
        "name": metadata["name"],
        "uid": metadata.get("uid", ""),
        "controller": True,
        "blockOwnerDeletion": True,
    }
