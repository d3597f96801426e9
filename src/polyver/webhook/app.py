"""The ASGI application of the webhook server: reviews, health checks and metrics.

A conversion by rules runs on the event loop if recent conversions of this size were quick.
Otherwise it runs in a worker thread, so that the event loop can answer other requests. Functions of
users (conversion functions and hooks) always run in worker threads.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Mapping
from contextlib import ExitStack, suppress
from dataclasses import dataclass, field
from functools import lru_cache, partial
from math import inf
from time import monotonic
from urllib.parse import parse_qs

from polyver.core import PolyverError
from polyver.kube.http.health import Checks, health
from polyver.kube.http.http import (
    BodyTooLarge,
    ClientDisconnected,
    EncodedResponse,
    HttpResponse,
    Quick,
    Receive,
    RequestHeaders,
    Scope,
    Send,
    read_duration,
    read_into,
    start,
)
from polyver.kube.http.logs import Log
from polyver.kube.http.worker_threads import DaemonThreadPool
from polyver.kube.objects.status import ApiError
from polyver.kube.objects.webhooks import CONVERT
from polyver.kube.server.admission import AdmissionChain
from polyver.kube.server.request_counts import RequestCounts
from polyver.webhook.admission import Act, admit
from polyver.webhook.budget import (
    MemoryBudget,
    MemoryBudgetExceeded,
    MemoryReservation,
    estimated,
    memory_limit,
)
from polyver.webhook.configurations import MUTATE, VALIDATE
from polyver.webhook.conversion import CallsFunctions, Converters, Reviews
from polyver.webhook.metrics import WebhookMetrics
from polyver.webhook.reviews import Key, Reviewed, refused
from polyver.webhook.workers import FunctionKinds, Workers

__all__ = ["MOST_BODY", "ReviewHandlers", "WebhookApp"]

_ACTS: Mapping[str, Act] = {MUTATE: "mutate", VALIDATE: "validate"}

MOST_BODY = 64 * 1024 * 1024
_COUNTED_HERE = 1024 * 1024
"""If a body has more bytes than this, the memory that it needs is estimated in a worker thread."""
_SENDING = 60.0
"""The maximum number of seconds that a client may take to read an answer."""
_LOGGED_EVERY = 1.0
"""The minimum number of seconds between two log messages about reviews that were refused for lack
of memory.
"""
_QUICK = 0.01
"""The maximum number of seconds for which a review may block the event loop.

Starting a thread blocks the event loop for about the same time.
"""
_SMALL = 64 * 1024
"""All reviews with at most this number of bytes are assumed to take the same time."""
_AT_FIRST = -1.0
"""The initial maximum size, in bytes, of reviews on the event loop. It is below 0, so the first
review runs in a worker thread.
"""
_MOMENT = 1e-6
_FORGETTING = 0.9
"""With each review, the limit for the event loop grows by at most the factor 1 / `_FORGETTING`.

The limit is the maximum size of reviews on the event loop. A slow review lowers it immediately.
Because the limit can grow again, one slow review does not move hundreds of later reviews to worker
threads.
"""
_TIMEOUT = 30.0
_IN_TIME = 0.95
"""The share of the client's timeout within which polyver must have the answer."""
_USUAL = b"application/json"
"""The content type that API servers send."""
_NO_FUNCTIONS: tuple[Key, ...] = ()
_HEALTH = (["healthz"], ["livez"], ["readyz"])
_JSON = [("content-type", "application/json")]
_JSON_LINE = b"content-type: application/json\r\n"
_FAILED = "this request failed; see the log of the webhook"


_Answer = Callable[[bytearray, float, MemoryReservation], Awaitable[Reviewed]]


@dataclass(frozen=True, slots=True)
class ReviewHandlers:
    """The converters and the admission chain that answer reviews."""

    converters: Converters
    chain: AdmissionChain = field(default_factory=AdmissionChain)
    admitted: frozenset[Key] = frozenset()
    """The kinds, as group and kind, whose writes the admission chain reviews."""
    names: Mapping[Key, str] = field(default_factory=dict)
    """The names of CustomResourceDefinitions by group and kind, to count conversions."""

    @property
    def kinds(self) -> frozenset[Key]:
        return self.admitted | self.converters.keys()


