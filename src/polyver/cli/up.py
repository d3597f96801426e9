"""`polyver up`: a Kubernetes-compatible control plane in this process, until it is told to end."""

from __future__ import annotations

import asyncio
import gc
import shlex
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

from cyclopts import App, Parameter
from cyclopts.validators import Number

from polyver.cli._embedded import Embedded, Settings, embedded
from polyver.cli._exit import Misused
from polyver.cli._files import data_folder
from polyver.cli._output import print_lines
from polyver.cli._packages import PackageSettings
from polyver.cli._served_functions import CallSettings
from polyver.cli._signals import signalled
from polyver.core import listed
from polyver.serving.addresses import LOOPBACK

if TYPE_CHECKING:
    from collections.abc import Sequence

    from polyver.apis import Kind
    from polyver.capabilities.functions.registering import Functions
    from polyver.cli._loading import Manifest

# Not 6443, which local clusters take (k3s, kubeadm, Docker Desktop, Colima), nor 8443 (minikube),
# nor 6444 and 6445 next to them; and always the same, so that a kubeconfig stays good.
PORT = 6450
_IN_MEMORY = ":memory:"
CAPABILITIES = ("apis", "functions", "definitions", "revisions")
FEATURES = ("FunctionRevisions",)
_USUAL = "apis"

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
    functions: Annotated[list[str] | None, Parameter(negative=())] = None,
    catalogue: Annotated[list[str] | None, Parameter(negative=())] = None,
    allow_command: Annotated[bool, Parameter(negative=())] = False,
    function_timeout: str = "1h",
    capabilities: str | None = None,
    semver_gate: Literal["refuse", "warn"] = "refuse",
    packages: Path | None = None,
    allow_packages: Annotated[bool, Parameter(negative=())] = False,
    feature: Annotated[list[str] | None, Parameter(negative=())] = None,
    verbose: Annotated[bool, Parameter(negative=())] = False,
    traceback: Annotated[bool, Parameter(negative=())] = False,
) -> None:
    """Run a control plane that kubectl can talk to, until interrupted.

    Example: polyver up --port 0 --data :memory:

    Parameters
    ----------
    data
        Where everything is kept: by default `polyver` in the user's data folder. `:memory:` keeps
        nothing.
    host
        The address to listen on.
    port
        The port to listen on; 0 takes any that is free.
    kubeconfig
        Where to write how to connect: by default `kubeconfig` in the data folder. A file that
        is there keeps its other entries.
    load
        A file or a folder with manifests to apply once it runs, or - for standard input;
        repeatable. CustomResourceDefinitions come first. What others have changed since is left.
    kinds
        Where kinds are that are declared in Python, as for `polyver crds`; repeatable. They are
        defined, converted in this process, checked by their hooks, and their controllers run.
    functions
        A .py file or a module that registers functions for blueprints, beside those of installed
        packages; repeatable.
    catalogue
        A catalogue that says in which stages their versions are; repeatable.
    allow_command
        Let blueprints run programs beside this process, with the function Command.
    function_timeout
        How long one phase of an action may take: 90s, 1m30s, 2h.
    capabilities
        What it does beyond Kubernetes, separated by commas, of apis, functions, definitions and
        revisions; empty for nothing. Without it apis, and functions if --functions or --catalogue
        is there.
    semver_gate
        What is done about a new version of a definition that breaks its users without a new major
        version.
    packages
        A file that says which packages of composition functions may be run, and where they are: a
        mapping from references to folders, wheels and requirements such as NAME==1.2.3.
    allow_packages
        Run packages that it does not name, too, if their references begin with file: or pypi:.
        Whoever may write Functions can then run code here.
    feature
        A feature to switch on or off; repeatable. FunctionRevisions=false refuses several active
        revisions of one function.
    verbose
        Log every request.
    traceback
        Show the traceback too when code of yours fails.
    """
    import uvloop

    usual = f"{_USUAL},functions" if functions or catalogue else _USUAL
    chosen = read_capabilities(usual if capabilities is None else capabilities)
    if kinds and "apis" not in chosen:
        raise Misused("--kinds needs the capability apis", at="--capabilities")
    if (functions or catalogue) and "functions" not in chosen:
        fact = "--functions and --catalogue need the capability functions"
        raise Misused(fact, at="--capabilities")
    if (packages or allow_packages) and "revisions" not in chosen:
        fact = "--packages and --allow-packages need the capability revisions"
        raise Misused(fact, at="--capabilities")
    several = read_features(feature or [])["FunctionRevisions"]
    settings = Settings(
        _data(data),
        host,
        port,
        kubeconfig,
        verbose,
        chosen,
        tuple(_kinds(kinds or [], show_traceback=traceback)),
        _functions(functions, catalogue, show_traceback=traceback)
        if "functions" in chosen
        else None,
        CallSettings(_seconds(function_timeout), frozenset({"command"} if allow_command else ())),
        semver_gate,
        PackageSettings(packages, allow_packages, several),
    )
    manifests = _manifests(load or [])
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        runner.run(_serve(settings, manifests))


