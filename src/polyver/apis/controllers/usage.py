"""Controller that writes VersionUsages: the requests to each version of each kind.

The process counts requests in memory, and this controller adds them to the VersionUsages: once a
minute, and when the process ends. Every replica runs it, because each replica has its own counts. A
process that is killed loses the counts of up to a minute.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any, Literal

from polyver.apis.usage_merge import merge_versions
from polyver.apis.version_usage import VERSION_USAGE_RESOURCE, VERSION_USAGES
from polyver.client import (
    CRDS,
    Client,
    Clock,
    Discovery,
    GroupVersionResource,
    SystemClock,
    find,
    timestamp,
)
from polyver.client.field_managers import POLYVER
from polyver.controllers.controller import Controller, Requeue, Watch
from polyver.core import PolyverError
from polyver.core.plain import Object
from polyver.kube.http.logs import Log
from polyver.kube.objects.status import ApiError
from polyver.kube.server.request_counts import RequestCounts, VersionCounts

__all__ = ["UsageController"]

_EVERY = 60.0
_KEPT = timedelta(days=30)
"""The time after its last request at which a client is removed from a VersionUsage."""
_TRIES = 5
_CHECKED_EVERY = 60
"""After this number of intervals, all VersionUsages are read, and created if they were deleted."""
_NAME = VERSION_USAGES.definition().name
_REVIEWS = GroupVersionResource(
    "authentication.k8s.io", "v1", "selfsubjectreviews", namespaced=False
)


class UsageController(Controller[str]):
    """Adds the counts of this process to the VersionUsages. It has a single key to reconcile."""

    name = "version-usages"

    def __init__(
        self,
        client: Client,
        counts: RequestCounts,
        kinds: Callable[[], Collection[str]],
        *,
        source: Literal["APIServer", "Webhooks"],
        clock: Clock | None = None,
        every: float = _EVERY,
    ) -> None:
        """Create the controller.

        `kinds` returns the names of the CustomResourceDefinitions whose requests are counted.
        """
        self._client = client
        self._counts = counts
        self._kinds = kinds
        self._source = source
        self._clock: Clock = clock or SystemClock()
        self._every = every
        self._since = timestamp(self._clock)
        self._pending: dict[str, list[Object]] = {}
        """The counts that are not yet written, in the form of `status.versions`, by kind."""
        self._written: set[str] = set()
        """The kinds that have a VersionUsage."""
        self._own: str | None = None
        self._installed = False
        self._reported = False
        self._passes = 0

    @property
    def watches(self) -> Sequence[Watch[Any, str]]:
        return []

    def discovered(self, discovery: Discovery) -> Iterable[str]:
        """Return the key at the start, and if a new kind needs a VersionUsage."""
        served = {f"{each.plural}.{each.group}" for each in discovery.kinds}
        self._written &= served
        self._installed = _NAME in served
        new = {*self._kinds()} & served - self._written
        return (_NAME,) if new or not self._passes else ()

    def kinds_changed(self) -> None:
        """Create VersionUsages soon, because the requests to another kind are counted now."""
        self.wake(_NAME)

    async def reconcile(self, key: str) -> Requeue:
        del key
        self._passes += 1
        if self._passes % _CHECKED_EVERY == 0:
            self._written.clear()
        await self._write_all()
        return Requeue(self._every)

    async def close(self) -> None:
        """Write the remaining counts, because the process ends."""
        try:
            await self._write_all()
        except (ApiError, PolyverError, OSError) as error:
            Log().warning("the last counts of requests were lost", reason=str(error))

    async def _write_all(self) -> None:
        """Write all counts that are pending. An error for one kind does not affect the others."""
        if self._own is None and self._source == "Webhooks":
            self._own = await _own_name(self._client)
        oldest = _format(self._clock.now() - _KEPT)
        self._collect(oldest)
        if not self._installed:
            self._report_missing()
            return
        failed: Exception | None = None
        for name in sorted(self._pending.keys() | ({*self._kinds()} - self._written)):
            try:
                await self._write(name, oldest)
            except (ApiError, PolyverError, OSError) as error:
                failed = error
        if failed is not None:
            raise failed

    def _collect(self, oldest: str) -> None:
        """Add the new counts of this process to those that are pending."""
        for name, versions in self._counts.take().items():
            added = [_counted(*each, self._own) for each in versions.items()]
            before = self._pending.get(name, [])
            known = list(dict.fromkeys(each["version"] for each in (*before, *added)))
            self._pending[name] = merge_versions(before, added, known=known, oldest=oldest)

    async def _write(self, name: str, oldest: str) -> None:
        crd = await find(self._client, CRDS, name)
        if crd is None or "deletionTimestamp" in crd["metadata"]:
            self._pending.pop(name, None)
            self._written.discard(name)
            return
        for attempt in range(_TRIES):
            try:
                written = await self._try(name, crd, oldest)
            except ApiError as error:
                # Another replica has written in the meantime.
                if error.code != 409 or attempt == _TRIES - 1:
                    raise
            else:
                if written:
                    self._pending.pop(name, None)
                    self._written.add(name)
                return

    async def _try(self, name: str, crd: Object, oldest: str) -> bool:
        """Add the pending counts of a kind to its VersionUsage; False if this is not possible."""
        usage = await find(self._client, VERSION_USAGE_RESOURCE, name)
        if usage is None:
            usage = await self._created(name, crd)
        if not _belongs(usage, crd):
            return False  # the garbage collector will delete the VersionUsage of an earlier CRD
        before = usage.get("status") or {}
        known = [each["name"] for each in crd["spec"]["versions"]]
        added = [*_of_clients(self._pending.get(name, ()), crd)]
        versions = merge_versions(before.get("versions") or (), added, known=known, oldest=oldest)
        since = before.get("since") or self._began(crd)
        status = {"since": since, "source": self._source} | (
            {"versions": versions} if versions else {}
        )
        if status != before:
            content = {**usage, "status": status}
            await self._client.update(
                VERSION_USAGE_RESOURCE, content, subresource="status", manager=POLYVER
            )
        return True

    def _began(self, crd: Object) -> str:
        """Return the time from which the requests to a kind were counted.

        Webhooks see the requests only after they were registered for the kind.
        """
        if self._source == "Webhooks":
            return timestamp(self._clock)
        return max(self._since, str(crd["metadata"].get("creationTimestamp") or ""))

    async def _created(self, name: str, crd: Object) -> Object:
        """Create the VersionUsage of a kind. It is deleted together with its CRD."""
        owner = {"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition"}
        owner |= {"name": name, "uid": crd["metadata"]["uid"]}
        about = {"apiVersion": f"{VERSION_USAGES.group}/v1alpha1", "kind": VERSION_USAGES.kind}
        content = about | {"metadata": {"name": name, "ownerReferences": [owner]}}
        return await self._client.create(VERSION_USAGE_RESOURCE, content, manager=POLYVER)

    def _report_missing(self) -> None:
        if self._pending and not self._reported:
            self._reported = True
            Log().warning("the counts of requests are not stored", missing=_NAME)

    def _ago(self, age: timedelta) -> str:
        return _format(self._clock.now() - age)


def _counted(version: str, counts: VersionCounts, own: str | None) -> Object:
    """Return the counts of a version in the form of `status.versions`, without the user `own`."""
    clients = {client: each for client, each in counts.clients.items() if client[0] != own}
    whole = [*clients.values(), counts.others]
    return {
        "version": version,
        "requests": sum(each.requests for each in whole),
        "lastRequest": _text(max(each.last for each in whole)),
        "clients": [
            {"user": user, "userAgent": agent}
            | {"requests": each.requests, "lastRequest": _text(each.last)}
            for (user, agent), each in clients.items()
        ],
        "otherClients": counts.others.requests,
        "conversions": counts.conversions.requests,
        "lastConversion": _text(counts.conversions.last),
    }


def _belongs(usage: Object, crd: Object) -> bool:
    owners = usage["metadata"].get("ownerReferences") or ()
    return crd["metadata"]["uid"] in [each["uid"] for each in owners]


def _of_clients(counted: Iterable[Object], crd: Object) -> Iterator[Object]:
    """Yield counts without the conversions to the storage version.

    API servers convert to the storage version for each write, and when they read objects that are
    stored in an older version. So these conversions do not show that a client uses this version.
    """
    stored = next(each["name"] for each in crd["spec"]["versions"] if each["storage"])
    for each in counted:
        if each["version"] != stored:
            yield each
        else:
            yield each | {"conversions": 0, "lastConversion": ""}


async def _own_name(client: Client) -> str:
    """Return the name of the user of polyver's own requests; "" if the server does not tell."""
    about = {"apiVersion": "authentication.k8s.io/v1", "kind": "SelfSubjectReview"}
    try:
        review = await client.create(_REVIEWS, about)
    except ApiError as error:
        if error.code in (403, 404):  # Kubernetes before 1.28 has no such review
            return ""
        raise
    return str(((review.get("status") or {}).get("userInfo") or {}).get("username") or "")


def _text(seconds: float) -> str:
    """Format a time in seconds since 1970; "" for 0."""
    return _format(datetime.fromtimestamp(seconds, UTC)) if seconds else ""


def _format(moment: datetime) -> str:
    return moment.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
