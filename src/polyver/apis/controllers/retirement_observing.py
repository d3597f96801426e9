"""Reads from a cluster what decides about a retirement.

The controller of Retirements and the command `polyver retire` both use it, so the plan that the
command prints is the plan that the controller follows.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, Final

from polyver.apis.conversion import Converter
from polyver.apis.conversion_kind import CONVERSIONS, converter_left, converter_of
from polyver.apis.retirement import (
    ObjectCounts,
    PassProgress,
    RetirementSnapshot,
    RetirementState,
    RetirementStep,
    VersionClients,
    appliers_of_versions,
    clients_of,
    paths_through,
)
from polyver.apis.retirement_kind import RETIREMENTS
from polyver.client import CRDS, Client, GroupVersionResource, find
from polyver.core import PolyverError
from polyver.core.plain import Object, ReadOnlyObject
from polyver.kube.objects.status import ApiError
from polyver.languages.values.durations import nanoseconds

__all__ = [
    "RETIREMENTS_ON",
    "ObservedKind",
    "VersionUsers",
    "count_objects",
    "observe",
    "progress_in",
]

RETIREMENTS_ON: Final = GroupVersionResource(
    RETIREMENTS.group, "v1alpha1", RETIREMENTS.names.plural, namespaced=False
)
_CONVERSIONS: Final = GroupVersionResource(
    CONVERSIONS.group, "v1alpha1", CONVERSIONS.names.plural, namespaced=False
)
_USAGES: Final = GroupVersionResource("polyver.dev", "v1alpha1", "versionusages", namespaced=False)
_QUIET: Final = "24h"
_PAGE: Final = 500
VersionUsers = Callable[[Client, str, str, str], Awaitable[Sequence[str]]]
"""Returns descriptions of the objects that use a version of a kind.

The arguments after the client are the group, the kind and the version.
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class ObservedKind:
    """A kind of which a version is to be retired, as it is on the cluster."""

    crd: Object | None
    conversion: Object | None
    snapshot: RetirementSnapshot
    clients: VersionClients

    @property
    def group(self) -> str:
        return str(self.crd["spec"]["group"]) if self.crd else ""

    @property
    def resource(self) -> GroupVersionResource:
        """The resource in the version in which polyver reads and writes the objects.

        This is the storage version if it is served.
        """
        assert self.crd is not None
        spec, snapshot = self.crd["spec"], self.snapshot
        others = [n for n, served in snapshot.served.items() if served and n != snapshot.version]
        version = snapshot.storage if snapshot.storage in others else others[0]
        namespaced = spec["scope"] == "Namespaced"
        return GroupVersionResource(
            spec["group"], version, spec["names"]["plural"], namespaced=namespaced
        )


async def observe(
    client: Client,
    retirement: ReadOnlyObject,
    *,
    users: Sequence[VersionUsers] = (),
    now: datetime,
) -> ObservedKind:
    """Read everything that decides about a retirement.

    `users` find the objects of polyver that use the version.
    """
    spec, status = retirement["spec"], retirement.get("status") or {}
    name, version = spec["definition"], spec["version"]
    crd = await find(client, CRDS, name)
    if crd is None:
        snapshot = RetirementSnapshot(
            version=version, exists=False, **_asked(spec), **_recorded(status)
        )
        return ObservedKind(crd=None, conversion=None, snapshot=snapshot, clients=VersionClients())
    conversion = await find(client, _CONVERSIONS, name)
    clients = clients_of(await find(client, _USAGES, name), version)
    group, kind = crd["spec"]["group"], crd["spec"]["names"]["kind"]
    versions = {each["name"]: each.get("served", True) for each in crd["spec"]["versions"]}
    dependents: list[str] = []
    if versions.get(version):
        for each in users:
            dependents += await each(client, group, kind, version)
    snapshot = RetirementSnapshot(
        version=version,
        terminating="deletionTimestamp" in crd["metadata"],
        served=versions,
        storage=next(each["name"] for each in crd["spec"]["versions"] if each.get("storage")),
        generation=crd["metadata"].get("generation", 0),
        stored=(crd.get("status") or {}).get("storedVersions") or (),
        converted=conversion["spec"]["versions"] if conversion else (),
        through=_through(conversion, crd, version),
        appliers=appliers_of_versions(crd),
        conversion_appliers=appliers_of_versions(conversion) if conversion else (),
        clients=clients.recent(_time_before(now, spec.get("quietPeriod") or _QUIET)),
        dependents=dependents,
        others=await _others(client, retirement),
        **_asked(spec),
        **_recorded(status),
    )
    return ObservedKind(crd=crd, conversion=conversion, snapshot=snapshot, clients=clients)


