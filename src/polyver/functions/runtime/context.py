"""The context of a function call: the API, template data, log, and deadline."""

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
    """The action was cancelled, or the function exceeded its deadline."""

    def __init__(self) -> None:
        super().__init__("the call has ended: its action was cancelled, or it timed out")


class Lines(Protocol):
    """Accepts lines of a log."""

    def info(self, event: str, **facts: object) -> None: ...

    def warning(self, event: str, **facts: object) -> None: ...


class FunctionLog:
    """The log of a function, with fixed fields: `ctx.log.info("dumped", rows=12)`."""

    def __init__(self, log: Lines | None = None, /, **about: object) -> None:
        self._log = log or Log(verbose=True)
        self._about = about

    def info(self, event: str, **facts: object) -> None:
        self._log.info(event, **self._about | facts)

    def warning(self, event: str, **facts: object) -> None:
        self._log.warning(event, **self._about | facts)


@dataclass(frozen=True, slots=True)
class FunctionContext(Generic[C]):
    """The context of one call of a function."""

    client: C
    """The API client: async for an async function, blocking for a plain one."""
    params: Mapping[str, Any]
    """The data of templates: Object, Options, Phases and so on."""
    log: FunctionLog
    phase: str
    """The phase that calls it."""
    deadline: datetime
    """Time by which it must return; a longer call fails."""
    namespace: str = ""
    """Namespace of the ActionSet."""
    key: str = ""
    """Key that is the same for every call of this phase of this ActionSet, even after a restart."""
    allows: frozenset[str] = frozenset()
    """Permissions that the operator granted to functions; `command` allows local processes."""
    is_over: Callable[[], bool] = field(default=lambda: False, repr=False)
    mask: Callable[[str], str] = field(default=lambda text: text, repr=False)
    """Masks values of Secrets in a string. Exceptions and logs of a function are masked anyway;
    call it before truncating a string, so that no part of a value is left.
    """

    @property
    def remaining(self) -> float:
        """Number of seconds that are left."""
        return max((self.deadline - datetime.now(UTC)).total_seconds(), 0.0)

    def check(self) -> None:
        """Raise `Cancelled` if the call is cancelled or its time is over."""
        if self.is_over() or not self.remaining:
            raise Cancelled


Context = FunctionContext[BlockingClient]
AsyncContext = FunctionContext[Client]
