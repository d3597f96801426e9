"""Starts the embedded control plane: store, API server, controllers, certificates and kubeconfig.

`polyver up` and the test kit use the same function `embedded`, so tests cover the code of the
command.
"""

from __future__ import annotations

import contextlib
import datetime
import shutil
import tempfile
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Sequence
from contextlib import AbstractAsyncContextManager, AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from polyver.apis.capability import own_webhook, serve_kinds
from polyver.app._page import bind_page, serving_page
from polyver.app.capabilities import Choices
from polyver.capability.capability import Surroundings, WorkerAccess
from polyver.capability.contributions import Contribution
from polyver.kube.http.addresses import LOOPBACK, url
from polyver.kube.http.background import in_background, repeated
from polyver.kube.http.files import FolderFailed
from polyver.kube.http.logs import Log
from polyver.kube.server.credentials import Credentials, server_names
from polyver.kube.server.kubeconfig import write_kubeconfig

if TYPE_CHECKING:
    import ssl

    from polyver.apis.declaring import Kind
    from polyver.client import Client
    from polyver.controllers import Controller, ControllerManager
    from polyver.kube.http.http import HttpResponse
    from polyver.kube.objects.webhooks import Webhook
    from polyver.kube.server.api import ApiServer
    from polyver.kube.server.asgi import ApiServerApp
    from polyver.kube.server.http import Handler, HttpRequest
    from polyver.kube.server.identity import Identities
    from polyver.kube.store import Store

__all__ = ["Embedded", "EmbeddedSettings", "embedded"]

_RENEW_EVERY = 60.0
_VERIFIED_AT_ONCE = 500


@dataclass(frozen=True, slots=True)
class EmbeddedSettings:
    """The settings of an embedded control plane."""

    data: Path | None = None
    """The folder for all data; None keeps data in memory, where it is lost when polyver ends."""
    host: str = LOOPBACK
    port: int = 0
    kubeconfig: Path | None = None
    verbose: bool = False
    choices: Choices = field(default_factory=Choices)
    kinds: tuple[Kind, ...] = ()
    """Kinds that are declared in Python, with their conversions, hooks and controllers."""
    page_port: int | None = None
    """The port of the web page on the loopback address; None for no web page."""
    new_store: bool = False
    """True to create a missing store even if the folder has credentials of an earlier store.

    Otherwise polyver refuses to start in this case, because data may have been lost.
    """
    verify: bool = False
    """True to check, before the start, that every object in the store can be read."""
    release: str = ""
    """The Kubernetes release that the API server reports to clients, such as 1.33.2.

    By default, this is the release that it implements.
    """


@dataclass(frozen=True, slots=True)
class Embedded:
    """A running embedded control plane."""

    url: str
    folder: Path
    credentials: Credentials
    kubeconfig: Path
    context: str
    """The name of the context that the kubeconfig has for this control plane."""
    api: Handler
    page: str = ""
    """The URL of the web page, with its token. Empty if there is no web page."""


Opens = Callable[["Store", str], AbstractAsyncContextManager["Handler"]]
"""Builds the API handler for a store. The string is the address of the server, as HOST:PORT."""


@asynccontextmanager
async def embedded(
    settings: EmbeddedSettings, *, opens: Opens | None = None
) -> AsyncIterator[Embedded]:
    """Run a control plane until the context ends. Raise a PolyverError if it cannot start."""
    from polyver.kube.http.listener import bind, serving
    from polyver.kube.server.asgi import certificate_state
    from polyver.kube.server.identity import Identities

    async with AsyncExitStack() as undo:
        # Bind the port first. This step fails most often, and nothing has been changed before it.
        listener = undo.enter_context(bind(settings.host, settings.port))
        page_listener = undo.enter_context(bind_page(settings.page_port))
        folder = undo.enter_context(_folder(settings.data))
        log = Log(verbose=settings.verbose)
        store = await undo.enter_async_context(_store(folder, settings, log))
        if settings.verify:
            _verify(store, folder / "store")
        names = server_names(settings.host)
        credentials, _ = _credentials(folder / "credentials", names, log)
        at = url(settings.host, listener.getsockname()[1])
        address = at.removeprefix("https://")
        identities = Identities(credentials.tokens)
        behind = _Behind()
        own = partial(_pipeline, settings, credentials, identities, behind=behind, folder=folder)
        api = await undo.enter_async_context((opens or own)(store, address))
        tls = credentials.tls()
        kubeconfig = settings.kubeconfig or folder / "kubeconfig"
        context = write_kubeconfig(kubeconfig, at, credentials)
        app = _app(api, identities, store, behind, log)
        await undo.enter_async_context(
            serving(app, listener, lambda: tls, known=certificate_state, ending=app.end_streams)
        )
        write = partial(write_kubeconfig, kubeconfig, at, credentials)
        renew = partial(_renew, credentials, names, tls, write, log)
        failing = "certificates are not renewed"
        await undo.enter_async_context(
            in_background(repeated(renew, every=_RENEW_EVERY, log=log, failing=failing))
        )
        page = await undo.enter_async_context(
            serving_page(page_listener, api, credentials, settings.choices, log)
        )
        yield Embedded(at, folder, credentials, kubeconfig, context, api, page)


