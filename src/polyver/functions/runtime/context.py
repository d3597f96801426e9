"""What a function is told beside its arguments: the API, what templates see, its log, its time."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any, Generic, Protocol, TypeVar

from polyver.client import Client
from polyver.core import PolyverError
from polyver.functions.runtime.clients import BlockingClient
from polyver.kube.http.logs import Log

__all__ = ["AsyncContext", "Cancelled", "Context", "FunctionContext", "FunctionLog", "Lines"]

C = TypeVar("C")


class Cancelled(PolyverError):
    """The action was cancelled, or the function has had its time."""

    def __init__(self) -> None:
        super().__init__("the call has ended: its action was cancelled, or it timed out")


class Lines(Protocol):
    """Takes lines of a log."""

    def info(self, event: str, **facts: object) -> None: ...

    def warning(self, event: str, **facts: object) -> None: ...


class FunctionLog:
    """The log, with what a line is about: `ctx.log.info("dumped", rows=12)`."""

    def __init__(self, log: Lines | None = None, /, **about: object) -> None:
        self._log = log or Log(verbose=True)
        self._about = about

    def info(self, event: str, **facts: object) -> None:
        self._log.info(event, **self._about | facts)

    def warning(self, event: str, **facts: object) -> None:
        self._log.warning(event, **self._about | facts)


@dataclass(frozen=True, slots=True)
class FunctionContext(Generic[C]):
    """One call of a function."""

    client: C
    """The API: of an async function to be awaited, of a plain one it waits itself."""
    params: Mapping[str, Any]
    """What templates see: Object, Options, Phases and so on."""
    log: FunctionLog
    phase: str
    """The phase that calls it."""
    deadline: datetime
    """When it has to be done; a call that takes longer fails."""
    namespace: str = ""
    """The namespace of the ActionSet."""
    key: str = ""
    """The same for every call of this phase of this ActionSet, also after a restart."""
    allows: frozenset[str] = frozenset()
    """What whoever started the controller has allowed: `command`."""
    is_over: Callable[[], bool] = field(default=lambda: False, repr=False)
    mask: Callable[[str], str] = field(default=lambda text: text, repr=False)
    """Masks values of Secrets in a text. What a function raises or logs is masked anyway: call it
    before you cut a text, so that no part of a value is left."""

    @property
    def remaining(self) -> float:
        """How many seconds are left."""
        return max((self.deadline - datetime.now(UTC)).total_seconds(), 0.0)

    def check(self) -> None:
        """Raise `Cancelled` if nobody waits for this call any more."""
        if self.is_over() or not self.remaining:
            raise Cancelled


Context = FunctionContext[BlockingClient]
AsyncContext = FunctionContext[Client]
