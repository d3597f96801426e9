"""Cache of converted objects, so that an unchanged object is converted once.

As in kube-apiserver, lists and watches use the cache, which has an entry per version. A write, and
a GET without a resourceVersion, convert each time.
"""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from typing import Any

import msgspec

from polyver.core.plain import Object
from polyver.kube.objects import encode_json
from polyver.kube.server.conversion.webhook import ConversionStrategy

__all__ = ["Cache"]

Key = tuple[str, str, str, str]
MOST_BYTES = 64 << 20


class Cache:
    """The cache of one definition, used as long as the definition does not change."""

    def __init__(self, conversion: ConversionStrategy, *, most_bytes: int = MOST_BYTES) -> None:
        self._conversion = conversion
        self._most = most_bytes
        self._size = 0
        self._kept: OrderedDict[Key, bytes] = OrderedDict()
        self._running: dict[Key, asyncio.Task[bytes]] = {}

    async def convert(self, obj: Object, api_version: str) -> Object:
        """Return the object in another version, from the cache if it is there.

        Concurrent requests for the same state share one call. Failures are not cached.
        """
        key = _key(obj, api_version)
        if key is None:
            return await self._conversion.convert(obj, api_version)
        if (kept := self._kept.get(key)) is not None:
            self._kept.move_to_end(key)
            return _decoded(kept)
        if (task := self._running.get(key)) is None:
            task = asyncio.create_task(self._call(key, obj, api_version))
            self._running[key] = task
            task.add_done_callback(lambda done: self._finished(key, done))
        # A cancelled caller must not cancel the conversion for the others who await it.
        return _decoded(await asyncio.shield(task))

    async def _call(self, key: Key, obj: Object, api_version: str) -> bytes:
        converted = encode_json(await self._conversion.convert(obj, api_version))
        self._keep(key, converted)
        return converted

    def _finished(self, key: Key, task: asyncio.Task[bytes]) -> None:
        del self._running[key]
        if not task.cancelled():
            task.exception()  # raised to the callers that waited, if any did

    def _keep(self, key: Key, converted: bytes) -> None:
        self._kept[key] = converted
        self._size += len(converted)
        while self._size > self._most:
            _, dropped = self._kept.popitem(last=False)
            self._size -= len(dropped)

    async def close(self) -> None:
        """Cancel running conversions and clear the cache."""
        tasks = list(self._running.values())
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        self._kept.clear()
        self._size = 0


def _key(obj: Object, api_version: str) -> Key | None:
    """Return the key of one state of an object; None for an object that was never stored."""
    metadata: dict[str, Any] = obj.get("metadata") or {}
    uid, revision = metadata.get("uid"), metadata.get("resourceVersion")
    if not uid or not revision or obj.get("apiVersion") == api_version:
        return None
    return uid, revision, obj.get("apiVersion", ""), api_version


def _decoded(kept: bytes) -> Object:
    found: Object = msgspec.json.decode(kept)
    return found
