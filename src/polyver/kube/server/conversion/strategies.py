"""Conversion strategies of a custom kind: a webhook, a converter in this process, or renaming.

Renaming changes only the apiVersion. As in kube-apiserver, lists and watches get converted objects
from a cache, so that an unchanged object is converted once per version. Writes, and a GET without a
resourceVersion, convert the object each time.
"""

from __future__ import annotations

import asyncio
import base64
import binascii
import ssl
import uuid
from collections import OrderedDict
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any, Protocol, TypeVar

import msgspec

from polyver.core import PolyverError
from polyver.core.plain import Object
from polyver.kube.http.logs import Log
from polyver.kube.http.worker_threads import DaemonThreadPool, off_loop
from polyver.kube.objects import encode_json
from polyver.kube.objects.codec import is_larger
from polyver.kube.objects.converted_metadata import fresh
from polyver.kube.objects.kinds import ResourceKind
from polyver.kube.objects.status import internal
from polyver.kube.server.conversion.certificates import context_for
from polyver.kube.server.conversion.converters import ObjectConverter
from polyver.kube.server.conversion.reviews import (
    ConversionRequest,
    WebhookCallFailed,
    accepted,
    failure,
    review_version,
    source_of,
)
from polyver.kube.server.conversion.statuses import WebhookResponse, problem_of
from polyver.kube.server.conversion.transport import (
    Transport,
    WebhookAddress,
    no_service,
    post_with_retries,
    service_url,
)

__all__ = [
    "Cache",
    "ConversionStrategy",
    "InProcessConversion",
    "RenamingConversion",
    "WebhookConversion",
    "conversion_of",
    "in_turn",
]

TIMEOUT = 30.0
_THREADS = 8
"""The number of threads in which the conversion functions of one kind run."""
_SMALL = 4096
T = TypeVar("T")


class ConversionStrategy(Protocol):
    """A strategy of conversion: it converts objects of one kind between versions."""

    async def convert(self, obj: Object, api_version: str) -> Object:
        """Build the object in another version; raise ApiError if the conversion fails.

        The given object is not changed.
        """
        ...

    async def close(self) -> None:
        """Close the connections to a webhook, if there are any."""
        ...


def conversion_of(
    conversion: Mapping[str, Any] | None,
    kind: ResourceKind,
    served: ObjectConverter | None = None,
    *,
    timeout: float = TIMEOUT,
) -> ConversionStrategy:
    """Choose the strategy of a CRD.

    It is `served`, the converter in this process, or else the strategy in `spec.conversion`.
    """
    if served is not None:
        return InProcessConversion(served, timeout=timeout)
    if conversion and conversion.get("strategy") == "Webhook":
        return WebhookConversion(conversion, kind, timeout=timeout)
    return RenamingConversion()


class RenamingConversion:
    """The strategy `None` of a CRD: the conversion changes only the apiVersion."""

    async def convert(self, obj: Object, api_version: str) -> Object:
        return await in_turn(obj, lambda: _renamed(obj, api_version))

    async def close(self) -> None:
        pass


def _renamed(obj: Object, api_version: str) -> Object:
    renamed: Object = fresh(obj)
    renamed["apiVersion"] = api_version
    return renamed


async def in_turn(obj: Object, work: Callable[[], T]) -> T:
    """Run work on an object and return its result; if the object is large, in a worker thread."""
    return await off_loop(work) if is_larger(obj, _SMALL) else work()


def _needs_none(obj: Object, api_version: str) -> bool:
    """Report whether no conversion is needed: the object has the version, or has no fields."""
    return obj.get("apiVersion") == api_version or not obj.keys() - {"apiVersion", "kind"}


class InProcessConversion:
    """The strategy that calls a converter in this process.

    The result is checked like the answer of a webhook, and errors have the same wording.
    """

    def __init__(self, converter: ObjectConverter, *, timeout: float = TIMEOUT) -> None:
        self._converter = converter
        self._timeout = timeout
        self._threads = DaemonThreadPool(_THREADS)

    async def convert(self, obj: Object, api_version: str) -> Object:
        if _needs_none(obj, api_version):
            return _renamed(obj, api_version)
        version = api_version.rpartition("/")[2]
        try:
            if self._converter.calls_functions:
                # Conversion functions may take long, so they run in threads. Each kind has its
                # own threads, so that a function that hangs does not block other kinds.
                work = partial(self._converter.convert, obj, version)
                converted = await self._threads.run_within(self._timeout, work)
            else:
                converted = await in_turn(obj, lambda: self._converter.convert(obj, version))
        except TimeoutError:
            text = f"no answer within {self._timeout:.0f} s"
            raise failure(f"{source_of(obj)} failed: {text}") from None
        except PolyverError as error:
            raise failure(f"{source_of(obj)} failed: {error}") from None
        except Exception as error:
            Log().failure("a conversion failed", error, object=_name_of(obj))
            text = f"{_name_of(obj)} cannot be converted to {version}; see the log of the server"
            raise failure(f"{source_of(obj)} failed: {text}") from None
        return await in_turn(obj, lambda: accepted(obj, converted))

    async def close(self) -> None:
        pass


