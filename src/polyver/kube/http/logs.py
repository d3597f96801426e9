"""The log on stderr: warnings and errors, and with `verbose` also usual events.

structlog is imported when the first line is logged, because importing it takes longer than all
other work at the start.
"""

from __future__ import annotations

import sys
from functools import cache
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from structlog.typing import FilteringBoundLogger

__all__ = ["Log"]


class Log:
    """Logs events, each with fields such as `name="a"`."""

    def __init__(self, *, verbose: bool = False) -> None:
        self.verbose = verbose

    def info(self, event: str, **fields: object) -> None:
        """Log a normal event, but only if the log is verbose."""
        if self.verbose:
            _logger().info(event, **fields)

    def warning(self, event: str, **fields: object) -> None:
        """Log an event that a user should look at."""
        _logger().warning(event, **fields)

    def failure(self, event: str, error: BaseException, **fields: object) -> None:
        """Log an unexpected error with its traceback."""
        _logger().error(event, exc_info=error, **fields)


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
    """Writes to the current sys.stderr, because tests replace sys.stderr."""

    def msg(self, message: str) -> None:
        sys.stderr.write(f"{message}\n")
        sys.stderr.flush()

    info = warning = error = msg
