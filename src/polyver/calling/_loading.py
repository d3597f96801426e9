"""gRPC, loaded when it is first needed, and beside everything else that goes on."""

from __future__ import annotations

import asyncio
import importlib

__all__ = ["load_grpc"]

_ready = False


async def load_grpc() -> None:
    """Have gRPC loaded: it takes a tenth of a second, which other tasks should not wait for."""
    global _ready  # noqa: PLW0603 - a module is loaded once for all
    if not _ready:
        await asyncio.to_thread(importlib.import_module, "polyver.calling._channels")
        _ready = True