def _seconds(text: str) -> float:
    from polyver.objects.durations import nanoseconds

    found = nanoseconds(text)
    if not found or found < 0:
        hint = "write a length of time as 90s, 1m30s or 2h"
        raise Misused(f"{text!r} is no length of time", at="--function-timeout", hint=hint)
    return found / 1e9


def _data(given: str | None) -> Path | None:
    if given is None:
        return data_folder()
    if not given:
        raise Misused("--data is empty", hint=f"name a folder, or {_IN_MEMORY}")
    return None if given == _IN_MEMORY else Path(given)


def read_capabilities(text: str) -> frozenset[str]:
    """What the option names, each of which there is."""
    names = frozenset(filter(None, text.split(",")))
    if unknown := names - {*CAPABILITIES}:
        known = listed(CAPABILITIES)
        fact = f"{listed(sorted(unknown))} is no capability"
        raise Misused(fact, at="--capabilities", hint=f"known: {known}")
    for name in ("definitions", "revisions"):
        if name in names and "apis" not in names:
            fact = f"the capability {name} needs apis, which converts them"
            raise Misused(fact, at="--capabilities", hint=f"say apis,{name}")
    return names


def read_features(texts: list[str]) -> dict[str, bool]:
    """Every feature, and whether it is on: they are unless somebody says otherwise."""
    found = dict.fromkeys(FEATURES, True)
    for text in texts:
        name, _, value = text.partition("=")
        if name not in found or value not in ("true", "false"):
            hint = f"write NAME=true or NAME=false; known: {listed(FEATURES)}"
            raise Misused(f"{text!r} switches no feature", at="--feature", hint=hint)
        found[name] = value == "true"
    return found


def _kinds(names: list[str], *, show_traceback: bool) -> list[Kind]:
    if not names:
        return []
    from polyver.cli._kinds import load_kinds

    return load_kinds(names, show_traceback=show_traceback)


def _functions(
    names: list[str] | None, catalogues: list[str] | None, *, show_traceback: bool
) -> Functions:
    from polyver.cli._functions import load_functions

    return load_functions(names or (), catalogues or (), show_traceback=show_traceback)


def _manifests(names: list[str]) -> list[Manifest]:
    if not names:
        return []
    from polyver.cli._loading import manifests_of

    return manifests_of(names)


async def _serve(settings: Settings, manifests: Sequence[Manifest]) -> None:
    began = time.monotonic()
    ended = signalled()
    async with embedded(settings) as running:
        if manifests:
            from polyver.cli._loading import load

            await load(running.api, manifests)
        _announce(running, settings, time.monotonic() - began, loaded=len(manifests))
        # What is here now stays; the collector need not look at it again and again.
        gc.collect()
        gc.freeze()
        await ended


def _announce(running: Embedded, settings: Settings, seconds: float, *, loaded: int) -> None:
    kept = f"data in {running.folder}" if settings.data else "nothing is kept"
    kept += f"; {loaded} {'object' if loaded == 1 else 'objects'} loaded" if loaded else ""
    ours = "" if running.context == "polyver" else "; kubectl config use-context polyver"
    print_lines(
        f"polyver is ready at {running.url} after {seconds:.1f} s; {kept}",
        f"export KUBECONFIG={shlex.quote(str(running.kubeconfig.absolute()))}{ours}",
    )
    sys.stdout.flush()
