"""Finds the owners of existing objects, because polyver does not change objects of other owners."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from polyver.app.installing.options import INSTALLER, NAME, RUNNER, ObjectName, named
from polyver.cli.exit_codes import RequestRefused
from polyver.core import listed
from polyver.core.plain import Object
from polyver.kube.objects.status import ApiError

__all__ = [
    "conflicts",
    "converted_by",
    "installed_in",
    "is_installed",
    "is_kept",
    "managers",
    "refusal",
]


def managers(obj: Mapping[str, Any]) -> list[str]:
    """Return the field managers of an object, except those that have written only its status."""
    entries = obj["metadata"].get("managedFields") or ()
    wrote = [each for each in entries if not each.get("subresource")]
    return list(dict.fromkeys(str(each.get("manager") or "unknown") for each in wrote))


def is_installed(obj: Mapping[str, Any]) -> bool:
    """Report whether `polyver install` has applied an object, according to its field managers."""
    entries = obj["metadata"].get("managedFields") or ()
    return any((e.get("manager"), e.get("operation")) == (INSTALLER, "Apply") for e in entries)


def is_kept(obj: Mapping[str, Any]) -> bool:
    """Report whether `polyver run` has written an object, according to its field managers."""
    return RUNNER in managers(obj)


def conflicts(error: ApiError) -> dict[str, list[str]] | None:
    """Return the conflicting fields of an apply that failed, by the field managers that own them.

    Return None if the apply failed for another reason than a conflict.
    """
    causes = (error.details or {}).get("causes") or ()
    if error.code != 409 or not causes:
        return None
    found: dict[str, list[str]] = {}
    for cause in causes:
        if cause.get("reason") != "FieldManagerConflict":
            return None
        owner = re.match(r'conflict with "([^"]*)"', str(cause.get("message")))
        found.setdefault(owner[1] if owner else "unknown", []).append(str(cause.get("field")))
    return found


def installed_in(binding: Mapping[str, Any] | None) -> str:
    """Return the namespace in which polyver is installed; "" if it is not installed.

    `binding` is the ClusterRoleBinding of polyver, or None.
    """
    if binding is None or not is_installed(binding):
        return ""
    subjects = binding.get("subjects") or ()
    return next((str(each.get("namespace")) for each in subjects if each["name"] == NAME), "")


def converted_by(crds: Iterable[Object], namespace: str) -> Iterator[Object]:
    """Yield the CRDs whose conversion webhook is polyver in this namespace."""
    for crd in crds:
        conversion = crd["spec"].get("conversion") or {}
        client = (conversion.get("webhook") or {}).get("clientConfig") or {}
        service = client.get("service") or {}
        if (service.get("namespace"), service.get("name")) == (namespace, NAME):
            yield crd


def refusal(
    strange: Sequence[Object], owned: Mapping[ObjectName, Mapping[str, Sequence[str]]], at: str
) -> RequestRefused | None:
    """Build the error about objects and fields of other owners; None if there are none.

    `strange` are objects of other owners. `owned` has, for each object, the fields that other field
    managers own.
    """
    facts = []
    if strange:
        each = [f"{named(obj)} by {listed(managers(obj)) or 'unknown'}" for obj in strange]
        facts.append(f"managed by others: {listed(each)}")
    if owned:
        each = [f"{name} {_owned(fields)}" for name, fields in owned.items()]
        facts.append(f"changed by others: {listed(each)}")
    if not facts:
        return None
    return RequestRefused(
        "; ".join(facts), at=at, hint="nothing was applied; use --adopt to take them over"
    )


def _owned(fields: Mapping[str, Sequence[str]]) -> str:
    return listed([f"({listed(places)}) by {owner}" for owner, places in fields.items()])
