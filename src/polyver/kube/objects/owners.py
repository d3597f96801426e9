"""The controller of an object, by its owner references.

An object has at most one: API servers refuse an object with two.
"""

from __future__ import annotations

from typing import Any

from polyver.core.plain import ReadOnlyObject

__all__ = ["controller_of", "controller_reference", "controlling"]


def controller_of(obj: ReadOnlyObject) -> str:
    """Return the uid of the controller of an object; empty if it has none.

    >>> owner = {"apiVersion": "ex.io/v1", "kind": "Shop", "metadata": {"name": "a", "uid": "u"}}
    >>> controller_of({"metadata": {"ownerReferences": [controlling(owner)]}})
    'u'
    """
    reference = controller_reference(obj)
    return reference.get("uid", "") if reference is not None else ""


def controller_reference(obj: ReadOnlyObject) -> ReadOnlyObject | None:
    """Return the owner reference to the controller of an object; None if it has none."""
    owners = obj["metadata"].get("ownerReferences") or ()
    return next((each for each in owners if each.get("controller")), None)


def controlling(owner: ReadOnlyObject) -> dict[str, Any]:
    """Return the owner reference to an object for objects that it controls."""
    metadata: ReadOnlyObject = owner["metadata"]
    return {
        "apiVersion": owner["apiVersion"],
        "kind": owner["kind"],
        "name": metadata["name"],
        "uid": metadata.get("uid", ""),
        "controller": True,
        "blockOwnerDeletion": True,
    }
