"""What may be done about objects that are there already: whose they are decides."""

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
    """Who has written an object, apart from those who tell its status."""
    entries = obj["metadata"].get("managedFields") or ()
    wrote = [each for each in entries if not each.get("subresource")]
    return list(dict.fromkeys(str(each.get("manager") or "unknown") for each in wrote))


def is_installed(obj: Mapping[str, Any]) -> bool:
    """Whether an installation consists of this object: it was applied as part of one."""
    entries = obj["metadata"].get("managedFields") or ()
    return any((e.get("manager"), e.get("operation")) == (INSTALLER, "Apply") for e in entries)


def is_kept(obj: Mapping[str, Any]) -> bool:
    """Whether `polyver run` keeps an object."""
    return RUNNER in managers(obj)


def conflicts(error: ApiError) -> dict[str, list[str]] | None:
    """The fields that others own, by who owns them; None if an apply failed for another reason."""
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
    """The namespace whose account has polyver's role on the whole cluster, if any has."""
    if binding is None or not is_installed(binding):
        return ""
    subjects = binding.get("subjects") or ()
    return next((str(each.get("namespace")) for each in subjects if each["name"] == NAME), "")


def converted_by(crds: Iterable[Object], namespace: str) -> Iterator[Object]:
    """The definitions whose objects are converted by an installation."""
    for crd in crds:
        conversion = crd["spec"].get("conversion") or {}
        client = (conversion.get("webhook") or {}).get("clientConfig") or {}
        service = client.get("service") or {}
        if (service.get("namespace"), service.get("name")) == (namespace, NAME):
            yield crd


def refusal(
    strange: Sequence[Object], owned: Mapping[ObjectName, Mapping[str, Sequence[str]]], at: str
) -> RequestRefused | None:
    """Why nothing is applied: objects of others, and fields that others have changed."""
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
