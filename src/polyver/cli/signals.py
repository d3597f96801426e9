"""Signals that end a command that serves."""

from __future__ import annotations

import asyncio
import os
import signal

__all__ = ["signalled"]

_SIGNALS = (signal.SIGINT, signal.SIGTERM)


def signalled() -> asyncio.Future[int]:
    """Return a future of the first signal's number; a second signal ends the process at once."""
    loop = asyncio.get_running_loop()
    ended: asyncio.Future[int] = loop.create_future()

    def end(number: int) -> None:
        if ended.done():
            os._exit(128 + number)
        ended.set_result(number)

    for number in _SIGNALS:
        loop.add_signal_handler(number, end, number)
    return ended