class WebhookApp:
    """The ASGI application. A caller can replace its converters and admission chain at any time."""

    def __init__(
        self,
        served: ReviewHandlers,
        *,
        checks: Checks | None = None,
        metrics: WebhookMetrics | None = None,
        log: Log | None = None,
        most_body: int = MOST_BODY,
        memory: int | None = None,
        documents: Mapping[str, Callable[[], Awaitable[bytes]]] | None = None,
        counts: RequestCounts | None = None,
    ) -> None:
        """Create the application.

        It adds converted objects to `counts`.
        `memory` is the memory limit of the process in bytes; by default, the limit of its cgroup.
        `documents` are JSON documents to serve, by URL path.
        """
        self._served = served
        self._reviews = Reviews(served.converters)
        self._functions = FunctionKinds(served.converters)
        self._metrics = metrics or WebhookMetrics()
        self._documents = documents or {}
        self._counts = counts
        self._log = log or Log()
        self._budget = self._metrics.budget = MemoryBudget(memory or memory_limit(), most_body)
        self._logged = 0.0
        self._pace = _Pace()
        self._worker_threads = DaemonThreadPool()
        """Threads for conversions by rules that are too slow for the event loop."""
        self._workers = Workers()
        self._draining = False
        alive: Checks = {"ping": lambda: ""}
        loaded: Checks = {"conversions": self._unloaded}
        ready = {**alive, **loaded, **(checks or {}), "shutdown": self._ending}
        self._checks: Mapping[str, Checks] = {"healthz": alive, "livez": alive, "readyz": ready}

    def serve(self, served: ReviewHandlers) -> None:
        """Use these converters and this chain from now on, but not for reviews that have begun."""
        gone = self._served.kinds - served.kinds
        self._served = served
        self._reviews = Reviews(served.converters)
        self._functions = FunctionKinds(served.converters)
        self._metrics.withdraw(*gone)

    def drain(self) -> None:
        """Begin the shutdown: fail the readiness check; close each connection after its answer."""
        self._draining = True

    def _unloaded(self) -> str:
        return "" if self._served.kinds else "no conversion is loaded"

    def _ending(self) -> str:
        return "process is shutting down" if self._draining else ""

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        with ExitStack() as held:
            try:
                response = await self._answer(scope, receive, held)
            except ClientDisconnected:
                return
            except Exception as error:
                self._log.failure("a request failed", error, path=scope["path"])
                response = _refusal(500, "InternalError", _FAILED)
            # A client that does not read the answer must not occupy memory that other reviews need.
            async with asyncio.timeout(_SENDING):
                await self._send(response, send)

    async def _send(self, response: HttpResponse, send: Send) -> None:
        closing = [("connection", "close")] if self._draining else []
        await send(start(response, closing))
        await send({"type": "http.response.body", "body": response.body})

    async def _answer(self, scope: Scope, receive: Receive, held: ExitStack) -> HttpResponse:
        path, method = scope["path"], scope["method"]
        allowed = ("GET", "HEAD") if path in self._documents else _allowed(path)
        if not allowed:
            known = f"reviews go to {CONVERT}, {MUTATE} and {VALIDATE}"
            return _refusal(404, "NotFound", f"unknown path {path}; {known}")
        if method not in allowed:
            words = " or ".join(allowed)
            refusal = _refusal(405, "MethodNotAllowed", f"{path} takes {words}, not {method}")
            refusal.headers.append(("allow", ", ".join(allowed)))
            return refusal
        if "POST" in allowed:
            return await self._review(scope, receive, held)
        if path in self._documents:
            return await self._document(path)
        if path == "/metrics":
            return self._metrics.response()
        query = scope["query_string"].decode("latin-1")
        return health(path, query, self._checks[path.split("/", 2)[1]], failing=503)

    async def _document(self, path: str) -> HttpResponse:
        try:
            body = await self._documents[path]()
        except PolyverError as error:
            return _refusal(503, "ServiceUnavailable", str(error))
        return HttpResponse(200, [("content-type", "application/json")], body)

    async def _review(self, scope: Scope, receive: Receive, held: ExitStack) -> HttpResponse:
        """Answer a review; its memory is reserved until the caller closes `held`."""
        began = monotonic()
        act = _ACTS.get(scope["path"])
        try:
            headers = dict(scope["headers"])
            _check_content(headers)
            until = began + _request_timeout(scope["query_string"]) * _IN_TIME
            answer = self._converted if act is None else partial(self._admitted, act)
            body = await self._read(receive, _length(headers), until, held)
            reviewed = await self._decoded(body, answer, until)
            del body
        except BodyTooLarge as error:
            reviewed = refused(ApiError(413, "RequestEntityTooLarge", str(error)))
        except ApiError as error:
            reviewed = refused(error)
            if error.code == 429:
                self._log_refusal()
        self._note(reviewed, monotonic() - began)
        again = [("retry-after", "1")] if reviewed.status == 429 else []
        return HttpResponse(reviewed.status, [*_JSON, *again], reviewed.body)

    async def _read(
        self, receive: Receive, length: int | None, until: float, held: ExitStack
    ) -> bytearray:
        """Read the body of a request, as soon as the budget has enough memory for the body.

        `length` is its Content-Length. The memory is reserved until the caller closes `held`.
        """
        bodies, most = self._budget.bodies, self._budget.most_body
        # A body without a Content-Length may have the maximum size; a body that is larger is
        # dropped.
        size = most if length is None else length if length <= most else 0
        try:
            # At most half of the timeout is spent waiting for memory: after a longer wait, there
            # would not be enough time to answer.
            await bodies.take(size, (monotonic() + until) / 2)
        except MemoryBudgetExceeded:
            await _discard(receive, 2 * most)
            raise
        # The answer has about the size of the body, and takes over its share of the memory.
        held.callback(bodies.give, size)
        body = bytearray()
        await read_into(receive, body, most=most, most_discarded=2 * most)
        return body

    async def _decoded(self, body: bytearray, answer: _Answer, until: float) -> Reviewed:
        work = self._budget.work
        count = partial(estimated, body)
        needed = count() if len(body) <= _COUNTED_HERE else await self._worker_threads.run(count)
        if needed > work.size:
            text = f"it needs about {needed >> 20} MiB of memory, and {work.size >> 20} are free"
            raise BodyTooLarge(f"Request entity too large: {text}")
        await work.take(needed, until)
        lease = MemoryReservation(work, needed)
        try:
            with self._metrics.under_way():
                return await answer(body, until, lease)
        finally:
            lease.close()

    def _log_refusal(self) -> None:
        if monotonic() - self._logged < _LOGGED_EVERY:
            return
        self._logged = monotonic()
        budget = self._budget
        self._log.warning(
            "reviews are refused: not enough memory",
            refused=budget.refused,
            used=budget.used,
            limit=budget.bodies.size + budget.work.size,
        )

    async def _admitted(
        self, act: Act, body: bytearray, until: float, lease: MemoryReservation
    ) -> Reviewed:
        del lease
        left = max(until - monotonic(), 0)
        return await admit(body, self._served.chain, act, timeout=round(left, 1))

    async def _converted(self, body: bytearray, until: float, lease: MemoryReservation) -> Reviewed:
        reviews = self._reviews
        kinds = self._functions.named_early(body)
        if not kinds:
            try:
                return await self._by_rules(body, reviews, until, lease)
            except CallsFunctions as found:
                kinds = (found.kind,)
        answer = partial(lease.run, partial(reviews.answer, body, until, kinds))
        try:
            return await self._called(kinds, answer, until)
        except CallsFunctions:
            # The review also has objects of a second kind with functions. These functions must not
            # block the threads of the first kind.
            answer = partial(lease.run, partial(reviews.answer, body, until))
            return await self._called((), answer, until)

    async def _by_rules(
        self, body: bytearray, reviews: Reviews, until: float, lease: MemoryReservation
    ) -> Reviewed:
        """Answer a ConversionReview that calls no function of users."""
        work = partial(self._convert, body, reviews, until)
        if len(body) <= self._pace.most_quick:
            return work()
        try:
            async with asyncio.timeout(until - monotonic()):
                return await self._worker_threads.run(partial(lease.run, work))
        except TimeoutError:
            text = "the conversion timed out"
            return refused(ApiError(504, "Timeout", text))

    async def _called(
        self, kinds: tuple[Key, ...], work: Callable[[], Reviewed], until: float
    ) -> Reviewed:
        """Answer a ConversionReview that calls functions of users, in threads of their kinds."""
        try:
            return await self._workers.run(kinds, work, until)
        except ApiError as error:
            names = ", ".join(f"{kind}.{group}" for group, kind in kinds) or "several"
            self._log.warning("a conversion by functions timed out", kinds=names)
            return refused(error)

    def _convert(self, body: bytes | bytearray, reviews: Reviews, until: float) -> Reviewed:
        began = monotonic()
        found = reviews.answer(body, until, _NO_FUNCTIONS)
        self._pace.learn(len(body), monotonic() - began)
        return found

    def at_once(self, request: RequestHeaders) -> Quick | None:
        """Return a function that answers a request on the event loop; None if this is impossible.

        The request must be a ConversionReview. The function does less work than the ASGI
        application, and gives the same answers.
        """
        if request.path != CONVERT or request.method != "POST" or _odd(request.headers):
            return None
        return partial(self.convert_at_once, _request_timeout(request.query) * _IN_TIME)

    def convert_at_once(self, timeout: float, body: bytes | bytearray) -> EncodedResponse | None:
        """Answer a ConversionReview on the event loop; return None if this may take too long."""
        # In a review of one object, most time is spent here, so this code avoids function calls.
        size = len(body)
        if self._draining or size > min(self._budget.most_body, self._pace.most_quick):
            return None
        if self._functions and self._functions.named_early(body):
            return None
        began = monotonic()
        try:
            reviewed = self._reviews.answer(body, began + timeout, _NO_FUNCTIONS)
        except CallsFunctions:
            return None
        except Exception as error:
            self._log.failure("a request failed", error, path=CONVERT)
            return EncodedResponse(
                500, _JSON_LINE, refused(ApiError(500, "InternalError", _FAILED)).body
            )
        took = monotonic() - began
        self._pace.learn(size, took)
        self._note(reviewed, took)
        return EncodedResponse(reviewed.status, _JSON_LINE, reviewed.body)

    def _note(self, reviewed: Reviewed, seconds: float) -> None:
        self._metrics.observe(reviewed, seconds)
        if self._counts is not None:
            for key, count in reviewed.objects.items():
                if name := self._served.names.get(key):
                    self._counts.converted(name, reviewed.version, count)
        if reviewed.fault is not None or self._log.verbose:
            self._record(reviewed, seconds)

    def _record(self, reviewed: Reviewed, seconds: float) -> None:
        if reviewed.fault is not None:
            self._log.failure("a conversion failed", reviewed.fault, object=reviewed.about)
        if self._log.verbose:
            count, took = sum(reviewed.objects.values()), round(seconds * 1000, 2)
            self._log.info("review", status=reviewed.status, objects=count, ms=took)


