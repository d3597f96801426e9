"""Starts the webhook server of `polyver serve`.

While the server runs, it loads changed conversions and a changed certificate. `polyver serve` and
the tests use the same function `webhook`, so the tests cover the code of the command.
"""

from __future__ import annotations

import asyncio
import datetime
import signal
from collections.abc import AsyncIterator, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass

from polyver.kube.http.addresses import LOOPBACK, url
from polyver.kube.http.background import in_background, repeated
from polyver.kube.http.listener import bind, serving
from polyver.kube.http.logs import Log
from polyver.webhook import ReviewHandlers, WebhookApp
from polyver.webhook.app import MOST_BODY
from polyver.webhook.metrics import WebhookMetrics
from polyver.webhook.served_certificate import PairSource

__all__ = ["RunningWebhook", "WebhookSettings", "webhook"]

_LOOK_EVERY = 1.0
_OLD_CONVERSIONS = "the old conversions stay in use"
_GRACE_PERIOD = 20.0
"""Seconds in which requests in flight must finish at a shutdown.

With the default of `--linger`, the whole shutdown takes less than the 30 s that Kubernetes gives a
pod.
"""


@dataclass(frozen=True, slots=True)
class WebhookSettings:
    """The settings of a webhook."""

    pair: PairSource
    host: str = LOOPBACK
    port: int = 0
    most_body: int = MOST_BODY
    verbose: bool = False
    memory: int | None = None
    """The memory limit of the process in bytes. By default, the limit of its control group."""


@dataclass(frozen=True, slots=True)
class RunningWebhook:
    """A running webhook."""

    url: str
    converted: int
    """The number of kinds that the webhook converts."""
    admitted: int
    drain: Callable[[], None]
    """Makes the readiness probe fail; the webhook still answers requests."""


@asynccontextmanager
async def webhook(
    settings: WebhookSettings, load: Callable[[], ReviewHandlers], fingerprint: Callable[[], str]
) -> AsyncIterator[RunningWebhook]:
    """Run a webhook until the context ends. Raise a PolyverError if the webhook cannot start.

    `load` returns the conversions. It is called at the start, and again when the process receives
    SIGHUP or when `fingerprint`, which is called every second, returns another value.
    """
    log = Log(verbose=settings.verbose)
    async with AsyncExitStack() as undo:
        listener = undo.enter_context(bind(settings.host, settings.port))
        known = fingerprint()
        served = load()
        pair = settings.pair
        await pair.start()
        app = WebhookApp(
            served,
            checks={"certificate": lambda: pair.shown.problem(_now())},
            metrics=WebhookMetrics(lambda: pair.shown.until),
            log=log,
            most_body=settings.most_body,
            memory=settings.memory,
        )
        await undo.enter_async_context(
            serving(
                app,
                listener,
                lambda: pair.shown.context,
                at_once=app.at_once,
                ending=app.drain,
                grace_period=_GRACE_PERIOD,
            )
        )
        reloads = _Conversions(app, load, fingerprint, known, log)
        jobs = [
            repeated(reloads.look, every=_LOOK_EVERY, log=log, failing=_OLD_CONVERSIONS),
            pair.follow(log),
        ]
        await undo.enter_async_context(in_background(*jobs))
        at = url(settings.host, listener.getsockname()[1])
        yield RunningWebhook(at, len(served.converters), len(served.admitted), app.drain)


def _now() -> datetime.datetime:
    return datetime.datetime.now(datetime.UTC)


class _Conversions:
    """Reloads conversions when their files change, or when the process receives SIGHUP."""

    def __init__(
        self,
        app: WebhookApp,
        load: Callable[[], ReviewHandlers],
        fingerprint: Callable[[], str],
        known: str,
        log: Log,
    ) -> None:
        self._app = app
        self._load = load
        self._fingerprint = fingerprint
        self._log = log
        self._known = known
        self._asked = False
        asyncio.get_running_loop().add_signal_handler(signal.SIGHUP, self._ask)

    def _ask(self) -> None:
        self._asked = True

    async def look(self) -> None:
        found = await asyncio.to_thread(self._fingerprint)
        if found == self._known and not self._asked:
            return
        self._asked = False
        served = await asyncio.to_thread(self._load)
        # The fingerprint is stored only after loading has succeeded. So if files are invalid,
        # loading is tried again.
        self._known = found
        self._app.serve(served)
        self._log.info("conversions reloaded", kinds=len(served.kinds))
