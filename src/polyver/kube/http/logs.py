"""One log, on stderr: quiet unless something is wrong or someone asked for more.

structlog takes longer to load than the rest of a start, so it is loaded with the first line.
"""

from __future__ import annotations

import sys
from functools import cache
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from structlog.typing import FilteringBoundLogger

__all__ = ["Log"]


class Log:
    """Takes an event in words and its facts as values."""

    def __init__(self, *, verbose: bool = False) -> None:
        self.verbose = verbose

    def info(self, event: str, **facts: object) -> None:
        """Something usual, for those who asked for more."""
        if self.verbose:
            _logger().info(event, **facts)

    def warning(self, event: str, **facts: object) -> None:
        """Something that someone should look at."""
        _logger().warning(event, **facts)

    def failure(self, event: str, error: BaseException, **facts: object) -> None:
        """Something that should not happen, with its traceback."""
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
    """Writes to what stderr is at that moment, which tests change."""

    def msg(self, message: str) -> None:
        sys.stderr.write(f"{message}\n")
        sys.stderr.flush()

    info = warning = error = msg