class _Pace:
    """Estimates the maximum body size of a quick review, from the slowest recent reviews.

    A review is quick if it blocks the event loop for at most `_QUICK` seconds.
    """

    def __init__(self) -> None:
        self.most_quick = _AT_FIRST
        self._most = inf

    def learn(self, size: int, seconds: float) -> None:
        # The number of bytes that are quick at this pace; if it is below `_SMALL`, no review is
        # quick.
        most = _QUICK * max(size, _SMALL) / max(seconds, _MOMENT)
        self._most = min(most, self._most / _FORGETTING)
        self.most_quick = self._most if self._most >= _SMALL else -1.0


def _allowed(path: str) -> tuple[str, ...]:
    """Return the HTTP methods that a path supports; an empty tuple if the path is not served."""
    if path == CONVERT or path in _ACTS:
        return ("POST",)
    if path == "/metrics" or path.split("/", 2)[1:2] in _HEALTH:
        return ("GET", "HEAD")
    return ()


async def _discard(receive: Receive, most: int) -> None:
    """Read a body and drop it: many clients read no answer before they have sent the body."""
    with suppress(BodyTooLarge):
        await read_into(receive, bytearray(), most=0, most_discarded=most)


def _length(headers: Mapping[bytes, bytes]) -> int | None:
    """Return the Content-Length of a body; None if the header is missing or invalid."""
    length = headers.get(b"content-length", b"")
    return int(length) if length.isdigit() else None


