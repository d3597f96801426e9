"""gRPC, loaded when it is first needed, and beside everything else that goes on."""

from __future__ import annotations

import asyncio
import importlib
import os

__all__ = ["load_grpc"]

_SETTINGS = {
    # What goes wrong becomes an error of ours; gRPC would write it to stderr as well.
    "GRPC_VERBOSITY": "NONE",
    # It would stop its threads at every start of a process, in case that this is a fork which goes
    # on calling.
    "GRPC_ENABLE_FORK_SUPPORT": "0",
}

_ready = False


async def load_grpc() -> None:
    """Have gRPC loaded: it takes a tenth of a second, which other tasks should not wait for."""
    global _ready  # noqa: PLW0603 - a module is loaded once for all
    if not _ready:
        await asyncio.to_thread(_load)
        _ready = True


def _load() -> None:
    ours = {name: value for name, value in _SETTINGS.items() if name not in os.environ}
    os.environ |= ours
    try:
        importlib.import_module("polyver.compositions.calls._channels")
    finally:
        # By now it has read them. Processes that are started later are to have their own.
        for name in ours:
            os.environ.pop(name, None)