def _asked(spec: Mapping[str, Any]) -> dict[str, Any]:
    return {
        "aborted": bool(spec.get("aborted")),
        "attempt": spec.get("attempt") or 0,
        "ignores_clients": bool(spec.get("ignoreClients")),
        "ignores_dependents": bool(spec.get("ignoreDependents")),
        "takes_over": bool(spec.get("takeOver")),
    }


def _recorded(status: Mapping[str, Any]) -> dict[str, Any]:
    return {
        "step": status.get("step") or "",
        "state": status.get("state") or "",
        "checked": status.get("checked"),
        "stopped": status.get("stopped"),
        "passes": progress_in(status),
    }


def progress_in(status: Mapping[str, Any]) -> dict[RetirementStep, PassProgress]:
    """Return the progress of the steps that read all objects, from the status of a Retirement."""
    return {
        RetirementStep(each["step"]): PassProgress(
            each["objects"],
            each["changed"],
            each["written"],
            each["rounds"],
            each["done"],
            each.get("after") or "",
        )
        for each in status.get("passes") or ()
    }


def _time_before(now: datetime, duration: str) -> str:
    before = now - timedelta(microseconds=(nanoseconds(duration) or 0) // 1000)
    return before.strftime("%Y-%m-%dT%H:%M:%SZ")


def _through(conversion: Object | None, crd: Object, version: str) -> list[str]:
    if conversion is None or version not in conversion["spec"]["versions"]:
        return []
    try:
        converter = _converter(conversion, crd)
    except PolyverError:
        return []  # the condition of the Conversion reports it
    return paths_through(converter, version)


def _converter(conversion: Object, crd: Object) -> Converter:
    try:
        return converter_of(conversion, crd)
    except PolyverError:
        return converter_left(conversion, crd)


async def _others(client: Client, retirement: ReadOnlyObject) -> list[str]:
    """Return the names of older retirements of the same kind that are not finished."""
    mine = _age(retirement)
    try:
        found = (await client.list(RETIREMENTS_ON)).items
    except ApiError as error:
        if error.code != 404:
            raise
        return []
    final = (RetirementState.COMPLETED, RetirementState.ABORTED)
    return [
        each["metadata"]["name"]
        for each in found
        if each["spec"]["definition"] == retirement["spec"]["definition"]
        and each["metadata"]["name"] != retirement["metadata"]["name"]
        and _age(each) < mine
        and (each.get("status") or {}).get("state") not in final
    ]


def _age(retirement: ReadOnlyObject) -> tuple[str, str]:
    metadata = retirement["metadata"]
    return metadata.get("creationTimestamp", "9"), metadata["name"]


async def count_objects(
    client: Client,
    observed: ObservedKind,
    progress: Callable[[int, int], None] = lambda _done, _total: None,
) -> ObjectCounts:
    """Count the objects of a kind by what a retirement has to change in them."""
    counts, more = ObjectCounts(), ""
    api_version = f"{observed.group}/{observed.snapshot.version}"
    while True:
        page = await client.list(observed.resource, limit=_PAGE, more=more, metadata=True)
        for each in page.items:
            counts.add(each["metadata"], api_version)
        progress(counts.total, counts.total + page.remaining)
        more = page.more
        if not more:
            return counts
