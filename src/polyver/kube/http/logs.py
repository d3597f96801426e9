"""The log on stderr, which is quiet unless something is wrong or verbose output was requested.

structlog loads slower than the rest of a start, so it is loaded with the first line.
"""

from __future__ import annotations

import sys
from functools import cache
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from structlog.typing import FilteringBoundLogger

__all__ = ["Log"]


class Log:
    """Logs events with structured values."""

    def __init__(self, *, verbose: bool = False) -> None:
        self.verbose = verbose

    def info(self, event: str, **facts: object) -> None:
        """Log a usual event, if verbose."""
        if self.verbose:
            _logger().info(event, **facts)

    def warning(self, event: str, **facts: object) -> None:
        """Log an event that needs attention."""
        _logger().warning(event, **facts)

    def failure(self, event: str, error: BaseException, **facts: object) -> None:
        """Log an unexpected error with its traceback."""
        _logger().error(event, exc_info=error, **facts)


@cache
def _logger() -> FilteringBoundLogger:
    import structlog

    terminal = sys.stderr.isatty()
    shown: Any = (
        structlog.dev.ConsoleRenderer()
        if terminal
        else structlog.processors.LogfmtRenderer(key_order=["timestamp", "level", "event"])
    )
    logger: FilteringBoundLogger = structlog.wrap_logger(
        _Stderr(),
        processors=[
            structlog.processors.add_log_level,
            structlog.processors.TimeStamper(fmt="iso", utc=True),
            *([] if terminal else [structlog.processors.format_exc_info]),
            shown,
        ],
        wrapper_class=structlog.make_filtering_bound_logger(0),
    )
    return logger


class _Stderr:
    """Writes to the current sys.stderr, which tests replace."""

    def msg(self, message: str) -> None:
        sys.stderr.write(f"{message}\n")
        sys.stderr.flush()

    info = warning = error = msg
