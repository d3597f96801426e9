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

from polyver.app.capabilities import Choices, UnknownCapability, current_name
from polyver.app.embedded import Embedded, EmbeddedSettings, Opens, embedded
from polyver.compositions.settings import PackageSettings
from polyver.controllers.egress import AllowedHttp
from polyver.definitions.options import DefinitionSettings
from polyver.functions.settings import CallSettings, FunctionSettings
from polyver.testing._requests import ask

if TYPE_CHECKING:
    from polyver.apis import Kind
    from polyver.compositions.runtimes import Runtime
    from polyver.definitions.publishing import GatePolicy
    from polyver.functions.registering import Functions

__all__ = ["EmbeddedServer"]


def _current(capability: str) -> str:
    """Return the current name of a capability; warn about an old, refuse an unknown name."""
    try:
        found = current_name(capability)
    except UnknownCapability as error:
        raise ValueError(str(error)) from None
    if found != capability:
        text = f"the capability {capability} is deprecated; it is now {found}"
        warnings.warn(text, DeprecationWarning, stacklevel=4)
    return found


class EmbeddedServer:
    """A server as a context manager: it is ready in the `with` block and ends after the block.

    The server runs in a thread with its own event loop, on a free port of 127.0.0.1. Without
    `capabilities`, it is only a Kubernetes API server. An EmbeddedServer has the same attributes as
    a `LocalCluster`, so that a test can use either.

    - `data`: a folder to keep the objects in; by default they are in memory.
    - `release`: the Kubernetes release that the server reports to clients, such as 1.33.2.
    - `kinds`: kinds declared in Python, served with their conversions, hooks and controllers.
    - `functions`: blueprint functions, with the capability `functions`. They run in threads of this
    process instead of in worker processes.
    - `semver_gate`: the policy for a new version of a component or trait definition that breaks its
    users, with the capability `definitions`.
    - `packages`: a file that lists the composition functions that may run, with the capability
    `compositions`. With `runtime`, they are served by this runtime instead of by processes.
    - `allow_http`: servers to which polyver may send the requests of rollouts, as for the option
    `--allow-http` of `polyver up`.
    - `page`: whether to serve the page. The attribute `page` is the URL of the page, with a token.
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
        allow_http: Iterable[str] = (),
        page: bool = False,
        opens: Opens | None = None,
    ) -> None:
        self._settings = EmbeddedSettings(
            data=data,
            release=release,
            choices=Choices(
                frozenset(map(_current, capabilities)),
                {
                    "functions": FunctionSettings(
                        functions, CallSettings(in_threads=functions is not None)
                    ),
                    "definitions": DefinitionSettings(semver_gate),
                    "compositions": PackageSettings(packages, runtime=runtime),
                },
                AllowedHttp.read(allow_http),
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
        """Send a request as an administrator; return the decoded response, or raise an ApiError.

        Use this method to prepare a test. If you test a client, let the client send its own
        requests.
        """
        return ask(self, method, path, body)

    def _run(self) -> None:
        import uvloop

        try:
            with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
                runner.run(self._serve())
        except BaseException as error:
            self._failed = error  # raised again in the thread of the test
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