@dataclass(slots=True)
class _Behind:
    """Keeps the controller manager, whose metrics the server shows.

    `engine` is None until the controllers start.
    """

    engine: ControllerManager | None = None


@asynccontextmanager
async def _pipeline(
    settings: EmbeddedSettings,
    credentials: Credentials,
    identities: Identities,
    store: Store,
    address: str,
    *,
    behind: _Behind,
    folder: Path,
) -> AsyncIterator[Handler]:
    """Run the API server with polyver's own CRDs and all controllers. Yield its API handler."""
    from polyver.client.in_process import DirectClient
    from polyver.controllers import (
        AccountController,
        ControllerManager,
        GarbageCollector,
        MigrationController,
        NamespaceController,
    )
    from polyver.kube.server.api import RELEASE, ApiServer
    from polyver.kube.server.bootstrap import prepare
    from polyver.kube.server.identity import CONTROLLERS

    key = credentials.account_key
    api = ApiServer(store, address=address, release=settings.release or RELEASE, account_key=key)
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
        MigrationController(client),
    ]
    async with in_background(api.run()):
        lend = partial(_lent, identities, f"https://{address}", credentials)
        contributions = settings.choices.contributions(
            Surroundings(folder=folder, lend=lend, kinds=settings.kinds)
        )
        controllers += await _serve(settings, contributions, api, own_webhook(address, ca))
        async with ControllerManager(client, controllers) as behind.engine:
            yield api


@contextlib.contextmanager
def _lent(identities: Identities, at: str, credentials: Credentials) -> Iterator[WorkerAccess]:
    """Yield credentials for the worker process of one call; revoke them after the `with` block."""
    from polyver.client.cluster import ClusterAccess, KubeconfigCluster, KubeconfigUser
    from polyver.kube.server.identity import FUNCTIONS

    with identities.lend(FUNCTIONS) as token:
        cluster = KubeconfigCluster(server=at, certificate_auth=str(credentials.ca_file.absolute()))
        yield WorkerAccess(
            ClusterAccess(cluster, KubeconfigUser(token=token), "polyver up"), runs_pods=False
        )


async def _serve(
    settings: EmbeddedSettings,
    contributions: Sequence[Contribution],
    api: ApiServer,
    webhook: Webhook,
) -> list[Controller[Any]]:
    """Serve polyver's own kinds and the kinds of users that are declared in Python.

    Return the controllers of these kinds and of the capabilities.
    """
    from polyver.client.in_process import DirectClient
    from polyver.kube.server.identity import ADMIN

    client = DirectClient(api, ADMIN, agent="polyver")
    api.catalogue.subscribe(client.kinds_changed)
    found: list[Controller[Any]] = []
    own = [kind for each in contributions for kind in each.kinds]
    kinds = [*own, *settings.kinds]
    for each in contributions:
        if each.serve is not None:
            found += await each.serve(api, client, webhook)
    if kinds or contributions:
        # The objects of kinds with a Conversion need the same admission as the objects of Python
        # kinds.
        found += await serve_kinds(api, client, kinds, webhook)
    for each in contributions:
        found += await _contribute(each, api, client)
    return found


async def _contribute(
    contribution: Contribution, api: ApiServer, client: Client
) -> list[Controller[Any]]:
    for link in contribution.links(client):
        api.admission.add(link)
    for name in contribution.namespaces:
        await _make_namespace(client, name)
    for path, document in contribution.documents.items():
        api.pages[path] = partial(_answer, partial(document, client))
    return contribution.controllers(client)


