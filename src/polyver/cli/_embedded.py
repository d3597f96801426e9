"""The embedded control plane, wired: store, pipeline, identities, TLS, and the kubeconfig.

The command and the test kit both start it here, so that what is tested is what runs.
"""

from __future__ import annotations

import contextlib
import datetime
import shutil
import tempfile
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import AbstractAsyncContextManager, AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from polyver.cli._apis import serve_apis
from polyver.cli._packages import PackageSettings
from polyver.cli._served_functions import CallSettings
from polyver.server.credentials import Credentials, server_names
from polyver.server.kubeconfig import write_kubeconfig
from polyver.serving.addresses import LOOPBACK, url
from polyver.serving.background import in_background, repeated
from polyver.serving.files import FolderFailed
from polyver.serving.logs import Log

if TYPE_CHECKING:
    import ssl

    from polyver.apis import Kind
    from polyver.capabilities.definitions.publishing import GatePolicy
    from polyver.capabilities.functions.registering import Functions
    from polyver.engine import Controller
    from polyver.server.api import Api
    from polyver.server.asgi import App, Handler
    from polyver.server.identity import Identities
    from polyver.store import Store

__all__ = ["Embedded", "Settings", "embedded"]

_RENEW_EVERY = 12 * 3600.0


@dataclass(frozen=True, slots=True)
class Settings:
    """What someone who starts a control plane may choose."""

    data: Path | None = None
    """Where everything is kept; without it, in memory, and gone at the end."""
    host: str = LOOPBACK
    port: int = 0
    kubeconfig: Path | None = None
    verbose: bool = False
    capabilities: frozenset[str] = frozenset({"apis"})
    kinds: tuple[Kind, ...] = ()
    """Kinds that are declared in Python, to be served with what their authors wrote for them."""
    functions: Functions | None = None
    """What blueprints may call; without, what comes with polyver."""
    calls: CallSettings = field(default_factory=CallSettings)
    """What calls of functions may do and take."""
    gate: GatePolicy = "refuse"
    """What is done about versions of definitions that break users of their neighbours."""
    packages: PackageSettings = field(default_factory=PackageSettings)
    """What functions of compositions may be run, and how."""
    release: str = ""
    """The Kubernetes that it tells clients it is; without it, the one it is made after."""

    @property
    def serves_kinds(self) -> bool:
        """Whether kinds are served; those of definitions and revisions are such kinds."""
        return bool(self.capabilities & {"apis", "definitions", "revisions"})


@dataclass(frozen=True, slots=True)
class Embedded:
    """A control plane that runs."""

    url: str
    folder: Path
    credentials: Credentials
    kubeconfig: Path
    context: str
    """What kubectl uses by default with that kubeconfig."""
    api: Handler


Opens = Callable[["Store", str], AbstractAsyncContextManager["Handler"]]
"""Opens a pipeline on a store; it is told the address, which some answers name."""


@asynccontextmanager
async def embedded(settings: Settings, *, opens: Opens | None = None) -> AsyncIterator[Embedded]:
    """A control plane for as long as the body runs; what cannot be had is a PolyverError."""
    from polyver.server.asgi import certificate_state
    from polyver.server.identity import Identities
    from polyver.serving.listening import bind, serving

    async with AsyncExitStack() as undo:
        # The port first: it is what most often cannot be had, and nothing is touched before.
        listener = undo.enter_context(bind(settings.host, settings.port))
        folder = undo.enter_context(_folder(settings.data))
        store = await undo.enter_async_context(_store(folder, in_memory=settings.data is None))
        names = server_names(settings.host)
        credentials = Credentials.open(folder / "credentials", names, now=_now())
        at = url(settings.host, listener.getsockname()[1])
        address = at.removeprefix("https://")
        identities = Identities(credentials.tokens)
        own = partial(_pipeline, settings, credentials, identities, folder=folder)
        api = await undo.enter_async_context((opens or own)(store, address))
        tls = credentials.tls()
        kubeconfig = settings.kubeconfig or folder / "kubeconfig"
        context = write_kubeconfig(kubeconfig, at, credentials)
        log = Log(verbose=settings.verbose)
        app = _app(api, identities, store, log)
        await undo.enter_async_context(
            serving(app, listener, lambda: tls, known=certificate_state, ending=app.end_streams)
        )
        renew = partial(_renew, credentials, names, tls, kubeconfig, at)
        failing = "certificates are not renewed"
        await undo.enter_async_context(
            in_background(repeated(renew, every=_RENEW_EVERY, log=log, failing=failing))
        )
        yield Embedded(at, folder, credentials, kubeconfig, context, api)


