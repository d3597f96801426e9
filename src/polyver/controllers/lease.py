"""Leader election: the replicas use a lease to agree on one leader.

A pure function decides what a replica does about the lease. The times in a lease are only for
people to read. Replicas do not compare these times, because the clocks of machines differ. A
replica takes the lease if it has not seen any change of the lease for longer than the lease's
duration.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import dataclass
from typing import Any, Literal

from polyver.client import Client, Clock, GroupVersionResource, SystemClock, find, sleep
from polyver.client.field_managers import POLYVER
from polyver.core.plain import Object
from polyver.kube.objects.status import ApiError

__all__ = ["Leadership", "Lease", "Terms", "decide"]

LEASES = GroupVersionResource("coordination.k8s.io", "v1", "leases")


@dataclass(frozen=True, slots=True)
class Terms:
    """The time limits of a lease."""

    seconds: float = 15.0
    """Seconds without a renewal after which another replica may take the lease."""
    give_up: float = 10.0
    """Seconds without a successful renewal after which the leader stops its work."""
    every: float = 2.0
    """Seconds between two renewals by the leader, or between two checks by another replica."""


@dataclass(frozen=True, slots=True)
class _ObservedLease:
    """The last observed state of a lease, and the time at which it was first observed."""

    spec: dict[str, Any]
    at: float

    @property
    def until(self) -> float:
        """The time after which another replica may take the lease, if it has not been renewed."""
        return self.at + float(self.spec.get("leaseDurationSeconds") or 0)


Step = Literal["take", "renew", "wait"]


def decide(seen: _ObservedLease | None, identity: str, now: float) -> Step:
    """Decide what the replica `identity` does about a lease: take, renew or wait.

    >>> decide(None, "a", now=0)
    'take'
    >>> held = _ObservedLease({"holderIdentity": "b", "leaseDurationSeconds": 15}, at=0)
    >>> [decide(held, "a", now=10), decide(held, "a", now=16), decide(held, "b", now=16)]
    ['wait', 'take', 'renew']
    """
    holder = seen.spec.get("holderIdentity") if seen is not None else ""
    if seen is None or not holder:
        return "take"
    if holder == identity:
        return "renew"
    return "take" if now >= seen.until else "wait"


def taken(
    before: dict[str, Any] | None, identity: str, moment: str, seconds: float
) -> dict[str, Any]:
    """Build the spec of a lease that a replica takes or renews."""
    old = before or {}
    ours = old.get("holderIdentity") == identity
    changes = int(old.get("leaseTransitions") or 0)
    return {
        **old,
        "holderIdentity": identity,
        "leaseDurationSeconds": int(seconds),
        "acquireTime": old.get("acquireTime") if ours else moment,
        "renewTime": moment,
        "leaseTransitions": changes if ours or before is None else changes + 1,
    }


class Lease:
    """One lease on a server, as one replica sees it."""

    def __init__(
        self,
        client: Client,
        name: str,
        namespace: str,
        identity: str,
        *,
        terms: Terms = Terms(),  # noqa: B008 - it does not change
        clock: Clock | None = None,
    ) -> None:
        self.identity = identity
        self.terms = terms
        self.clock: Clock = clock or SystemClock()
        self._client = client
        self._name = name
        self._namespace = namespace
        self._seen: _ObservedLease | None = None

    @property
    def holder(self) -> str:
        """The replica that holds the lease, as last seen; empty if none holds it."""
        return str(self._seen.spec.get("holderIdentity") or "") if self._seen else ""

    @property
    def pause(self) -> float:
        """The seconds until the next check of the lease; not later than the lease expires."""
        left = self._seen.until - self.clock.time() if self._seen else self.terms.every
        return min(self.terms.every, max(left, 0.1))

    async def try_once(self) -> bool:
        """Take or renew the lease if possible; return True if this replica then holds it."""
        found = await find(self._client, LEASES, self._name, self._namespace)
        self._see(found)
        if decide(self._seen, self.identity, self.clock.time()) == "wait":
            return False
        try:
            self._see(await self._write(found))
        except ApiError as error:
            if error.code != 409:  # 409: another replica was faster
                raise
            return False
        return True

    async def release(self) -> None:
        """Release the lease, if this replica holds it, so that another replica can take it."""
        found = await find(self._client, LEASES, self._name, self._namespace)
        if found is None or found["spec"].get("holderIdentity") != self.identity:
            return
        spec = {**found["spec"], "holderIdentity": "", "leaseDurationSeconds": 1}
        await self._client.update(LEASES, {**found, "spec": spec}, manager=POLYVER)

    def _see(self, found: Object | None) -> None:
        spec = found["spec"] if found is not None else None
        if spec is None:
            self._seen = None
        elif self._seen is None or self._seen.spec != spec:
            self._seen = _ObservedLease(spec, self.clock.time())

    async def _write(self, found: Object | None) -> Object:
        moment = self.clock.now().strftime("%Y-%m-%dT%H:%M:%S.%fZ")
        before = found["spec"] if found is not None else None
        spec = taken(before, self.identity, moment, self.terms.seconds)
        if found is not None:
            return await self._client.update(LEASES, {**found, "spec": spec}, manager=POLYVER)
        about = {"apiVersion": "coordination.k8s.io/v1", "kind": "Lease"}
        made = {**about, "metadata": {"name": self._name}, "spec": spec}
        return await self._client.create(LEASES, made, self._namespace, manager=POLYVER)


class Leadership:
    """Runs work while this replica holds the lease."""

    def __init__(
        self,
        lease: Lease,
        work: Callable[[], AbstractAsyncContextManager[object]],
        *,
        tell: Callable[[str, str], None] = lambda *_: None,
    ) -> None:
        """Create the leadership of one replica; `work` runs while the replica is the leader.

        `tell` is called when this replica becomes the leader, sees another leader, or has lost the
        lease.
        """
        self._lease = lease
        self._work = work
        self._tell = tell
        self.leads = False

    @asynccontextmanager
    async def running(self) -> AsyncIterator[asyncio.Task[None]]:
        """Take part in the election during a `with` block.

        At the end of the block, end the work and release the lease. The yielded task ends by itself
        only if the work raises an error when it starts or ends.
        """
        task = asyncio.create_task(self._run())
        try:
            yield task
        finally:
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)

    async def _run(self) -> None:
        while True:
            await self._until(self._ours)
            self.leads = True
            self._tell("leads", self._lease.identity)
            try:
                await self._lead()
                self._tell("lost the lease", self._lease.holder)
            finally:
                self.leads = False

    async def _lead(self) -> None:
        """Run the work until this replica has lost the lease.

        If the task is cancelled, end the work and release the lease.
        """
        try:
            async with self._work():
                await self._keep()
        except asyncio.CancelledError:
            with contextlib.suppress(Exception):
                await asyncio.shield(
                    asyncio.wait_for(self._lease.release(), self._lease.terms.every)
                )
            raise

    async def _keep(self) -> None:
        """Renew the lease again and again; return when this replica has lost it.

        It is lost if another replica holds it, or if no renewal has succeeded for too long.
        """
        clock, terms = self._lease.clock, self._lease.terms
        renewed = clock.time()
        while clock.time() - renewed < terms.give_up:
            await sleep(clock, terms.every)
            began = clock.time()
            left = terms.give_up - (began - renewed)
            ours = await self._bounded(self._lease.try_once(), left)
            if ours is False:
                return
            if ours:
                renewed = began

    async def _ours(self) -> bool:
        before = self._lease.holder
        found = await self._bounded(self._lease.try_once(), self._lease.terms.give_up)
        if not found and self._lease.holder not in ("", before):
            self._tell("follows", self._lease.holder)
        return bool(found)

    async def _bounded(self, asked: Awaitable[bool], seconds: float) -> bool | None:
        """Return the result of an attempt; None if it fails or takes longer than `seconds`."""
        task = asyncio.ensure_future(asked)

        def give_up() -> None:
            task.cancel()

        timer = self._lease.clock.call_later(max(seconds, 0.0), give_up)
        try:
            return await task
        except asyncio.CancelledError:
            current = asyncio.current_task()
            if current is not None and current.cancelling():
                raise
            return None
        except Exception as error:
            self._tell("the lease cannot be read or written", str(error))
            return None
        finally:
            timer.cancel()

    async def _until(self, holds: Callable[[], Awaitable[bool]]) -> None:
        while not await holds():
            await sleep(self._lease.clock, self._lease.pause)
