"""Background jobs of a command that runs a server."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine
from contextlib import asynccontextmanager
from typing import Any

from polyver.core import PolyverError
from polyver.kube.http.logs import Log

__all__ = ["in_background", "repeated"]


@asynccontextmanager
async def in_background(*jobs: Coroutine[Any, Any, None]) -> AsyncIterator[None]:
    """Run jobs in the background while the body of the `async with` statement runs."""
    tasks = [asyncio.create_task(job) for job in jobs]
    try:
        yield
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.wait(tasks)


async def repeated(
    act: Callable[[], Awaitable[None]], *, every: float, log: Log, failing: str
) -> None:
    """Call `act` again and again; before each call, wait `every` seconds.

    A PolyverError or an OSError is logged with the message `failing`, but the same error is not
    logged twice in a row. Any other exception is logged each time.
    """
    reported = ""
    while True:
        await asyncio.sleep(every)
        try:
            await act()
        except (PolyverError, OSError) as error:
            if str(error) != reported:
                log.warning(failing, reason=str(error))
            reported = str(error)
        except Exception as error:
            log.failure(failing, error)
        else:
            reported = ""
