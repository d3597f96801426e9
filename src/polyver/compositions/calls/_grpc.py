"""Loading of gRPC on first use, in a worker thread."""

from __future__ import annotations

import asyncio
import importlib
import os

__all__ = ["load_grpc"]

_SETTINGS = {
    # Errors become ours; gRPC would write them to stderr as well.
    "GRPC_VERBOSITY": "NONE",
    # With fork support gRPC would stop its threads at each start of a process, in case that the
    # child is a fork that goes on calling.
    "GRPC_ENABLE_FORK_SUPPORT": "0",
}

_ready = False


async def load_grpc() -> None:
    """Load gRPC in a worker thread: the import takes a tenth of a second."""
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
        # gRPC has read the variables by now. Child processes must not inherit them.
        for name in ours:
            os.environ.pop(name, None)
