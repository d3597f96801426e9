"""Change the spec of an object, and keep its owner as the field manager of the spec.

The owner is the field manager that applied the spec. If the command became the owner instead, the
owner's next `kubectl apply --server-side` would have a conflict. It would also not remove the
fields that the command has added.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from polyver.client import Client, GroupVersionResource
from polyver.core.plain import Object
from polyver.kube.objects.status import ApiError

__all__ = ["Owner", "owner_of", "replace_for"]

Owner = tuple[str, str, str]
"""The manager, the operation and the API version of an entry of `managedFields`."""
_TRIES = 5


def owner_of(obj: Object) -> Owner | None:
    """Return the owner of an object's spec: the field manager that applied or last wrote it."""
    found = [
        entry
        for entry in obj["metadata"].get("managedFields") or ()
        if "f:spec" in (entry.get("fieldsV1") or {}) and not entry.get("subresource")
    ]
    found.sort(key=lambda entry: (entry["operation"] == "Apply", entry.get("time") or ""))
    return _name(found[-1]) if found else None


def _name(entry: Object) -> Owner:
    return entry.get("manager", ""), entry["operation"], entry.get("apiVersion", "")


async def replace_for(
    client: Client,
    resource: GroupVersionResource,
    obj: Object,
    *,
    owner: Owner | None,
    manager: str,
    annotations: frozenset[str],
) -> None:
    """Replace an object, and make `owner` the owner of its spec.

    `owner` also gets the annotations named in `annotations`. `manager` is the field manager of the
    write itself. Without an owner, `manager` keeps the fields.
    """
    made = await client.update(resource, obj, manager=manager)
    for _ in range(_TRIES):
        handed = handed_over(made, owner, manager, annotations)
        if handed is None:
            return
        try:
            await client.update(resource, handed, manager=manager)
        except ApiError as error:
            if error.code != 409:
                raise
            metadata = obj["metadata"]
            made = await client.get(resource, metadata["name"], metadata["namespace"])
        else:
            return


def handed_over(
    obj: Object, owner: Owner | None, manager: str, annotations: frozenset[str]
) -> Object | None:
    """Return the object with `owner`, instead of `manager`, as the owner of its spec.

    Return None if nothing has to change.
    """
    entries = [*(obj["metadata"].get("managedFields") or ())]
    mine = next((each for each in entries if _is_mine(each, manager)), None)
    if owner is None or mine is None or "f:spec" not in mine["fieldsV1"]:
        return None
    given, kept = _parted(mine["fieldsV1"], annotations)
    changed = [{**each, "fieldsV1": kept} if each is mine else each for each in entries]
    theirs = next((each for each in changed if _name(each) == owner), None)
    if theirs is None:
        head = dict(zip(("manager", "operation", "apiVersion"), owner, strict=True))
        changed.append({**head, "fieldsType": "FieldsV1", "time": mine["time"], "fieldsV1": given})
    else:
        both = _united(theirs["fieldsV1"], given)
        changed = [{**each, "fieldsV1": both} if each is theirs else each for each in changed]
    changed = [each for each in changed if each["fieldsV1"]]
    return {**obj, "metadata": {**obj["metadata"], "managedFields": changed}}


def _is_mine(entry: Object, manager: str) -> bool:
    return _name(entry)[:2] == (manager, "Update") and not entry.get("subresource")


def _parted(fields: Mapping[str, Any], annotations: frozenset[str]) -> tuple[Object, Object]:
    """Split the fields that a manager owns into those to hand over, and the rest.

    The fields to hand over are the spec and the annotations named in `annotations`.
    """
    given: Object = {"f:spec": fields["f:spec"]}
    kept = {name: inside for name, inside in fields.items() if name != "f:spec"}
    metadata = dict(kept.get("f:metadata") or {})
    written = dict(metadata.get("f:annotations") or {})
    theirs = {name: written.pop(name) for name in [*written] if name[2:] in annotations}
    if theirs:
        given["f:metadata"] = {"f:annotations": theirs}
        kept["f:metadata"] = {**metadata, "f:annotations": written}
    return given, kept


def _united(one: Mapping[str, Any], other: Mapping[str, Any]) -> Object:
    both = dict(one)
    for name, inside in other.items():
        both[name] = _united(both[name], inside) if name in both else inside
    return both
