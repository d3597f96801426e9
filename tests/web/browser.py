"""A real browser without a window, told what to do over a pipe by its own protocol."""

from __future__ import annotations

import base64
import json
import os
import select
import shutil
import signal
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from tests.deadlines import HANG

NAMES = ("chromium", "chromium-browser", "google-chrome")
PATIENCE = HANG
_FLAGS = (
    "--headless",
    "--no-sandbox",  # root, as which containers run, has none
    "--disable-gpu",
    "--disable-dev-shm-usage",
    "--no-first-run",
    "--hide-scrollbars",
    "--remote-debugging-pipe",
)


def program() -> str | None:
    """Where a browser is, if there is one."""
    return next(filter(None, map(shutil.which, NAMES)), None)


class Tab:
    """One tab: where it goes, what its scripts see, and what it complains about."""

    def __init__(self, pipe: _Pipe, folder: Path) -> None:
        self._pipe = pipe
        self._folder = folder
        target = pipe.ask("Target.createTarget", url="about:blank")["targetId"]
        attached = pipe.ask("Target.attachToTarget", targetId=target, flatten=True)
        self._session = attached["sessionId"]
        for domain in ("Page", "Runtime", "Log", "Network"):
            self.ask(f"{domain}.enable")

    def ask(self, method: str, **params: Any) -> Any:
        return self._pipe.ask(method, session=self._session, **params)

    def go(self, url: str) -> None:
        """Open an address and wait until it is loaded."""
        self._pipe.events.clear()
        failed = self.ask("Page.navigate", url=url).get("errorText")
        assert not failed, failed
        self._pipe.until(lambda event: event["method"] == "Page.loadEventFired")

    def run(self, script: str) -> Any:
        """The value of an expression."""
        told = self.ask("Runtime.evaluate", expression=script, returnByValue=True)
        assert "exceptionDetails" not in told, told["exceptionDetails"]
        return told["result"].get("value")

    def eventually(self, script: str) -> Any:
        """The value of an expression as soon as it is true."""
        end = time.monotonic() + PATIENCE
        while not (found := self.run(script)):
            assert time.monotonic() < end, f"it did not become true: {script}"
            time.sleep(0.02)
        return found

    def text(self, selector: str = "body") -> str:
        return str(self.run(f"document.querySelector({json.dumps(selector)}).innerText"))

    def press(self, key: str) -> None:
        text = {"text": key} if len(key) == 1 else {"text": "\r"} if key == "Enter" else {}
        code = {"Enter": 13, "Tab": 9}.get(key, 0)
        about = {"key": key, "windowsVirtualKeyCode": code, **text}
        self.ask("Input.dispatchKeyEvent", type="keyDown", **about)
        self.ask("Input.dispatchKeyEvent", type="keyUp", key=key)

    def resize(self, width: int, height: int = 900, *, dark: bool = False) -> None:
        """Look at it on another screen."""
        self.ask(
            "Emulation.setDeviceMetricsOverride",
            width=width,
            height=height,
            deviceScaleFactor=1,
            mobile=False,
        )
        scheme = {"name": "prefers-color-scheme", "value": "dark" if dark else "light"}
        self.ask("Emulation.setEmulatedMedia", features=[scheme])

    def picture(self, name: str, *, whole: bool = True) -> Path:
        """What it looks like, as a file."""
        told = self.ask("Page.captureScreenshot", captureBeyondViewport=whole)
        file = self._folder / f"{name}.png"
        file.write_bytes(base64.b64decode(told["data"]))
        return file

    @property
    def complaints(self) -> list[str]:
        """Errors of scripts, and whatever the browser refused."""
        found = []
        for event in self._pipe.events:
            if event["method"] == "Runtime.exceptionThrown":
                found.append(json.dumps(event["params"]["exceptionDetails"]))
            if event["method"] == "Log.entryAdded":
                entry = event["params"]["entry"]
                found += [entry["text"]] if entry["level"] == "error" else []
        return found

    @property
    def requested(self) -> list[str]:
        """The addresses that it asked for."""
        sent = [e for e in self._pipe.events if e["method"] == "Network.requestWillBeSent"]
        return [event["params"]["request"]["url"] for event in sent]


class _Pipe:
    """Questions and answers, each ended by a zero byte."""

    def __init__(self, reading: int, writing: int) -> None:
        self._reading = reading
        self._writing = writing
        self._number = 0
        self._rest = b""
        self._unread: list[Any] = []
        self.events: list[Any] = []

    def ask(self, method: str, *, session: str = "", **params: Any) -> Any:
        self._number += 1
        number = self._number
        said = {"id": number, "method": method, "params": params}
        said |= {"sessionId": session} if session else {}
        os.write(self._writing, json.dumps(said).encode() + b"\0")
        while True:
            message = self._next()
            if message.get("id") == number:
                assert "error" not in message, message["error"]
                return message["result"]

    def until(self, wanted: Any) -> None:
        """Wait for an event that has not been seen yet, or has been since the last clearing."""
        while not any(map(wanted, self.events)):
            self._next()

    def _next(self) -> Any:
        while b"\0" not in self._rest:
            ready, _, _ = select.select([self._reading], [], [], PATIENCE)
            assert ready, "the browser is silent"
            part = os.read(self._reading, 1 << 16)
            assert part, "the browser has gone"
            self._rest += part
        whole, _, self._rest = self._rest.partition(b"\0")
        message = json.loads(whole)
        if "method" in message:
            self.events.append(message)
        return message


@contextmanager
def browser(executable: str, folder: Path) -> Iterator[Tab]:
    """A browser with one tab, for as long as the body runs."""
    here_reads, it_writes = os.pipe()
    it_reads, here_writes = os.pipe()
    null = os.open(os.devnull, os.O_RDWR)
    # Moved out of the way first: 3 and 4 may be the ends of these very pipes.
    far = [os.dup2(each, 200 + n) for n, each in enumerate((it_reads, it_writes))]
    actions = [
        (os.POSIX_SPAWN_DUP2, null, 1),
        (os.POSIX_SPAWN_DUP2, null, 2),
        (os.POSIX_SPAWN_DUP2, far[0], 3),
        (os.POSIX_SPAWN_DUP2, far[1], 4),
    ]
    arguments = [executable, *_FLAGS, f"--user-data-dir={folder / 'profile'}", "about:blank"]
    started = os.posix_spawn(executable, arguments, os.environ, file_actions=actions, setpgroup=0)
    for each in (it_reads, it_writes, null, *far):
        os.close(each)
    try:
        pipe = _Pipe(here_reads, here_writes)
        yield Tab(pipe, folder)
    finally:
        os.killpg(started, signal.SIGKILL)
        os.waitpid(started, 0)
        os.close(here_reads)
        os.close(here_writes)
