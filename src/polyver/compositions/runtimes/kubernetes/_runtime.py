"""Runtime that serves each function revision by a Deployment and a Service on a cluster.

The packages of the functions must be OCI images.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

from polyver.client import (
    Backoff,
    Change,
    Client,
    Clock,
    GroupVersionResource,
    Informer,
    SystemClock,
    chance,
    find,
    sleep,
)
from polyver.client.field_managers import POLYVER
from polyver.compositions.calls import Endpoint
from polyver.compositions.lineages import content_digest
from polyver.compositions.runtimes.external import reached
from polyver.compositions.runtimes.interface import DesiredRevision, Reason, ServingStatus
from polyver.compositions.runtimes.kubernetes._certificates import ClusterCertificates
from polyver.compositions.runtimes.kubernetes._manifests import (
    DEPLOYMENTS,
    REVISION,
    SECRETS,
    SERVICES,
    is_ours,
    issued_in,
    name_problem,
    objects_of,
    served_of,
)
from polyver.compositions.runtimes.metrics import Figures
from polyver.core import PolyverError
from polyver.core.plain import Object
from polyver.kube.http.logs import Log
from polyver.kube.objects.status import ApiError

__all__ = ["KubernetesRuntime"]

_LOOK_EVERY = 600.0
"""Seconds between two reconciles of a revision if no watch event arrives. A reconcile also renews
certificates.
"""
_BACKOFF = Backoff(first=0.5, most=60.0)


class NotOurs(PolyverError):
    """An object has the name that polyver needs, but polyver did not create this object."""


@dataclass(eq=False)
class _Served:
    """A function revision that the runtime has to serve, and its status."""

    wanted: DesiredRevision
    served: ServingStatus = field(default_factory=ServingStatus)
    news: asyncio.Event = field(default_factory=asyncio.Event)
    task: asyncio.Task[None] | None = None


class KubernetesRuntime:
    """Serves function revisions in one namespace of a cluster."""

    def __init__(
        self,
        client: Client,
        namespace: str,
        *,
        clock: Clock | None = None,
        log: Log | None = None,
    ) -> None:
        self._client = client
        self._namespace = namespace
        self._clock: Clock = clock or SystemClock()
        self._log = log or Log()
        self._certificates = ClusterCertificates(client, namespace, self._clock)
        self._revisions: dict[str, _Served] = {}
        self._observers: list[Callable[[str], None]] = []
        self._watching: asyncio.Task[None] | None = None

    async def digest(self, package: str, *, address: str = "") -> str:
        del address
        return content_digest(package)

    async def serve(self, wanted: DesiredRevision) -> ServingStatus:
        if problem := name_problem(wanted.name):
            return ServingStatus(reason="InvalidName", message=problem)
        known = self._revisions.get(wanted.name)
        if known is not None and known.wanted == wanted:
            return known.served
        if known is not None:
            await self._stop(known)
        found = self._revisions[wanted.name] = _Served(wanted)
        found.task = asyncio.create_task(self._keep(found))
        if self._watching is None:
            self._watching = asyncio.create_task(self._informer().run())
        return found.served

    async def end(self, name: str) -> None:
        known = self._revisions.pop(name, None)
        if known is not None:
            await self._stop(known)
        # After their deletion, the Pods of the Deployment have a grace period in which calls in
        # progress may finish.
        for resource in (DEPLOYMENTS, SERVICES, SECRETS):
            await self._delete(resource, name)

    async def reach(self, name: str, endpoint: str) -> Endpoint:
        return reached(name, endpoint, await self._certificates.trust(name))

    def observe(self, changed: Callable[[str], None]) -> None:
        self._observers.append(changed)

    def figures(self) -> Iterator[Figures]:
        for name, each in self._revisions.items():
            yield Figures(name, up=each.served.healthy)

    async def close(self) -> None:
        """Stop reconciling. The objects stay on the cluster for the next polyver process."""
        for known in self._revisions.values():
            await self._stop(known)
        self._revisions.clear()
        if self._watching is not None:
            self._watching.cancel()
            await asyncio.wait([self._watching])
            self._watching = None

    # Reconciliation.

    async def _keep(self, known: _Served) -> None:
        failures = 0
        while True:
            known.news.clear()
            try:
                served = await self._brought_about(known.wanted)
                failures = 0
            except PolyverError as error:
                failures += 1
                reason: Reason = "NotOurs" if isinstance(error, NotOurs) else "NotApplied"
                served = ServingStatus(reason=reason, message=str(error))
            except Exception as error:
                failures += 1
                self._log.failure("a revision is not served", error, revision=known.wanted.name)
                served = ServingStatus(
                    reason="NotApplied", message=f"{type(error).__name__}: {error}"
                )
            self._tell(known, served)
            pause = _BACKOFF.delay(failures, spread=chance()) if failures else _LOOK_EVERY
            await self._news(known, pause)

    async def _news(self, known: _Served, seconds: float) -> None:
        waits = [
            asyncio.ensure_future(known.news.wait()),
            asyncio.ensure_future(sleep(self._clock, seconds)),
        ]
        try:
            await asyncio.wait(waits, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for each in waits:
                each.cancel()

    async def _brought_about(self, wanted: DesiredRevision) -> ServingStatus:
        """Apply the objects that serve a revision. Return the status of its Deployment."""
        secret = await self._ours(SECRETS, wanted.name)
        issued = await self._certificates.fitting(wanted.name, issued_in(secret))
        applied: Object | None = None
        for resource, content in objects_of(wanted, self._namespace, issued):
            found = await self._ours(resource, wanted.name)
            # Use force only if the object exists: then it belongs to polyver. If it does not exist,
            # another client may be creating an object of this name at the same time.
            uid = {"uid": found["metadata"]["uid"]} if found is not None else {}
            wholly = {**content, "metadata": {**content["metadata"], **uid}}
            applied = await self._client.apply(
                resource, wholly, manager=POLYVER, force=found is not None
            )
        return served_of(applied, wanted.name, self._namespace)

    async def _ours(self, resource: GroupVersionResource, name: str) -> Object | None:
        """Return the object with this name; None if there is none.

        Raise NotOurs if polyver did not create it.
        """
        found = await find(self._client, resource, name, self._namespace)
        if found is not None and not is_ours(found, name):
            fact = f"{resource.plural} {self._namespace}/{name} has another owner"
            raise NotOurs(fact, hint="delete it, or use another namespace for polyver")
        return found

    async def _delete(self, resource: GroupVersionResource, name: str) -> None:
        found = await find(self._client, resource, name, self._namespace)
        if found is None or not is_ours(found, name):
            return
        uid = found["metadata"]["uid"]
        try:
            await self._client.delete(
                resource, name, self._namespace, propagation="Background", uid=uid
            )
        except ApiError as error:
            if error.code not in (404, 409):
                raise

    def _informer(self) -> Informer[int]:
        async def heard(change: Change[int]) -> None:
            known = self._revisions.get(change.key.name)
            if known is not None:
                known.news.set()

        return Informer(
            self._client,
            DEPLOYMENTS,
            keep=lambda found: int(found["metadata"].get("generation", 0)),
            handler=heard,
            namespace=self._namespace,
            labels=REVISION,
            clock=self._clock,
        )

    async def _stop(self, known: _Served) -> None:
        if known.task is not None:
            known.task.cancel()
            await asyncio.wait([known.task])

    def _tell(self, known: _Served, served: ServingStatus) -> None:
        if served != known.served:
            known.served = served
            for each in self._observers:
                each(known.wanted.name)
