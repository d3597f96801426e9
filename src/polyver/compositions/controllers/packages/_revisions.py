"""Controller of FunctionRevisions: uses a runtime to serve each active revision at an endpoint."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

from polyver.client import Client, Clock, SystemClock, find, timestamp
from polyver.client.field_managers import POLYVER
from polyver.compositions.controllers.packages._lookup import FUNCTION_REVISIONS, observe_name
from polyver.compositions.names import ENDPOINT, IN_USE, SERVED
from polyver.compositions.packages import known_revision, revision_status
from polyver.compositions.runtimes import DesiredRevision, Runtime, ServingStatus
from polyver.compositions.runtimes.metrics import collector
from polyver.controllers.controller import Controller, Requeue, Watch, exactly
from polyver.controllers.finalizers import add_finalizer, has_finalizer, remove_finalizer
from polyver.controllers.statuses import write_status
from polyver.core import PolyverError
from polyver.core.plain import Object
from polyver.kube.objects.kinds import ResourceKind

if TYPE_CHECKING:
    from prometheus_client.registry import Collector

__all__ = ["FunctionRevisionController"]


class FunctionRevisionController(Controller[str]):
    """Reconciles FunctionRevisions.

    The key is the name. Changes in the runtime cause a reconcile too.

    The controller owns the runtime: when the controller is closed, it closes the runtime.
    """

    name = "functionrevisions"

    def __init__(self, client: Client, runtime: Runtime, *, clock: Clock | None = None) -> None:
        self._client = client
        self._runtime = runtime
        self._clock: Clock = clock or SystemClock()
        runtime.observe(self._wake)

    @property
    def watches(self) -> Sequence[Watch[Any, str]]:
        return [
            Watch(
                kinds=exactly(FUNCTION_REVISIONS), observe=observe_name, keep=_state, metadata=True
            )
        ]

    @property
    def collectors(self) -> Sequence[Callable[[], Collector]]:
        return (partial(collector, self._runtime.figures),)

    async def close(self) -> None:
        await self._runtime.close()

    def _wake(self, name: str) -> None:
        # read the attribute at each call, because the loop of the controller replaces `wake`
        self.wake(name)

    async def reconcile(self, key: str) -> Requeue | None:
        obj = await find(self._client, FUNCTION_REVISIONS, key)
        if obj is None:
            await self._runtime.end(key)
        elif _is_wanted(obj):
            await self._serve(obj)
        else:
            await self._end(obj)
        return None

    async def _serve(self, obj: Object) -> None:
        if "deletionTimestamp" not in obj["metadata"]:
            obj = await add_finalizer(self._client, FUNCTION_REVISIONS, obj, SERVED)
        try:
            served = await self._runtime.serve(_wanted(obj))
        except PolyverError as error:
            served = ServingStatus(reason="NotServed", message=str(error))
        await self._tell(obj, served)

    async def _end(self, obj: Object) -> None:
        await self._runtime.end(obj["metadata"]["name"])
        if "deletionTimestamp" not in obj["metadata"]:
            obj = await self._tell(obj, ServingStatus())
        await remove_finalizer(self._client, FUNCTION_REVISIONS, obj, SERVED)

    async def _tell(self, obj: Object, served: ServingStatus) -> Object:
        status = revision_status(
            obj,
            endpoint=served.endpoint,
            reason=served.reason,
            message=served.message,
            now=timestamp(self._clock),
        )
        return await write_status(self._client, FUNCTION_REVISIONS, obj, status, manager=POLYVER)


def _is_wanted(obj: Object) -> bool:
    """Report whether a function revision must be served.

    An active revision is served. If an active revision is being deleted, it is served only while it
    is in use.
    """
    metadata = obj["metadata"]
    held = has_finalizer(obj, IN_USE)
    active = obj["spec"]["desiredState"] == "Active"
    return active and (held or "deletionTimestamp" not in metadata)


def _wanted(obj: Object) -> DesiredRevision:
    known, metadata = known_revision(obj), obj["metadata"]
    return DesiredRevision(
        known.name, obj["spec"]["image"], known.digest, known.address, metadata["uid"]
    )


def _state(kind: ResourceKind, obj: Object) -> tuple[Any, ...]:
    del kind
    metadata = obj["metadata"]
    seen = (metadata.get(name) for name in ("uid", "generation", "deletionTimestamp"))
    address = (metadata.get("annotations") or {}).get(ENDPOINT)
    return (*seen, address, str(metadata.get("finalizers")))
