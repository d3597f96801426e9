"""Measures the lag of the event loop, and logs the request that blocked it.

A thread calls the event loop at an interval, and measures the time until the event loop responds:
the lag. After a long lag, it logs a warning. If this process used little CPU time during the lag,
other processes of the machine were the cause, and nothing is logged.
"""

from __future__ import annotations

import asyncio
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import FrameType
from weakref import WeakKeyDictionary

from polyver.kube.http.histograms import Times
from polyver.kube.http.logs import Log
from polyver.kube.http.worker_threads import end_workers, running_off_loop

__all__ = ["LAG", "LAG_TEXT", "Watchdog", "lags", "watchdog", "watched"]

LAG = "polyver_event_loop_lag_seconds"
LAG_TEXT = "Delay of the event loop, measured ten times a second."
_EVERY = 0.1
_SLOW = 0.5
"""If the event loop is blocked for more than this number of seconds, a warning is logged."""
_BOUNDS = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0)
_LONGEST_NAME = 200

_watchdogs: WeakKeyDictionary[asyncio.AbstractEventLoop, Watchdog] = WeakKeyDictionary()


class Watchdog:
    """Measures the lag of one event loop; see the top of this module."""

    def __init__(self, log: Log) -> None:
        self.lags = Times(_BOUNDS)
        self.users = 0
        self._log = log
        self._loop = asyncio.get_running_loop()
        self._loop_thread = threading.get_ident()
        self._answered = threading.Event()
        self._ended = threading.Event()
        self._answer = (0.0, 0.0)

    def start(self) -> None:
        self._thread = threading.Thread(target=self._run, name="watchdog", daemon=True)
        self._thread.start()

    def stop(self) -> None:
        self._ended.set()
        self._answered.set()
        self._thread.join()

    def _run(self) -> None:
        while not self._ended.wait(_EVERY):
            try:
                self._ping()
            except RuntimeError:  # the loop is closed
                return

    def _ping(self) -> None:
        began, used = time.monotonic(), time.process_time()
        self._answered.clear()
        if self._ended.is_set():  # the loop will not respond any more
            return
        self._loop.call_soon_threadsafe(self._note)
        doing = "" if self._answered.wait(_SLOW) else self._doing()
        self._answered.wait()
        if self._ended.is_set():
            return
        answered, used_then = self._answer
        lag = answered - began
        held = min(lag, used_then - used)
        if held > _SLOW:
            self._report(held, lag, doing)
        self.lags.observe(lag)

    def _note(self) -> None:
        self._answer = (time.monotonic(), time.process_time())
        self._answered.set()

    def _doing(self) -> str:
        """Describe what the event loop runs now: `TASK at FILE:LINE FUNCTION`."""
        task = asyncio.current_task(self._loop)
        position = _position(sys._current_frames().get(self._loop_thread))
        return f"{task.get_name()} at {position}" if task is not None else position

    def _report(self, held: float, lag: float, doing: str) -> None:
        fields = {"held": f"{held:.2f} s", "waited": f"{lag:.2f} s"}
        if doing:
            fields["by"] = doing[:_LONGEST_NAME]
        if working := running_off_loop():
            fields["workers"] = ", ".join(working)[:_LONGEST_NAME]
        self._log.warning("the event loop was blocked", **fields)


def _position(frame: FrameType | None) -> str:
    """Describe the innermost frame in polyver's own code as `FILE:LINE FUNCTION`."""
    while frame is not None:
        file = Path(frame.f_code.co_filename)
        if "polyver" in file.parts:
            return f"{file.name}:{frame.f_lineno} {frame.f_code.co_name}"
        frame = frame.f_back
    return "code outside polyver"


@contextmanager
def watched(log: Log | None = None) -> Iterator[Watchdog]:
    """Measure the lag of the running event loop during the `with` statement.

    All `with watched(...)` statements on one event loop share one watchdog.
    """
    loop = asyncio.get_running_loop()
    found = _watchdogs.get(loop)
    if found is None:
        found = _watchdogs[loop] = Watchdog(log or Log())
        found.start()
    found.users += 1
    try:
        yield found
    finally:
        found.users -= 1
        if not found.users:
            found.stop()
            _watchdogs.pop(loop, None)
            end_workers()


def watchdog() -> Watchdog | None:
    """Return the watchdog of the running event loop; None if there is none."""
    try:
        return _watchdogs.get(asyncio.get_running_loop())
    except RuntimeError:
        return None


def lags() -> Times:
    """Return the histogram of the event loop's lags. It is empty if the loop has no watchdog."""
    found = watchdog()
    return Times(_BOUNDS) if found is None else found.lags
