"""The controller of an object: the owner whose owner reference has `controller: true`.

An object has at most one controller: API servers refuse an object with two.
"""

from __future__ import annotations

from typing import Any

from polyver.core.plain import ReadOnlyObject

__all__ = ["controller_of", "controller_reference", "controlling"]


def controller_of(obj: ReadOnlyObject) -> str:
    """Return the uid of the controller of an object; an empty string if there is no controller.

    >>> owner = {"apiVersion": "ex.io/v1", "kind": "Shop", "metadata": {"name": "a", "uid": "u"}}
    >>> controller_of({"metadata": {"ownerReferences": [controlling(owner)]}})
    'u'
    """
    reference = controller_reference(obj)
    return reference.get("uid", "") if reference is not None else ""


def controller_reference(obj: ReadOnlyObject) -> ReadOnlyObject | None:
    """Return the owner reference to the controller of an object; None if there is none."""
    owners = obj["metadata"].get("ownerReferences") or ()
    return next((each for each in owners if each.get("controller")), None)


def controlling(owner: ReadOnlyObject) -> dict[str, Any]:
    """Build the owner reference that makes `owner` the controller of an object."""
    metadata: ReadOnlyObject = owner["metadata"]
    return {
        "apiVersion": owner["apiVersion"],
        "kind": owner["kind"],
        "name": metadata["name"],
        "uid": metadata.get("uid", ""),
        "controller": True,
        "blockOwnerDeletion": True,
    }
