"""polyver's own API server inside the test process, for tests that need one quickly.

with EmbeddedServer() as server:
    subprocess.run(["kubectl", "--kubeconfig", server.kubeconfig, "get", "namespaces"])
"""

from __future__ import annotations

import asyncio
import threading
import warnings
from collections.abc import Iterable
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self

from polyver.app.choices import CAPABILITIES, RENAMED, Choices
from polyver.app.embedded import Embedded, EmbeddedSettings, Opens, embedded
from polyver.compositions.settings import PackageSettings
from polyver.functions.settings import CallSettings
from polyver.testing._requests import ask

if TYPE_CHECKING:
    from polyver.apis import Kind
    from polyver.compositions.runtimes import Runtime
    from polyver.definitions.publishing import GatePolicy
    from polyver.functions.registering import Functions

__all__ = ["EmbeddedServer"]


def _current(capability: str) -> str:
    """Return the name of a capability; an earlier name is deprecated, an unknown one refused."""
    if capability in RENAMED:
        text = f"the capability {capability} is deprecated; it is now {RENAMED[capability]}"
        warnings.warn(text, DeprecationWarning, stacklevel=4)
    elif capability not in CAPABILITIES:
        raise ValueError(f"{capability!r} is not a capability; known: {', '.join(CAPABILITIES)}")
    return RENAMED.get(capability, capability)


class EmbeddedServer:
    """Started on entry, ready for requests in its body, ended on exit.

    It runs in a thread with an event loop of its own, on a free port of 127.0.0.1. Objects are in
    memory, unless `data` names a folder to keep them in. `release` is the Kubernetes that it tells
    clients it is, such as 1.33.2. `kinds` are declared in Python, and served with all that their
    authors wrote for them; `functions` are what blueprints may call, with the capability
    `functions`, in threads of this process instead of worker processes; `semver_gate` says what is
    done about versions of definitions that break their users, with the capability `definitions`;
    `packages` is a file that says which functions of compositions may be run, with the capability
    `compositions`, and `runtime` may serve them instead of processes; with `page` there is a page
    at the address `page`, which lets one in; without `capabilities` it is a Kubernetes and nothing
    else. The attributes are those of `LocalCluster`, so that a test can be given either.
    """

    url: str
    folder: Path
    ca_file: Path
    client_cert_file: Path
    client_key_file: Path
    token: str
    viewer_token: str
    kubeconfig: Path
    page: str

    def __init__(
        self,
        *,
        data: Path | None = None,
        release: str = "",
        capabilities: Iterable[str] = ("apis",),
        kinds: Iterable[Kind] = (),
        functions: Functions | None = None,
        semver_gate: GatePolicy = "refuse",
        packages: Path | None = None,
        runtime: Runtime | None = None,
        page: bool = False,
        opens: Opens | None = None,
    ) -> None:
        self._settings = EmbeddedSettings(
            data=data,
            release=release,
            choices=Choices(
                frozenset(map(_current, capabilities)),
                functions,
                CallSettings(in_threads=functions is not None),
                gate=semver_gate,
                packages=PackageSettings(packages, runtime=runtime),
            ),
            kinds=tuple(kinds),
            page_port=0 if page else None,
        )
        self._opens = opens
        self._ready = threading.Event()
        self._failed: BaseException | None = None

    def __enter__(self) -> Self:
        self._thread = threading.Thread(target=self._run, name="polyver-server", daemon=True)
        self._thread.start()
        self._ready.wait()
        if self._failed:
            self._thread.join()
            raise self._failed
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._loop.call_soon_threadsafe(self._ended.set)
        self._thread.join()
        if self._failed:
            raise self._failed

    def request(self, method: str, path: str, body: object = None) -> Any:
        """Ask the server as its administrator; the decoded answer, or an ApiError.

        For setting things up; tests of clients use their clients.
        """
        return ask(self, method, path, body)

    def _run(self) -> None:
        import uvloop

        try:
            with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
                runner.run(self._serve())
        except BaseException as error:
            self._failed = error  # and raised again in the thread of the test
        finally:
            self._ready.set()

    async def _serve(self) -> None:
        self._loop = asyncio.get_running_loop()
        self._ended = asyncio.Event()
        async with embedded(self._settings, opens=self._opens) as running:
            self._describe(running)
            self._ready.set()
            await self._ended.wait()

    def _describe(self, running: Embedded) -> None:
        kept = running.credentials
        self.url, self.folder, self.kubeconfig = running.url, running.folder, running.kubeconfig
        self.ca_file = kept.ca_file
        self.client_cert_file, self.client_key_file = kept.client_cert_file, kept.client_key_file
        self.token, self.viewer_token = kept.token, kept.viewer_token
        self.page = running.page