@asynccontextmanager
async def _pipeline(
    settings: Settings,
    credentials: Credentials,
    identities: Identities,
    store: Store,
    address: str,
    *,
    folder: Path,
) -> AsyncIterator[Handler]:
    """The pipeline, with what goes on behind it: definitions, and the controllers."""
    from polyver.engine import AccountController, Engine, GarbageCollector, NamespaceController
    from polyver.server.api import RELEASE, Api
    from polyver.server.bootstrap import prepare
    from polyver.server.direct import DirectClient
    from polyver.server.identity import CONTROLLERS

    key = credentials.account_key
    api = Api(store, address=address, release=settings.release or RELEASE, account_key=key)
    identities.accounts = api.accounts.verify
    api.server.authenticate = identities.verify
    await prepare(api, port=int(address.rpartition(":")[2]))
    client = DirectClient(api, CONTROLLERS, agent="kube-controller-manager")
    api.catalogue.subscribe(client.kinds_changed)
    ca = credentials.ca_file.read_text()
    controllers: list[Controller[Any]] = [
        GarbageCollector(client),
        NamespaceController(client),
        AccountController(client, ca=ca),
    ]
    async with in_background(api.run()):
        if settings.serves_kinds:
            kinds = (*_own_kinds(settings.capabilities), *settings.kinds)
            controllers += await serve_apis(api, kinds, address=address, ca=ca)
        if "definitions" in settings.capabilities:
            from polyver.cli._definitions import serve_definitions

            controllers += await serve_definitions(api, client, gate=settings.gate)
        if "revisions" in settings.capabilities:
            from polyver.cli._packages import serve_packages

            controllers += serve_packages(api, client, settings.packages, folder)
        if "functions" in settings.capabilities:
            controllers += await _serve_functions(api, settings)
        async with Engine(client, controllers):
            yield api


def _own_kinds(capabilities: frozenset[str]) -> tuple[Kind, ...]:
    """The kinds that a capability declares as users declare theirs."""
    found: tuple[Kind, ...] = ()
    if "definitions" in capabilities:
        from polyver.cli._definitions import definition_kinds

        found += definition_kinds()
    if "revisions" in capabilities:
        from polyver.cli._packages import package_kinds

        found += package_kinds()
    return found


async def _serve_functions(api: Api, settings: Settings) -> list[Controller[Any]]:
    from polyver.cli._functions import built_in_functions
    from polyver.cli._served_functions import serve_functions

    functions = settings.functions or built_in_functions()
    return await serve_functions(api, functions, calls=settings.calls)


def _app(api: Handler, identities: Identities, store: Store, log: Log) -> App:
    from polyver.server.asgi import App
    from polyver.server.metrics import Metrics

    return App(
        api,
        identities,
        checks={"store": partial(_problem, store), "definitions": partial(_problem_of, api)},
        metrics=Metrics(lambda: store.revision),
        log=log,
    )


def _problem_of(api: Handler) -> str:
    return str(getattr(api, "problem", ""))


def _problem(store: Store) -> str:
    try:
        _ = store.revision
    except Exception as error:
        return str(error)
    return ""


@contextlib.contextmanager
def _folder(data: Path | None) -> Iterator[Path]:
    if data is None:
        folder = Path(tempfile.mkdtemp(prefix="polyver-"))
        try:
            yield folder
        finally:
            shutil.rmtree(folder, ignore_errors=True)
        return
    try:
        data.mkdir(mode=0o700, parents=True, exist_ok=True)
    except OSError as error:
        hint = "choose another folder with --data"
        problem = f"{data} cannot be used: {error.strerror or error}"
        raise FolderFailed(problem, hint=hint) from None
    yield data.absolute()


def _store(folder: Path, *, in_memory: bool) -> Store:
    if in_memory:
        from polyver.store.memory import MemoryStore

        return MemoryStore()
    from polyver.store.sqlite import SqliteStore

    return SqliteStore(folder / "store")


def _now() -> datetime.datetime:
    return datetime.datetime.now(datetime.UTC)


# A server that runs for a year must not end with its certificate.


async def _renew(
    credentials: Credentials, names: list[str], tls: ssl.SSLContext, kubeconfig: Path, at: str
) -> None:
    Credentials.open(credentials.folder, names, now=_now())
    tls.load_cert_chain(credentials.server_cert_file, credentials.server_key_file)
    tls.load_verify_locations(credentials.ca_file)
    write_kubeconfig(kubeconfig, at, credentials)