@lru_cache(64)
def _request_timeout(query: bytes) -> float:
    """Return the client's timeout in seconds: API servers send it as ?timeout=30s; at most 30 s."""
    timeout = parse_qs(query.decode("latin-1")).get("timeout", [""])[0]
    return min(read_duration(timeout) or _TIMEOUT, _TIMEOUT)


def _odd(headers: Iterable[tuple[bytes, bytes]]) -> bool:
    """Report whether the headers state a compressed body, or a body that may not be JSON."""
    for name, value in headers:
        if name == b"content-type" and value != _USUAL:
            return True
        if name == b"content-encoding":
            return True
    return False


def _check_content(headers: Mapping[bytes, bytes]) -> None:
    form = _header(headers, b"content-type").partition(";")[0].strip()
    if form not in ("", "application/json") and not form.endswith("+json"):
        text = f"the body is {form[:100]}; reviews are application/json"
        raise ApiError(415, "UnsupportedMediaType", text)
    if _header(headers, b"content-encoding").strip() not in ("", "identity"):
        raise ApiError(415, "UnsupportedMediaType", "the body is compressed; send it uncompressed")


def _header(headers: Mapping[bytes, bytes], name: bytes) -> str:
    return headers.get(name, b"").decode("latin-1").lower()


def _refusal(code: int, reason: str, text: str) -> HttpResponse:
    return HttpResponse(code, list(_JSON), refused(ApiError(code, reason, text)).body)
