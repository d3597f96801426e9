"""The controller of composite resources.

A run of a pipeline uses the revisions that were resolved when it started. A change of revisions
during the run is handled by the next reconcile.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final

from polyver.client import (
    Change,
    Client,
    Clock,
    Discovery,
    GroupVersionResource,
    SystemClock,
    find,
    sleep,
)
from polyver.compositions.calls import Caller
from polyver.compositions.calls.history import CallHistory
from polyver.compositions.controllers.composites._candidates import (
    CachedCompositionRevision,
    CompositionCache,
    allowing,
    candidate_in,
    defined_in,
    function_revision_in,
    noted_in,
)
from polyver.compositions.controllers.composites._known_composites import (
    AdoptionCounter,
    CompositeIndex,
    CompositeKey,
    CompositeState,
    OwnWriteFilter,
    others_in,
    state_of,
)
from polyver.compositions.controllers.composites._observed_state import ComposedOutputs, Kinds
from polyver.compositions.controllers.composites._pipeline_run import (
    CompositeLimits,
    RevisionCaller,
)
from polyver.compositions.controllers.composites._preflight import (
    CompositePreflight,
    TriedRevision,
)
from polyver.compositions.controllers.composites._reconcile import Composer, Work
from polyver.compositions.controllers.composites._status import (
    AdoptionReport,
    CompositeStatusWriter,
)
from polyver.compositions.controllers.compositions import (
    COMPOSITION_REVISIONS,
    COMPOSITIONS,
    DEFINITIONS,
)
from polyver.compositions.controllers.packages import FUNCTION_REVISIONS
from polyver.compositions.decisions import Candidate, CompositeKind, read_composite
from polyver.compositions.runtimes import Runtime
from polyver.controllers.controller import Controller, Requeue, Watch, exactly
from polyver.controllers.events import Events
from polyver.controllers.owned_objects.index import number_of
from polyver.core.plain import Object
from polyver.core.preflight import PreflightReport
from polyver.kube.http.logs import Log
from polyver.kube.objects.kinds import ResourceKind

if TYPE_CHECKING:
    from prometheus_client.registry import Collector

__all__ = ["CompositeController"]

_SOON: Final = 0.05
_MOMENTS: Final = 20


class CompositeController(Controller[CompositeKey]):
    """Reconciles composite resources of all kinds, and sets the condition `Adopted`.

    Each composite resource has one key. Compositions and Functions have keys too. A reconcile with
    the key of a Composition or a Function sets its condition `Adopted`. `several` enables the
    feature FunctionRevisions: several active revisions of one Function.
    """

    name = "composites"

    def __init__(
        self,
        client: Client,
        runtime: Runtime,
        *,
        several: bool = True,
        limits: CompositeLimits | None = None,
        caller: Caller | None = None,
        clock: Clock | None = None,
        log: Log | None = None,
    ) -> None:
        self._client = client
        self._clock: Clock = clock or SystemClock()
        limits = limits or CompositeLimits()
        self.workers = limits.workers
        self._known = CompositionCache(client)
        self._following = CompositeIndex(self._known)
        self._kinds = Kinds()
        self._outputs = ComposedOutputs(self._watch_other_kinds, self._following.owner)
        self._news = OwnWriteFilter[CompositeKey](self._wake)
        self._calling = RevisionCaller(runtime, self._wake, self._clock, limits, caller or Caller())
        events = Events(client, self._clock, log or Log(), component="polyver")
        self._telling = CompositeStatusWriter(client, self._clock, events)
        self._composing = Composer(
            client,
            self._clock,
            known=self._known,
            kinds=self._kinds,
            outputs=self._outputs,
            calling=self._calling,
            telling=self._telling,
            several=several,
            limits=limits,
        )
        self._preflight = CompositePreflight(
            client, self._clock, self._composing, self._known, self._kinds
        )
        self._report = AdoptionReport(
            client, self._clock, events, AdoptionCounter(self._following, self._known)
        )
        self._has_begun = False
        self._waiting: set[CompositeKey] = set()
        """Keys of composite resources that need a kind that is not served at the moment."""

    @property
    def counts(self) -> Mapping[str, int]:
        return self._composing.counts

    @property
    def history(self) -> CallHistory:
        """The number and the durations of the calls of each function revision over time."""
        return self._calling.history

    async def preflight(
        self, tried: TriedRevision, keys: Sequence[CompositeKey]
    ) -> PreflightReport:
        """Report the effects that a revision would have on composite resources. Change nothing."""
        return await self._preflight.report(tried, keys)

    @property
    def collectors(self) -> Sequence[Callable[[], Collector]]:
        return (self._calling.caller.metrics.collector,)

    async def close(self) -> None:
        await self._calling.close()

    def _wake(self, key: CompositeKey) -> None:
        # read the attribute at each call, because the loop of the controller replaces `wake`
        self.wake(key)

    def _watch_other_kinds(self) -> None:
        self.watch_anew()

    # Watches.

    @property
    def watches(self) -> Sequence[Watch[Any, CompositeKey]]:
        return [
            Watch(kinds=exactly(DEFINITIONS), observe=self._observe_definition, keep=defined_in),
            Watch(
                kinds=exactly(COMPOSITIONS), observe=self._observe_composition, keep=candidate_in
            ),
            Watch(
                kinds=exactly(COMPOSITION_REVISIONS), observe=self._observe_revision, keep=noted_in
            ),
            Watch(
                kinds=exactly(FUNCTION_REVISIONS),
                observe=self._observe_function,
                keep=function_revision_in,
            ),
            Watch(
                kinds=self._composites,
                observe=self._observe,
                keep=self._state,
                needed=False,
                forget=self._forget_kind,
            ),
            self._outputs.watch(),
        ]

    def discovered(self, discovery: Discovery) -> Iterable[CompositeKey]:
        self._kinds.discovered(discovery)
        waiting, self._waiting = self._waiting, set()
        return waiting

    def _composites(self, discovery: Discovery) -> list[ResourceKind]:
        """Return the served kinds of composite resources, each in its referenceable version."""
        wanted = {(each.group, each.version, each.kind) for each in self._known.kinds.values()}
        return [each for each in discovery.kinds if (each.group, each.version, each.kind) in wanted]

    def _state(self, kind: ResourceKind, obj: Object) -> CompositeState:
        defined = self._known.defined(kind.group, kind.kind)
        if defined is None:  # the definition was just deleted
            defined = CompositeKind("", kind.group, kind.kind, kind.version)
        named = {"apiVersion": kind.api_version, "kind": kind.kind, **obj}
        return state_of(read_composite(named, defined), number_of(obj))

    def _observe(
        self, kind: ResourceKind, change: Change[CompositeState]
    ) -> Iterable[CompositeKey]:
        key = CompositeKey(kind.group, kind.kind, *change.key)
        self._put(key, change.after)
        if change.after is None:
            self._forget(key)
            return ()
        self._outputs.use(change.after.parts)
        return (key,) if self._news.is_news(key, change.after.revision) else ()

    def _put(self, key: CompositeKey, state: CompositeState | None) -> None:
        """Record the state of a composite resource in the index; None removes it.

        If the composite resource follows or uses other revisions now, count the followers of its
        Composition and Functions again, for the condition `Adopted`.
        """
        before = self._following.get(key)
        self._following.put(key, state)
        after = self._following.get(key)
        if (before and before.followed) == (after and after.followed):
            return
        for each in filter(None, (before, after)):
            self._count("Composition", each.composition)
            for call in each.calls:
                self._count("Function", call.function)

    def _count(self, kind: str, name: str) -> None:
        if name:
            self._wake(self._report.key(kind, name))

    def _forget(self, key: CompositeKey) -> None:
        self._waiting.discard(key)
        self._news.forget(key)
        self._composing.forget(key)

    def _forget_kind(
        self, kind: ResourceKind, known: Iterable[CompositeState]
    ) -> Iterable[CompositeKey]:
        del known
        for key in self._following.of_kind(kind.group, kind.kind):
            self._put(key, None)
            self._forget(key)
        return ()

    def _observe_definition(
        self, kind: ResourceKind, change: Change[tuple[CompositeKind | None]]
    ) -> Iterable[CompositeKey]:
        del kind
        if change.before == change.after:
            return []
        touched = self._known.define(change)
        self.watch_anew()
        return [key for named in touched for key in self._following.of_kind(*named)]

    def _observe_composition(
        self, kind: ResourceKind, change: Change[Candidate]
    ) -> Iterable[CompositeKey]:
        del kind
        if change.before == change.after:
            return ()
        self._known.compose(change)
        return {*self._following.choosing(change.before, change.after)}

    def _observe_revision(
        self, kind: ResourceKind, change: Change[CachedCompositionRevision]
    ) -> Iterable[CompositeKey]:
        del kind
        if change.before == change.after:
            return ()
        lineages = self._known.revise(change)
        if change.before is None:
            self._following.revised(change.key.name)
        if not self._has_begun:
            return ()  # all keys are reconciled when the watches are synced
        told = [each for each in (change.before, change.after) if each is not None]
        for each in told:
            self._count("Composition", each.composition)
        targets = {each.target for each in told}
        moved = {
            key
            for before, after in lineages.values()
            for key in self._following.moved(targets, before, after)
        }
        objects = [each.obj for each in told]
        return moved | self._allowed(change.key.name, objects)

    def _allowed(self, revision: str, told: Sequence[Object]) -> set[CompositeKey]:
        """Return the keys to reconcile if a revision has got or lost the right to delete objects.

        `told` contains the revision before and after a change. If the change did not affect the
        annotation `polyver.dev/allow-deletion`, the result is empty.
        """
        said = [allowing(each["metadata"]) for each in told]
        return {*self._composing.allowed(revision)} if said[0] != said[-1] else set()

    def _observe_function(
        self, kind: ResourceKind, change: Change[Object]
    ) -> Iterable[CompositeKey]:
        del kind
        if change.before == change.after:
            return ()
        lineages = self._known.install(change)
        for name in lineages:
            self._count("Function", name)
        if change.after is None:
            self._calling.drop(change.key.name)
        stuck = self._calling.served(change.key.name, _endpoint(change.after))
        moved = {
            key
            for before, after in lineages.values()
            for key in self._following.calling(before, after)
        }
        told = [each for each in (change.before, change.after) if each is not None]
        return moved | stuck | self._allowed(change.key.name, told)

    # Reconciliation.

    async def reconcile(self, key: CompositeKey) -> Requeue | None:
        if not await self._is_synced():
            # Wait: before the watches are synced, an existing object would be treated as missing.
            return Requeue(_SOON)
        if self._report.is_for(key):
            return await self._report.report(key)
        try:
            with self._news.working(key):
                return await self._reconcile(key)
        finally:
            self._calling.settle(key)

    async def _is_synced(self) -> bool:
        """Wait for a short time until all watches are synced. Return whether they are synced."""
        for _ in range(_MOMENTS):
            if self.synced:
                self._has_begun = True
                return True
            await sleep(self._clock, _SOON)
        return False

    async def _reconcile(self, key: CompositeKey) -> Requeue | None:
        defined = self._known.defined(key.group, key.kind)
        kind = self._kinds.find(defined.api_version, key.kind) if defined is not None else None
        if defined is None or kind is None:
            return None  # no objects exist until the kind is served
        resource = GroupVersionResource.of(kind)
        found = await find(self._client, resource, key.name, key.namespace)
        if found is None:
            self._forget(key)
            return None
        self._news.note(key, number_of(found))
        work = Work(key, resource, defined, found, self._noted, self._waiting.add)
        return await self._composing.compose(work)

    def _noted(self, key: CompositeKey, before: Object, after: Object) -> None:
        """Record that this controller has written a composite resource.

        Wake the key if another client has changed the composite resource since it was read.
        """
        self._news.note(key, number_of(after))
        defined = self._known.defined(key.group, key.kind)
        if defined is not None and self._following.owner(after["metadata"]["uid"]) is not None:
            # Update the index immediately, before a watch reports the write. Decisions about
            # revisions need to know without delay which composite resources use a revision.
            self._put(key, state_of(read_composite(after, defined), number_of(after)))
        if others_in(before) != others_in(after):
            self._wake(key)


def _endpoint(revision: Object | None) -> str:
    if revision is None or revision["spec"].get("desiredState") != "Active":
        return ""
    return str(revision["status"]["endpoint"])
