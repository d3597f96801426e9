"""The webhook's application: reviews, health and metrics, whatever is sent to it.

A conversion by rules is answered at once where that is quick. What is expected to take longer, from
what earlier ones took, is done in a worker thread, so that others are answered meanwhile. Functions
of users, in conversions and in hooks, always run in worker threads.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import lru_cache, partial
from math import inf
from time import monotonic
from urllib.parse import parse_qs

from polyver.admission.chain import Chain
from polyver.admission.configurations import MUTATE, VALIDATE
from polyver.objects.status import ApiError
from polyver.serving.aside import Aside
from polyver.serving.health import Checks, health
from polyver.serving.http import (
    Answer,
    Gone,
    Head,
    Quick,
    Receive,
    Response,
    Scope,
    Send,
    TooLarge,
    read_body,
    read_duration,
    start,
)
from polyver.serving.logs import Log
from polyver.webhook.admission import Act, admit
from polyver.webhook.compiled import Reviews
from polyver.webhook.conversion import Converters
from polyver.webhook.metrics import Metrics
from polyver.webhook.reviews import Key, Reviewed, refused
from polyver.webhook.workers import FunctionKinds, Workers

__all__ = ["CONVERT", "MOST_BODY", "App", "Served"]

CONVERT = "/convert"
_ACTS: Mapping[str, Act] = {MUTATE: "mutate", VALIDATE: "validate"}

MOST_BODY = 64 * 1024 * 1024
_BODIES_AT_ONCE = 4
"""As many of the largest as this are held at a time."""
_QUICK = 0.01
"""Not much longer than Python lets a thread hold up the others: a thread would not help."""
_SMALL = 64 * 1024
"""Reviews up to this size are taken to cost the same: what they cost is not their bytes."""
_AT_FIRST = -1.0
"""Nothing is known of the first review, so that is not waited for."""
_MOMENT = 1e-6
_MOST_NOTED = 32
_FORGETTING = 0.9
"""A process that had to wait once for a processor is not slow for hundreds of reviews."""
_TIMEOUT = 30.0
_IN_TIME = 0.95
"""The share of a client's patience after which an answer would come too late."""
_USUAL = b"application/json"
"""What API servers say of a body."""
_HEALTH = (["healthz"], ["livez"], ["readyz"])
_JSON = [("content-type", "application/json")]
_JSON_LINE = b"content-type: application/json\r\n"
_FAILED = "this request failed; the webhook's log says why"


@dataclass(frozen=True, slots=True)
class Served:
    """What reviews are answered with."""

    converters: Converters
    chain: Chain = field(default_factory=Chain)
    admitted: frozenset[Key] = frozenset()
    """The kinds that the chain has something to say about."""

    @property
    def kinds(self) -> frozenset[Key]:
        return self.admitted | self.converters.keys()


