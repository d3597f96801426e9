"""`polyver up`: run a Kubernetes-compatible control plane in this process, until a signal."""

from __future__ import annotations

import asyncio
import gc
import shlex
import time
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from cyclopts import App, Parameter
from cyclopts.validators import Number

from polyver.app.capabilities import BASE
from polyver.app.capability_options import CapabilityOptions
from polyver.app.embedded import Embedded, EmbeddedSettings, embedded
from polyver.cli.exit_codes import Misused
from polyver.cli.files import data_folder
from polyver.cli.output import flush, print_lines
from polyver.cli.signals import signalled
from polyver.kube.http.addresses import LOOPBACK

if TYPE_CHECKING:
    from collections.abc import Sequence

    from polyver.apis.declaring import Kind
    from polyver.cli.loading import Manifest

# The default port. Local clusters often use 6443 (k3s, kubeadm, Docker Desktop, Colima), 6444, 6445
# and 8443 (minikube). The default is a fixed number, so that a kubeconfig stays valid.
PORT = 6450
_IN_MEMORY = ":memory:"
_USUAL = CapabilityOptions()

app = App(name="up")


@app.default
def up(
    *,
    data: str | None = None,
    host: str = LOOPBACK,
    port: Annotated[int, Parameter(validator=Number(gte=0, lte=65535))] = PORT,
    kubeconfig: Path | None = None,
    load: Annotated[
        list[str] | None,
        Parameter(name=["--load", "-f"], negative=(), allow_leading_hyphen=True),
    ] = None,
    kinds: Annotated[list[str] | None, Parameter(negative=())] = None,
    having: CapabilityOptions = _USUAL,
    page_port: Annotated[int | None, Parameter(validator=Number(gte=0, lte=65535))] = None,
    page: Annotated[bool, Parameter(negative="--no-page")] = True,
    new_store: Annotated[bool, Parameter(negative=())] = False,
    verify: Annotated[bool, Parameter(negative=())] = False,
    verbose: Annotated[bool, Parameter(negative=())] = False,
    traceback: Annotated[bool, Parameter(negative=())] = False,
) -> None:
    """Run a local control plane with a Kubernetes API, until interrupted.

    Example: polyver up --port 0 --data :memory:

    Parameters
    ----------
    data
        The folder for all data. Default: `$XDG_DATA_HOME/polyver`, or
        `~/.local/share/polyver` if the variable is not set. With ":memory:",
        polyver stores nothing on disk.
    host
        The address to listen on.
    port
        The port to listen on; 0 chooses a free port.
    kubeconfig
        The kubeconfig file to write. If the file exists, its other entries are kept. Default:
        `kubeconfig` in the data folder.
    load
        A file or folder with manifests to apply after the start, or "-" for standard input;
        repeatable. polyver applies CustomResourceDefinitions first. If another client has changed a
        field of an object, the field keeps the value of that client.
    kinds
        A module, file or folder with kinds declared in Python, as for the argument KINDS of
        `polyver crds`; repeatable. polyver serves the CustomResourceDefinitions of these kinds,
        converts their objects, calls their hooks (functions that default or validate objects), and
        runs their controllers.
    page_port
        The port of the web page, which polyver serves only on 127.0.0.1; 0 chooses a free port.
        Default: the number of --port plus 1, or a free port with --port 0.
    page
        Serve the web page of the control plane. With --no-page, polyver does not serve it.
    new_store
        Create a new store if the store in the data folder is missing or empty, although the folder
        contains credentials of an earlier start. Without this option, polyver refuses to start in
        this case, because data may have been lost. An existing store is never deleted.
    verify
        Before the start, compare the indexes of the whole store with its tables, and check that
        every object can be read. Without this option, polyver checks only the structure of the
        store's file.
    verbose
        Log every request to the API server.
    traceback
        Also print the Python traceback if your code raises an exception while polyver imports it.
    """
    import uvloop

    choices = having.choices(show_traceback=traceback)
    if kinds and BASE not in choices.capabilities:
        raise Misused(f"--kinds needs the capability {BASE}", at="--capabilities")
    own = tuple(_kinds(kinds or [], show_traceback=traceback))
    at = _page_port(page_port, port) if page else None
    settings = EmbeddedSettings(
        _data(data), host, port, kubeconfig, verbose, choices, own, at, new_store, verify
    )
    manifests = _manifests(load or [])
    # No object that is loaded during the start is released again, so garbage collection would be
    # useless here.
    gc.disable()
    try:
        with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
            runner.run(_serve(settings, manifests))
    finally:
        gc.enable()


def _page_port(chosen: int | None, port: int) -> int:
    if chosen is not None:
        return chosen
    return port + 1 if 0 < port < 65535 else 0


def _data(given: str | None) -> Path | None:
    if given is None:
        return data_folder()
    if not given:
        raise Misused("--data is empty", hint=f"pass a folder, or {_IN_MEMORY}")
    return None if given == _IN_MEMORY else Path(given)


def _kinds(names: list[str], *, show_traceback: bool) -> list[Kind]:
    if not names:
        return []
    from polyver.apis.commands.kinds import load_kinds

    return load_kinds(names, show_traceback=show_traceback)


def _manifests(names: list[str]) -> list[Manifest]:
    if not names:
        return []
    from polyver.cli.loading import manifests_of

    return manifests_of(names)


async def _serve(settings: EmbeddedSettings, manifests: Sequence[Manifest]) -> None:
    began = time.monotonic()
    ended = signalled()
    async with embedded(settings) as running:
        # Exclude the loaded objects from garbage collection. They are used until the end, so
        # scanning them again and again would be useless.
        gc.freeze()
        # Reading a list creates and releases tens of thousands of objects. None of these objects
        # are in a cycle, so garbage collection can be rare.
        gc.set_threshold(20_000, 10, 10)
        gc.enable()
        if manifests:
            from polyver.cli.loading import load

            await load(running.api, manifests)
        _announce(running, settings, time.monotonic() - began, loaded=len(manifests))
        await ended


def _announce(
    running: Embedded, settings: EmbeddedSettings, seconds: float, *, loaded: int
) -> None:
    kept = f"data in {running.folder}" if settings.data else "data in memory only"
    kept += f"; {loaded} {'object' if loaded == 1 else 'objects'} loaded" if loaded else ""
    ours = "" if running.context == "polyver" else "; kubectl config use-context polyver"
    print_lines(
        f"polyver is ready at {running.url} after {seconds:.1f} s; {kept}",
        f"export KUBECONFIG={shlex.quote(str(running.kubeconfig.absolute()))}{ours}",
        *([f"the page: {running.page}"] if running.page else []),
    )
    flush()
