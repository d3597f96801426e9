"""How a command that serves is told to end."""

from __future__ import annotations

import asyncio
import os
import signal

__all__ = ["signalled"]

_SIGNALS = (signal.SIGINT, signal.SIGTERM)


def signalled() -> asyncio.Event:
    """Set by the first signal; a second one ends the process at once."""
    ended = asyncio.Event()

    def end(number: int) -> None:
        if ended.is_set():
            os._exit(128 + number)
        ended.set()

    for number in _SIGNALS:
        asyncio.get_running_loop().add_signal_handler(number, end, number)
    return ended