def _name_of(obj: Object) -> str:
    metadata = obj.get("metadata") or {}
    names = [metadata.get("namespace"), metadata.get("name")]
    return f"{obj.get('kind')} {'/'.join(filter(None, names))}"


class WebhookConversion:
    """The strategy that calls a webhook over HTTPS. Each CRD has its own instance."""

    def __init__(
        self, conversion: Mapping[str, Any], kind: ResourceKind, *, timeout: float = TIMEOUT
    ) -> None:
        hook = conversion.get("webhook") or {}
        client = hook.get("clientConfig") or {}
        self._kind = kind
        self._timeout = timeout
        self._accepted = tuple(hook.get("conversionReviewVersions") or ())
        self._bundle = client.get("caBundle") or ""
        self._service = client.get("service")
        url = service_url(self._service) if self._service else client.get("url") or ""
        self._address = WebhookAddress.parse(url)
        self._transport = Transport(self._address, self._context, timeout=timeout)

    def __repr__(self) -> str:
        return f"<Webhook of {self._kind.resource} at {self._address.authority}>"

    async def convert(self, obj: Object, api_version: str) -> Object:
        """Convert one object by calling the webhook."""
        if _needs_none(obj, api_version):
            return _renamed(obj, api_version)
        review = ConversionRequest(
            obj, api_version, str(uuid.uuid4()), review_version(self._accepted)
        )
        try:
            answer = await self._post(review.body)
        except WebhookCallFailed as error:
            raise failure(f"{review.source} failed: {error}") from None
        if problem := problem_of(answer):
            raise failure(f"{review.source} failed: {problem}")
        return review.converted(answer.body)

    async def _post(self, body: bytes) -> WebhookResponse:
        """Send a review. If the webhook requests a retry, send it again, until the timeout."""
        if self._service:
            raise no_service(self._address, self._service["name"], self._timeout)
        until = asyncio.get_running_loop().time() + self._timeout
        return await post_with_retries(self._transport, body, until=until)

    def _context(self) -> ssl.SSLContext:
        try:
            return context_for(base64.b64decode(self._bundle))
        except (ssl.SSLError, binascii.Error):
            # With an invalid CA bundle, kube-apiserver cannot serve the kind at all.
            raise internal("error resolving resource") from None

    async def close(self) -> None:
        await self._transport.close()


Key = tuple[str, str, str, str]
MOST_BYTES = 64 << 20


class Cache:
    """A cache of converted objects for one CRD. When the CRD changes, it gets a new cache."""

    def __init__(self, conversion: ConversionStrategy, *, most_bytes: int = MOST_BYTES) -> None:
        self._conversion = conversion
        self._most = most_bytes
        self._size = 0
        self._kept: OrderedDict[Key, bytes] = OrderedDict()
        self._running: dict[Key, asyncio.Task[bytes]] = {}

    async def convert(self, obj: Object, api_version: str) -> Object:
        """Return an object in another version, from the cache if possible.

        Concurrent requests for the same revision of an object share one conversion. Failures are
        not cached.
        """
        metadata: dict[str, Any] = obj.get("metadata") or {}
        uid, revision = metadata.get("uid"), metadata.get("resourceVersion")
        stored_as = obj.get("apiVersion", "")
        if not uid or not revision or stored_as == api_version:
            # The object was never stored, or needs no conversion.
            return await self._conversion.convert(obj, api_version)
        key = uid, revision, stored_as, api_version
        if (kept := self._kept.get(key)) is not None:
            self._kept.move_to_end(key)
            return _decoded(kept)
        if (task := self._running.get(key)) is None:
            task = asyncio.create_task(self._call(key, obj, api_version))
            self._running[key] = task
            task.add_done_callback(lambda done: self._finished(key, done))
        # If this caller is cancelled, the conversion continues for other callers.
        return _decoded(await asyncio.shield(task))

    async def _call(self, key: Key, obj: Object, api_version: str) -> bytes:
        converted = encode_json(await self._conversion.convert(obj, api_version))
        self._kept[key] = converted
        self._size += len(converted)
        while self._size > self._most:
            _, dropped = self._kept.popitem(last=False)
            self._size -= len(dropped)
        return converted

    def _finished(self, key: Key, task: asyncio.Task[bytes]) -> None:
        del self._running[key]
        if not task.cancelled():
            task.exception()  # if no caller waits, asyncio would log the exception

    async def close(self) -> None:
        """Cancel running conversions and clear the cache."""
        tasks = list(self._running.values())
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        self._kept.clear()
        self._size = 0


def _decoded(kept: bytes) -> Object:
    found: Object = msgspec.json.decode(kept)
    return found
