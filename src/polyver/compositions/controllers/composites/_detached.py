"""Preflights outside of a control plane, for commands.

A command has no watches, so it passes the objects that decide about revisions. These objects do not
have to exist on the API server. The state of composite resources is read from the API server.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterable
from contextlib import asynccontextmanager

from polyver.client import Change, Client, Discovery, Key, SystemClock
from polyver.compositions.calls import Caller
from polyver.compositions.controllers.composites._candidates import CompositionCache
from polyver.compositions.controllers.composites._known_composites import CompositeKey
from polyver.compositions.controllers.composites._observed_state import ComposedOutputs, Kinds
from polyver.compositions.controllers.composites._pipeline_run import (
    CompositeLimits,
    RevisionCaller,
)
from polyver.compositions.controllers.composites._preflight import CompositePreflight
from polyver.compositions.controllers.composites._reconcile import Composer
from polyver.compositions.controllers.composites._status import CompositeStatusWriter
from polyver.compositions.decisions import CompositeKind
from polyver.compositions.runtimes import FunctionReach
from polyver.controllers.events import Events
from polyver.core.plain import Object
from polyver.kube.http.logs import Log

__all__ = ["detached_preflight"]


@asynccontextmanager
async def detached_preflight(
    client: Client,
    functions: FunctionReach,
    *,
    discovery: Discovery,
    kinds: Iterable[CompositeKind],
    revisions: Iterable[Object],
) -> AsyncIterator[CompositePreflight]:
    """Yield a preflight that composes with the given CompositionRevisions.

    `functions` knows the endpoints of the function revisions.
    """
    clock, limits = SystemClock(), CompositeLimits()
    known, served = CompositionCache(client), Kinds()
    served.discovered(discovery)
    for each in kinds:
        known.define(Change(Key("", each.name), None, (each,)))
    for revision in revisions:
        known.provide(revision)
    calling = RevisionCaller(functions, _not_woken, clock, limits, Caller())
    composer = Composer(
        client,
        clock,
        known=known,
        kinds=served,
        outputs=ComposedOutputs(lambda: None, lambda _: None),
        calling=calling,
        telling=CompositeStatusWriter(
            client, clock, Events(client, clock, Log(), component="polyver")
        ),
        several=True,
        limits=limits,
    )
    try:
        yield CompositePreflight(client, clock, composer, known, served)
    finally:
        await calling.close()


def _not_woken(key: CompositeKey) -> None:
    """Do nothing: a preflight itself repeats a try that its functions were too busy for."""
    del key
