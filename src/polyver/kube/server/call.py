"""A call: one request for a resource while the server processes it.

The server state that all calls share is also in this module.
"""

from __future__ import annotations

import datetime
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any, TypeVar

from polyver.kube.http.worker_threads import off_loop
from polyver.kube.server.admission import AdmissionChain, AdmissionRequest
from polyver.kube.server.conversion.converters import ServedConversions
from polyver.kube.server.http import JSON, ApiPath, HttpRequest, HttpResponse, ResponseFormat
from polyver.kube.server.identity import Authenticate, AuthenticationResult
from polyver.kube.server.options import Query
from polyver.kube.server.resource import ResourceCatalogue, ServedResource
from polyver.kube.server.webhooks import Webhooks
from polyver.kube.store import Store
from polyver.languages.values.step_budget import OverAllowance, limited

__all__ = ["Call", "ServerContext"]

SMALL = 4096
"""The maximum size of a request, in bytes, whose work runs on the event loop."""
_FEW_STEPS = 10_000
"""The maximum number of steps that a check may run on the event loop: some milliseconds."""
_MOST_WARNED = 4096
_LONGEST_WARNING = 256
T = TypeVar("T")


class Warnings:
    """The warnings of one answer, without duplicates, and with the limits of kube-apiserver.

    If all warnings together have more than 4096 characters, each warning is cut to 256 characters.
    If the cut warnings still have 4096 characters or more, no further warning is added.
    """

    __slots__ = ("_cut", "_known", "_length")

    def __init__(self) -> None:
        self._known: dict[str, None] = {}
        self._length = 0
        self._cut = False

    @property
    def full(self) -> bool:
        """True if the answer has so many warnings that no further warning is added."""
        return self._cut and self._length >= _MOST_WARNED

    def add(self, text: str) -> None:
        if not text or self.full or text in self._known:
            return
        self._known[text] = None
        self._length += min(len(text), _LONGEST_WARNING) if self._cut else len(text)
        if not self._cut and self._length > _MOST_WARNED:
            self._cut = True
            self._length = sum(min(len(each), _LONGEST_WARNING) for each in self._known)

    def __iter__(self) -> Iterator[str]:
        for text in self._known:
            yield text[:_LONGEST_WARNING] if self._cut else text


@dataclass(slots=True)
class ServerContext:
    """The state of the API server that all requests share, such as the store and the catalogue."""

    store: Store
    catalogue: ResourceCatalogue
    admission: AdmissionChain
    now: Callable[[], datetime.datetime]
    new_uid: Callable[[], str]
    new_suffix: Callable[[], str]
    last_check: Callable[[AdmissionRequest], None] = lambda review: None  # noqa: ARG005
    """A function that checks that the namespace of a new object exists and is not being deleted.

    Admission makes the same check earlier. The server calls this function right before it stores
    the object, because the namespace may have changed in between.
    """
    authenticate: Authenticate = lambda token, audiences: AuthenticationResult()  # noqa: ARG005
    """A function that finds the user of a token.

    The token must be meant for at least one of the audiences.
    """
    conversions: ServedConversions[Any] = field(default_factory=ServedConversions)
    webhooks: Webhooks = field(init=False)
    terminating: set[str] = field(default_factory=set)
    """Namespaces whose deletion is being stored; the server creates no new objects in them.

    A request that passed this check before its namespace was added here has already passed its
    object to the store.
    """

    def __post_init__(self) -> None:
        self.webhooks = Webhooks(self.store, self.catalogue)

    def timestamp(self, ahead: float = 0) -> str:
        """Format the current time plus `ahead` seconds, such as `2026-01-31T12:00:00Z`."""
        moment = self.now()
        if ahead:
            moment += datetime.timedelta(seconds=ahead)
        return f"{moment.isoformat()[:19]}Z"


@dataclass(slots=True)
class Call:
    """A request for a resource, with data about its processing, such as warnings for the client."""

    server: ServerContext
    request: HttpRequest
    resource: ServedResource
    api_path: ApiPath
    query: Query
    form: ResponseFormat
    warnings: Warnings = field(default_factory=Warnings)
    weight: int = field(init=False)
    """The approximate number of bytes that the request has to process."""

    def __post_init__(self) -> None:
        self.weight = len(self.request.body)

    async def run(self, work: Callable[[], T], *, quick: int = 1) -> T:
        """Run work whose duration depends on the size of the request, and return its result.

        If the request has more than `SMALL` times `quick` bytes, or its kind has costly rules, the
        work runs in a worker thread, otherwise on the event loop. `quick` is above 1 for work that
        takes less time per byte than usual.
        """
        if self.weight <= SMALL * quick and not self.resource.rules.costly:
            return work()
        return await off_loop(work)

    async def check(self, work: Callable[[], T]) -> T:
        """Run a check that may take long even for a small request.

        The check starts on the event loop with a limited number of steps. If it needs more steps,
        it is stopped and repeated in a worker thread. Therefore `work` must have no lasting effect.
        """
        if self.weight <= SMALL and not self.resource.rules.costly:
            with suppress(OverAllowance), limited(_FEW_STEPS):
                return work()
        return await off_loop(work)

    @property
    def store(self) -> Store:
        return self.server.store

    @property
    def key(self) -> str:
        return self.resource.key(self.api_path.namespace, self.api_path.name)

    def warn(self, text: str) -> None:
        self.warnings.add(text)

    def answer(self, status: int, body: bytes, media: str = JSON) -> HttpResponse:
        return HttpResponse(status, [("content-type", media), *self.warning_headers()], body)

    def stream(self, lines: AsyncIterator[bytes]) -> HttpResponse:
        return HttpResponse(200, [("content-type", JSON), *self.warning_headers()], lines)

    def warning_headers(self) -> Iterator[tuple[str, str]]:
        for text in self.warnings:
            quoted = text.replace("\\", "\\\\").replace('"', '\\"')
            yield "warning", f'299 - "{quoted}"'