async def _make_namespace(client: Client, name: str) -> None:
    from polyver.client import GroupVersionResource, find

    namespaces = GroupVersionResource("", "v1", "namespaces", namespaced=False)
    if await find(client, namespaces, name) is None:
        made = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}}
        await client.create(namespaces, made)


async def _answer(document: Callable[[], Awaitable[bytes]], request: HttpRequest) -> HttpResponse:
    from polyver.kube.http.http import HttpResponse

    del request
    return HttpResponse(200, [("content-type", "application/json")], await document())


def _app(
    api: Handler, identities: Identities, store: Store, behind: _Behind, log: Log
) -> ApiServerApp:
    from polyver.controllers.metrics import collector_of
    from polyver.kube.server.asgi import ApiServerApp
    from polyver.kube.server.metrics import ApiServerMetrics

    return ApiServerApp(
        api,
        identities,
        checks={"store": partial(_problem, store), "definitions": partial(_problem_of, api)},
        metrics=ApiServerMetrics(
            lambda: store.revision,
            also=[collector_of(lambda: behind.engine)],
            known=partial(_serves, api),
        ),
        log=log,
    )


def _serves(api: Handler, group: str, version: str, plural: str) -> bool:
    catalogue = getattr(api, "catalogue", None)
    return catalogue is not None and catalogue.get(group, version, plural) is not None


def _problem_of(api: Handler) -> str:
    return str(getattr(api, "problem", ""))


def _problem(store: Store) -> str:
    """Return why the store cannot be used, so that the server is not ready; "" if it works."""
    try:
        _ = store.revision
    except Exception as error:
        return str(error)
    return store.problem


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


def _store(folder: Path, settings: EmbeddedSettings, log: Log) -> Store:
    if settings.data is None:
        from polyver.kube.store.memory import MemoryStore

        return MemoryStore()
    from polyver.kube.store.interface import StoreMissing
    from polyver.kube.store.sqlite import SqliteStore

    kept = folder / "credentials"
    new = settings.new_store or not Credentials(kept).are_there
    try:
        return SqliteStore(
            folder / "store", new=new, verify=settings.verify, report=partial(_report, log)
        )
    except StoreMissing as error:
        hint = "restore the folder from a backup, or start with an empty store with --new-store"
        raise StoreMissing(f"{error.fact}, but {kept} belongs to one", hint=hint) from None


def _report(log: Log, problem: str) -> None:
    if problem:
        log.warning("the server is not ready", problem=problem)
    else:
        log.warning("the server is ready again: a write succeeded")


def _verify(store: Store, folder: Path) -> None:
    """Read all objects in the store. Raise StoreDamaged if the data of an object is not JSON."""
    import msgspec

    from polyver.kube.store.interface import StoreDamaged

    after, left = "", True
    while left:
        page = store.page("", after=after, limit=_VERIFIED_AT_ONCE)
        for entry in page.entries:
            try:
                msgspec.json.decode(entry.value)
            except (msgspec.DecodeError, UnicodeDecodeError) as error:
                hint = "restore the folder from a backup"
                fact = f"{folder / 'store.db'} is corrupt: {entry.key} is not JSON ({error})"
                raise StoreDamaged(fact, hint=hint) from None
        after, left = page.entries[-1].key if page.entries else "", page.remaining > 0


def _credentials(folder: Path, names: Sequence[str], log: Log) -> tuple[Credentials, bool]:
    """Open the credentials, and renew them if needed. Return them, and True if any were renewed.

    The reason for each renewal is logged.
    """
    reasons: list[str] = []
    credentials = Credentials.open(folder, names, now=_now(), report=reasons.append)
    for reason in reasons:
        log.warning("certificates recreated", reason=reason)
    return credentials, bool(reasons)


def _now() -> datetime.datetime:
    return datetime.datetime.now(datetime.UTC)


# Renew the certificate while the server runs: a server may run for a year, and the clock may jump.


async def _renew(
    credentials: Credentials,
    names: list[str],
    tls: ssl.SSLContext,
    write: Callable[[], str],
    log: Log,
) -> None:
    """Renew the certificates that expire soon, and load them into the running server.

    If there are new certificates, call `write`, which updates the kubeconfig.
    """
    _, made = _credentials(credentials.folder, names, log)
    if made:
        tls.load_cert_chain(credentials.server_cert_file, credentials.server_key_file)
        tls.load_verify_locations(credentials.ca_file)
        write()
