"""Handle the signals (SIGINT and SIGTERM) that end a command which runs a server."""

from __future__ import annotations

import asyncio
import os
import signal

__all__ = ["signalled"]

_SIGNALS = (signal.SIGINT, signal.SIGTERM)


def signalled() -> asyncio.Future[int]:
    """Return a future that gets the number of the first signal; a second one ends polyver."""
    loop = asyncio.get_running_loop()
    ended: asyncio.Future[int] = loop.create_future()

    def end(number: int) -> None:
        if ended.done():
            os._exit(128 + number)
        ended.set_result(number)

    for number in _SIGNALS:
        loop.add_signal_handler(number, end, number)
    return ended