class App:
    """What is served; for which kinds can be changed at any time."""

    def __init__(
        self,
        served: Served,
        *,
        checks: Checks | None = None,
        metrics: Metrics | None = None,
        log: Log | None = None,
        most_body: int = MOST_BODY,
    ) -> None:
        self._served = served
        self._reviews = Reviews(served.converters)
        self._functions = FunctionKinds(served.converters)
        self._metrics = metrics or Metrics()
        self._log = log or Log()
        self._room = _Room(most_body)
        self._pace = _Pace()
        self._noted: list[tuple[int, float, Mapping[Key, int]]] = []
        """Reviews that went well and are not counted yet: their sizes, times and objects."""
        self._aside = Aside()
        """For reviews by rules that are too large for the event loop."""
        self._workers = Workers()
        self._draining = False
        alive: Checks = {"ping": lambda: ""}
        loaded: Checks = {"conversions": self._unloaded}
        ready = {**alive, **loaded, **(checks or {}), "shutdown": self._ending}
        self._checks: Mapping[str, Checks] = {"healthz": alive, "livez": alive, "readyz": ready}

    def serve(self, served: Served) -> None:
        """Serve these kinds from now on; reviews that have begun keep what they have."""
        self._count_noted()
        gone = self._served.kinds - served.kinds
        self._served = served
        self._reviews = Reviews(served.converters)
        self._functions = FunctionKinds(served.converters)
        self._metrics.withdraw(*gone)

    def drain(self) -> None:
        """Be ready no more, and let no client keep its connection."""
        self._draining = True

    def _unloaded(self) -> str:
        return "" if self._served.kinds else "no conversion is loaded"

    def _ending(self) -> str:
        return "process is shutting down" if self._draining else ""

    # Asking.

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        try:
            response = await self._answer(scope, receive)
        except Gone:
            return
        except Exception as error:
            self._log.failure("a request failed", error, path=scope["path"])
            response = _refusal(500, "InternalError", _FAILED)
        closing = [("connection", "close")] if self._draining else []
        await send(start(response, closing))
        await send({"type": "http.response.body", "body": response.body})

    async def _answer(self, scope: Scope, receive: Receive) -> Response:
        path, method = scope["path"], scope["method"]
        allowed = _allowed(path)
        if not allowed:
            known = f"reviews go to {CONVERT}, {MUTATE} and {VALIDATE}"
            return _refusal(404, "NotFound", f"there is nothing at {path}; {known}")
        if method not in allowed:
            words = " or ".join(allowed)
            refusal = _refusal(405, "MethodNotAllowed", f"{path} takes {words}, not {method}")
            refusal.headers.append(("allow", ", ".join(allowed)))
            return refusal
        if "POST" in allowed:
            return await self._review(scope, receive)
        if path == "/metrics":
            self._count_noted()
            return self._metrics.response()
        query = scope["query_string"].decode("latin-1")
        return health(path, query, self._checks[path.split("/", 2)[1]], failing=503)

    # Reviewing.

    async def _review(self, scope: Scope, receive: Receive) -> Response:
        began = monotonic()
        act = _ACTS.get(scope["path"])
        try:
            _check_content(dict(scope["headers"]))
            with self._room.guest() as keep:
                most = self._room.most
                body = await read_body(receive, most=most, most_discarded=2 * most, keep=keep)
                with self._metrics.under_way():
                    until = began + _patience(scope["query_string"]) * _IN_TIME
                    answer = self._converted if act is None else partial(self._admitted, act)
                    reviewed = await answer(body, until)
        except TooLarge as error:
            reviewed = refused(ApiError(413, "RequestEntityTooLarge", str(error)))
        except ApiError as error:
            reviewed = refused(error)
        self._note(reviewed, monotonic() - began)
        again = [("retry-after", "1")] if reviewed.status == 429 else []
        return Response(reviewed.status, [*_JSON, *again], reviewed.body)

    async def _admitted(self, act: Act, body: bytes, until: float) -> Reviewed:
        left = max(until - monotonic(), 0)
        return await admit(body, self._served.chain, act, patience=round(left, 1))

    async def _converted(self, body: bytes, until: float) -> Reviewed:
        reviews = self._reviews
        if kinds := self._functions.within(body):
            return await self._called(kinds, partial(reviews.answer, body, until), until)
        work = partial(self._convert, body, reviews, until)
        if len(body) <= self._pace.most_quick:
            return work()
        try:
            async with asyncio.timeout(until - monotonic()):
                return await self._aside.run(work)
        except TimeoutError:
            text = "the conversion was not done in time"
            return refused(ApiError(504, "Timeout", text))

    async def _called(
        self, kinds: list[Key], work: Callable[[], Reviewed], until: float
    ) -> Reviewed:
        """Answer a review for which functions of users are called."""
        try:
            return await self._workers.run(kinds, work, until)
        except ApiError as error:
            names = ", ".join(f"{kind}.{group}" for group, kind in kinds)
            self._log.warning("a conversion by functions was not done in time", kinds=names)
            return refused(error)

    def _convert(self, body: bytes, reviews: Reviews, until: float) -> Reviewed:
        began = monotonic()
        found = reviews.answer(body, until)
        self._pace.learn(len(body), monotonic() - began)
        return found

    def at_once(self, head: Head) -> Quick | None:
        """Who answers usual conversions that will be quick; None is for all others.

        The answers are those that the application would give, without its detours.
        """
        if head.path != CONVERT or head.method != "POST" or _odd(head.headers):
            return None
        return _Usual(self, _patience(head.query) * _IN_TIME)

    def straight(
        self, read: bytearray, size: int, start: bytes, rest: bytes, beginning: bytes
    ) -> bytes | None:
        """The same for requests that compiled code answers as a whole."""
        noted = self._noted
        if self._draining or self._log.verbose or size > self._room.most:
            return None
        if len(noted) >= _MOST_NOTED:
            return None
        began = monotonic()
        found = self._reviews.respond(read, size, start, rest, beginning)
        if found is None:
            return None
        noted.append((size, monotonic() - began, found[1]))
        return found[0]

    def convert_at_once(self, patience: float, body: bytes | bytearray) -> Answer | None:
        """The answer to a body that somebody waits for so long, if it will be quick."""
        # Every call counts here: nothing else costs as much of a review of one object.
        size = len(body)
        if self._draining or size > self._room.most or size > self._pace.most_quick:
            return None
        if self._functions and self._functions.within(body):
            return None
        began = monotonic()
        try:
            reviewed = self._reviews.answer(body, began + patience)
        except Exception as error:
            self._log.failure("a request failed", error, path=CONVERT)
            return Answer(500, _JSON_LINE, refused(ApiError(500, "InternalError", _FAILED)).body)
        took = monotonic() - began
        noted, usual = self._noted, reviewed.status == 200 and reviewed.failed is None
        if usual and took < _QUICK and len(noted) < _MOST_NOTED and not self._log.verbose:
            noted.append((size, took, reviewed.objects))
        else:
            self._count_noted()
            self._pace.learn(size, took)
            self._note(reviewed, took)
        return Answer(reviewed.status, _JSON_LINE, reviewed.body)

    def _count_noted(self) -> None:
        """Count what was done; for many reviews at a time that costs a fraction for each."""
        noted, self._noted = self._noted, []
        for size, took, objects in noted:
            self._pace.learn(size, took)
            self._metrics.observe(Reviewed(200, b"", objects), took)

    def _note(self, reviewed: Reviewed, seconds: float) -> None:
        self._metrics.observe(reviewed, seconds)
        if reviewed.fault is not None or self._log.verbose:
            self._tell(reviewed, seconds)

    def _tell(self, reviewed: Reviewed, seconds: float) -> None:
        if reviewed.fault is not None:
            self._log.failure("a conversion failed", reviewed.fault, object=reviewed.about)
        if self._log.verbose:
            count, took = sum(reviewed.objects.values()), round(seconds * 1000, 2)
            self._log.info("review", status=reviewed.status, objects=count, ms=took)


