"""Write Events about objects, each only once.

The name of an Event is derived from its content, so the same Event is not written again after a
restart.
"""

from __future__ import annotations

import hashlib
from typing import Literal

from polyver.client import Client, Clock, GroupVersionResource, timestamp
from polyver.core import PolyverError
from polyver.core.plain import Object
from polyver.kube.http.logs import Log
from polyver.kube.objects.status import ApiError

__all__ = ["Events"]

_EVENTS = GroupVersionResource("", "v1", "events")
_LONGEST = 1024


class Events:
    """Writes Events. If a write fails, the failure is logged and no exception is raised."""

    def __init__(self, client: Client, clock: Clock, log: Log, *, component: str) -> None:
        self._client = client
        self._clock = clock
        self._log = log
        self._component = component

    async def tell(
        self,
        about: Object,
        reason: str,
        message: str,
        *,
        type: Literal["Normal", "Warning"] = "Normal",  # noqa: A002
        once: str = "",
    ) -> None:
        """Write an Event about an object, unless the same Event exists.

        Two Events about the same object are the same if `once` is the same; without `once`, if the
        reason and the message are the same.
        """
        metadata = about["metadata"]
        namespace = metadata.get("namespace", "default")
        named = once or f"{reason}\n{message}"
        digest = hashlib.sha256(f"{metadata['uid']}\n{named}".encode()).hexdigest()
        now = timestamp(self._clock)
        event = {
            "apiVersion": "v1",
            "kind": "Event",
            "metadata": {"name": f"{metadata['name'][:200]}.{digest[:16]}", "namespace": namespace},
            "involvedObject": {
                "apiVersion": about["apiVersion"],
                "kind": about["kind"],
                "name": metadata["name"],
                "namespace": namespace,
                "uid": metadata["uid"],
                "resourceVersion": metadata["resourceVersion"],
            },
            "type": type,
            "reason": reason,
            "message": message if len(message) <= _LONGEST else f"{message[: _LONGEST - 1]}…",
            "source": {"component": self._component},
            "reportingComponent": self._component,
            "firstTimestamp": now,
            "lastTimestamp": now,
            "count": 1,
        }
        try:
            await self._client.create(_EVENTS, event, namespace)
        except ApiError as error:
            if error.reason != "AlreadyExists":
                self._log.warning("an Event cannot be written", message=message, error=str(error))
        except PolyverError as error:
            self._log.warning("an Event cannot be written", message=message, error=str(error))
