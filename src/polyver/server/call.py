"""One request on its way through the pipeline, and what it needs to get there."""

from __future__ import annotations

import datetime
from collections.abc import AsyncIterator, Callable, Iterator
from dataclasses import dataclass, field

from polyver.admission.chain import Chain, Review
from polyver.server._http import Request, Response
from polyver.server.conversion.served import ServedConversions
from polyver.server.identity import Authenticate, Verdict
from polyver.server.media import JSON, Form
from polyver.server.options import Query
from polyver.server.paths import Place
from polyver.server.resource import Catalogue, Resource
from polyver.server.webhooks import Webhooks
from polyver.store import Store

__all__ = ["Call", "Server"]

_MOST_WARNED = 4096
_LONGEST_WARNING = 256


@dataclass(slots=True)
class Server:
    """What all requests share."""

    store: Store
    catalogue: Catalogue
    admission: Chain
    now: Callable[[], datetime.datetime]
    new_uid: Callable[[], str]
    new_suffix: Callable[[], str]
    last_check: Callable[[Review], None] = lambda review: None  # noqa: ARG005
    """What must still hold when a new object is stored."""
    authenticate: Authenticate = lambda token, audiences: Verdict()  # noqa: ARG005
    """Whose token it is, if it is anybody's, and meant for one of the audiences."""
    conversions: ServedConversions = field(default_factory=ServedConversions)
    webhooks: Webhooks = field(init=False)
    terminating: set[str] = field(default_factory=set)
    """Namespaces whose deletion was asked for, known before it is written: what is created in them
    after that is refused, and what was created before is already on its way to the store."""

    def __post_init__(self) -> None:
        self.webhooks = Webhooks(self.store, self.catalogue)

    def timestamp(self, ahead: float = 0) -> str:
        """Now, or some seconds ahead."""
        moment = self.now()
        if ahead:
            moment += datetime.timedelta(seconds=ahead)
        return f"{moment.isoformat()[:19]}Z"


@dataclass(slots=True)
class Call:
    """A request for a resource: who asks for what, and what they should be warned of."""

    server: Server
    request: Request
    resource: Resource
    place: Place
    query: Query
    form: Form
    warnings: list[str] = field(default_factory=list)

    @property
    def store(self) -> Store:
        return self.server.store

    @property
    def key(self) -> str:
        return self.resource.key(self.place.namespace, self.place.name)

    def warn(self, text: str) -> None:
        if text not in self.warnings:
            self.warnings.append(text)

    def answer(self, status: int, body: bytes, media: str = JSON) -> Response:
        return Response(status, [("content-type", media), *self.warning_headers()], body)

    def stream(self, lines: AsyncIterator[bytes]) -> Response:
        return Response(200, [("content-type", JSON), *self.warning_headers()], lines)

    def warning_headers(self) -> Iterator[tuple[str, str]]:
        for text in _bounded(self.warnings):
            quoted = text.replace("\\", "\\\\").replace('"', '\\"')
            yield "warning", f'299 - "{quoted}"'


def _bounded(warnings: list[str]) -> Iterator[str]:
    """As many warnings as fit into headers that every client takes; long ones are cut then."""
    if sum(map(len, warnings)) <= _MOST_WARNED:
        yield from warnings
        return
    written = 0
    for text in warnings:
        if written >= _MOST_WARNED:
            return
        written += len(text[:_LONGEST_WARNING])
        yield text[:_LONGEST_WARNING]