class _Usual:
    """Answers what is behind one head."""

    lines = _JSON_LINE

    def __init__(self, app: App, patience: float) -> None:
        self.straight = app.straight
        self._answer = partial(app.convert_at_once, patience)

    def __call__(self, body: bytes | bytearray) -> Answer | None:
        return self._answer(body)


class _Room:
    """How much may be held in memory: all that has come of the bodies that are not answered yet."""

    def __init__(self, most: int) -> None:
        self.most = most
        self._free = _BODIES_AT_ONCE * most

    @contextlib.contextmanager
    def guest(self) -> Iterator[Callable[[int], None]]:
        """What takes room for one body, piece by piece, and gives it back at the end."""
        taken = 0

        def take(size: int) -> None:
            nonlocal taken
            if size > self._free:
                raise ApiError(429, "TooManyRequests", "too much is being reviewed; try again")
            taken += size
            self._free -= size

        try:
            yield take
        finally:
            self._free += taken


class _Pace:
    """How large reviews may be that will be quick; the slowest count, and are slowly forgotten."""

    def __init__(self) -> None:
        self.most_quick = _AT_FIRST
        self._most = inf

    def learn(self, size: int, seconds: float) -> None:
        # So many bytes would have been quick at this pace; if only small ones would, none is.
        most = _QUICK * max(size, _SMALL) / max(seconds, _MOMENT)
        self._most = min(most, self._most / _FORGETTING)
        self.most_quick = self._most if self._most >= _SMALL else -1.0


def _allowed(path: str) -> tuple[str, ...]:
    """The methods of a path; none for one that is not served."""
    if path == CONVERT or path in _ACTS:
        return ("POST",)
    if path == "/metrics" or path.split("/", 2)[1:2] in _HEALTH:
        return ("GET", "HEAD")
    return ()


@lru_cache(64)
def _patience(query: bytes) -> float:
    """How long the client says that it waits: API servers do so with ?timeout=30s."""
    said = parse_qs(query.decode("latin-1")).get("timeout", [""])[0]
    return min(read_duration(said) or _TIMEOUT, _TIMEOUT)


def _odd(headers: Iterable[tuple[bytes, bytes]]) -> bool:
    """Whether a body may be something else than JSON."""
    for name, value in headers:
        if name == b"content-type" and value != _USUAL:
            return True
        if name == b"content-encoding":
            return True
    return False


def _check_content(headers: Mapping[bytes, bytes]) -> None:
    form = _said(headers, b"content-type").partition(";")[0].strip()
    if form not in ("", "application/json") and not form.endswith("+json"):
        text = f"the body is {form[:100]}; reviews are application/json"
        raise ApiError(415, "UnsupportedMediaType", text)
    if _said(headers, b"content-encoding").strip() not in ("", "identity"):
        raise ApiError(415, "UnsupportedMediaType", "the body is compressed; send it as it is")


def _said(headers: Mapping[bytes, bytes], name: bytes) -> str:
    return headers.get(name, b"").decode("latin-1").lower()


def _refusal(code: int, reason: str, text: str) -> Response:
    return Response(code, list(_JSON), refused(ApiError(code, reason, text)).body)
