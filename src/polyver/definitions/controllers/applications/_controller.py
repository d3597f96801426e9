"""The controller of applications.

It resolves the references of an application to versions, renders the objects of the application,
applies them, and reports their health in the status.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Mapping, Sequence
from functools import partial
from typing import Any

from polyver.client import (
    Backoff,
    Change,
    Client,
    Clock,
    Discovery,
    GroupVersionResource,
    Key,
    SystemClock,
    find,
    sleep,
    timestamp,
)
from polyver.controllers.controller import Controller, Requeue, Watch, exactly
from polyver.controllers.finalizers import has_finalizer, with_finalizer, without_finalizer
from polyver.controllers.owned_objects.inventory import (
    AppliedObject,
    Inventory,
    noted,
    part_of,
    unwanted,
)
from polyver.controllers.owned_objects.revert_backoff import RevertBackoff
from polyver.core import PolyverError
from polyver.core.plain import Object, ReadOnlyObject
from polyver.definitions.controllers.applications._apply import (
    ApplicationApplier,
    ApplicationApplyProblem,
    ApplicationApplyResult,
    ApplicationOutputs,
    part_in,
    problem_of,
)
from polyver.definitions.controllers.applications._dependents import (
    DefinitionUseIndex,
    published_in,
)
from polyver.definitions.controllers.applications._render import (
    DEADLINE,
    Renderer,
    RenderingTimeout,
)
from polyver.definitions.controllers.applications._revisions import (
    REVISIONS,
    ApplicationRecorder,
    DesiredApplication,
    MoveOptions,
    revision_in,
)
from polyver.definitions.controllers.applications._status import (
    MANAGER,
    RESOURCE,
    ApplicationState,
    ApplicationStatusWriter,
    applied_before,
    state_in,
)
from polyver.definitions.controllers.applications._trials import (
    PASSING,
    MoveTrial,
    MoveTrials,
    failed_moves,
    failure_of,
)
from polyver.definitions.cue import engines as all_engines
from polyver.definitions.kinds import DEFINITIONS, GROUP, VERSIONED
from polyver.definitions.moves import MoveTarget, failed_before
from polyver.definitions.names import APPLYING, RECORDED
from polyver.definitions.rendered_objects import Placed, UnknownKind, is_prunable, place_all
from polyver.definitions.rendering import Engines, Rendered
from polyver.definitions.status import (
    applied_fact,
    confirmed,
    failed_fact,
    holds,
    ready_fact,
    reason_of,
    rendered_fact,
    services_of,
    supported_fact,
)
from polyver.definitions.support import Unsupported
from polyver.definitions.uses import uses_of
from polyver.kube.objects.kinds import ResourceKind
from polyver.kube.objects.status import ApiError

__all__ = ["ApplicationController"]

_DEFINITIONS = [GroupVersionResource(GROUP, VERSIONED, kind.names.plural) for kind in DEFINITIONS]
_SOON, _LATER, _SLOW = 0.05, 60.0, 1.0
_GOING = frozenset({"Forbidden", "MethodNotAllowed", "NotFound"})
"""Reasons with which API servers refuse an object while the CRD of its kind is being deleted."""
_MOMENTS = 20
_SETTLING = 5.0
"""Seconds for which the controller waits until new watches report the applied objects.

After this time, it reads each object that no watch has reported.
"""
_POLLED = 10.0
"""Seconds between two reads of an object that is not watched."""


class ApplicationController(Controller[Key]):
    """Reconciles applications. A key is the namespace and name of one application."""

    name = "applications"
    workers = 8

    def __init__(
        self,
        client: Client,
        *,
        engines: Engines | None = None,
        deadline: float = DEADLINE,
        clock: Clock | None = None,
    ) -> None:
        self._client = client
        self._clock: Clock = clock or SystemClock()
        self._following = DefinitionUseIndex()
        self._telling = ApplicationStatusWriter(client, self._clock)
        self._recording = ApplicationRecorder(client, self._clock, self._following, self._telling)
        self._outputs = ApplicationOutputs(self._watch_other_kinds)
        there = engines if engines is not None else all_engines()
        self._renderer = Renderer(client, there, self._clock, deadline=deadline)
        self._applier = ApplicationApplier(client, self._outputs)
        self._keeping = Inventory(client, RESOURCE, MANAGER)
        self._patience = RevertBackoff[Key](
            self._clock, Backoff(first=1.0, most=300.0), quiet=600.0
        )
        self._kinds: dict[tuple[str, str], ResourceKind] = {}
        self._waiting: set[Key] = set()
        """Applications that rendered an object of a kind that the API server does not serve.

        They are reconciled after the next discovery, which may find this kind.
        """
        self._trials = MoveTrials(self._rendered_objects, self._recording, self._applier)
        self._retries = RevertBackoff[Key](
            self._clock, Backoff(first=60.0, most=3600.0), quiet=7200.0
        )
        """Back-off for retries of failed moves that may succeed although no input has changed."""
        self._due: set[Key] = set()
        """Applications that were in `_waiting` at the last discovery and must be reconciled.

        In this reconcile, the controller retries their failed moves, and reverts changes of other
        clients, without back-off.
        """
        self._patient_until = self._clock.time() + _SETTLING

    @property
    def counts(self) -> Mapping[str, int]:
        return {"rendered": self._renderer.count, "applied": self._applier.count}

    @property
    def watches(self) -> Sequence[Watch[Any, Key]]:
        followed = self._following
        definitions = [
            Watch(kinds=exactly(each), observe=followed.observe_definition, keep=published_in)
            for each in _DEFINITIONS
        ]
        applications = Watch(kinds=exactly(RESOURCE), observe=self._observe, keep=state_in)
        revisions = Watch(
            kinds=exactly(REVISIONS),
            observe=self._recording.revisions.observe,
            keep=revision_in,
            metadata=True,
        )
        return [*definitions, applications, revisions, self._outputs.watch()]

    def discovered(self, discovery: Discovery) -> Iterable[Key]:
        self._kinds = {(each.api_version, each.kind): each for each in discovery.kinds}
        waiting, self._waiting = self._waiting, set()
        self._due |= waiting
        return waiting

    def _watch_other_kinds(self) -> None:
        self.watch_anew()

    def _observe(self, kind: ResourceKind, change: Change[ApplicationState]) -> Iterable[Key]:
        del kind
        key, before, after = change.key, change.before, change.after
        if before == after:
            return ()
        self._following.use(key, before.uses if before else (), after.uses if after else ())
        if after is None:
            self._telling.forget(key)
            self._due.discard(key)
            return ()
        self._outputs.use({(part.group, part.kind) for part in after.parts})
        return () if self._telling.is_own_word(key, after) else (key,)

    async def reconcile(self, key: Key) -> Requeue | None:
        for _ in range(_MOMENTS):
            if self.synced:
                break
            await sleep(self._clock, _SOON)
        if not self.synced:
            # Wait: an object that the watches have not reported yet would be treated as missing.
            return Requeue(_SOON)
        found = await find(self._client, RESOURCE, key.name, key.namespace)
        if found is None:
            return None
        if "deletionTimestamp" in found["metadata"]:
            return await self._release(found, key)
        uses = uses_of(found)
        before = self._following.lineages(uses)
        wanted = await self._recording.wanted(found, key)
        if wanted is None:
            return None
        if wanted.options is not None and wanted.options.targets:
            result = await self._move(found, wanted.options, key)
        else:
            due = key in self._due
            self._due.discard(key)
            result = await self._bring(found, wanted, key, due=due)
        await self._recording.delete(self._recording.revisions.surplus(key), key)
        if self._following.lineages(uses) != before:
            # A rollout may have rolled a release back while the application moved to it. No watch
            # reports this, because the application did not use the release at that time.
            return Requeue(_SOON)
        return result

    # Moves.

    async def _move(self, found: Object, options: MoveOptions, key: Key) -> Requeue | None:
        """Move an application to the new releases that work for it.

        A release works if all objects of the application can be rendered and applied with it.
        References to a release that does not work keep their current release.
        """
        failed: Mapping[MoveTarget, ReadOnlyObject] = failed_before(
            found, options.targets, options.inputs
        )
        passing = any(each["reason"] in PASSING for each in failed.values())
        # Failed moves are retried if the API server serves new kinds, or if the back-off is over.
        again = key in self._due or (passing and not self._retries.left(key))
        again = again or len(failed) < len(options.targets)
        trial = MoveTrial()
        if again:
            self._due.discard(key)
            trial = await self._trials.best(found, options)
            now = timestamp(self._clock)
            failed = failed_moves(found, options, trial.failed, now=now)
        if trial.wanted is not None:
            wanted = self._recording.variant(found, options, trial.wanted.taken, failed)
            result = await self._apply(found, wanted, trial.placed, trial.unknown, key)
        else:
            result = await self._bring(
                found, self._recording.variant(found, options, (), failed), key
            )
        return self._sooner(result, failed, key, tried=again)

    def _sooner(
        self,
        result: Requeue | None,
        failed: Mapping[MoveTarget, ReadOnlyObject],
        key: Key,
        *,
        tried: bool,
    ) -> Requeue | None:
        """Return `result`, or an earlier requeue if a failed move must be retried earlier.

        `tried` is True if the moves were tried in this reconcile.
        """
        if not any(each["reason"] in PASSING for each in failed.values()):
            return result
        if tried:
            self._retries.spend(key)
        left = self._retries.left(key)
        return Requeue(min(left, result.after) if result is not None else left)

    async def _take_back(
        self,
        found: Object,
        wanted: DesiredApplication,
        problems: Sequence[ApplicationApplyProblem],
        key: Key,
    ) -> Requeue | None:
        """Let an application return to its earlier releases, after moves to new ones have failed.

        `problems` are the reasons for which the API server has refused objects of the new releases.
        They become the failed moves in the status.
        """
        options, failure = wanted.options, failure_of(problems)
        assert options is not None
        assert failure is not None
        failures = dict.fromkeys(options.targets, failure)
        failed = failed_moves(found, options, failures, now=timestamp(self._clock))
        stay = self._recording.variant(found, options, (), failed)
        return self._sooner(await self._bring(found, stay, key), failed, key, tried=True)

    async def _bring(
        self, found: Object, wanted: DesiredApplication, key: Key, *, due: bool = False
    ) -> Requeue | None:
        """Render and apply the desired state of an application, unless it is applied already.

        If another client has changed an applied object, polyver reverts the change after a
        back-off, or immediately if `due` is True.
        """
        before = found.get("status") or {}
        annotations = found["metadata"].get("annotations") or {}
        is_applied = wanted.digest == before.get("appliedDigest") == annotations.get(APPLYING)
        if is_applied and holds(before, supported_fact(())):
            applied = applied_before(found)
            await self._look(applied)
            if all(self._outputs.is_as_applied(each, key) for each in applied):
                return await self._tell_health(found, wanted, ApplicationApplyResult(applied))
            if not due and (left := self._patience.left(key)):
                return Requeue(left)
            self._patience.spend(key)
        rendering = asyncio.create_task(self._rendered(wanted))
        try:
            return await self._render(found, wanted, rendering, key)
        finally:
            rendering.cancel()

    # Rendering.

    async def _rendered_objects(
        self, wanted: DesiredApplication
    ) -> tuple[list[Placed], list[PolyverError]]:
        metadata = wanted.application["metadata"]
        key = Key(metadata["namespace"], metadata["name"])
        return self._placed(wanted, await self._rendered(wanted), key)

    async def _rendered(self, wanted: DesiredApplication) -> Rendered:
        name = wanted.revision["metadata"]["name"]
        return await self._renderer.render(wanted.application, wanted.resolutions, revision=name)

    async def _render(
        self, found: Object, wanted: DesiredApplication, rendering: asyncio.Task[Rendered], key: Key
    ) -> Requeue | None:
        done, _ = await asyncio.wait({rendering}, timeout=_SLOW)
        if not done:
            found = await self._hold(found)
            if not await self._recording.record(found, wanted, key):
                return Requeue(_SOON)
            found = await self._telling.tell(found, wanted.unproven_status(found))
        placed, errors = self._placed(wanted, await rendering, key)
        if any(not isinstance(each, UnknownKind) for each in errors):
            return await self._tell_unrendered(found, wanted, errors, key)
        return await self._apply(found, wanted, placed, errors, key)

    def _placed(
        self, wanted: DesiredApplication, rendered: Rendered, key: Key
    ) -> tuple[list[Placed], list[PolyverError]]:
        if rendered.errors:
            return [], [*rendered.errors]
        placed, errors = place_all(
            wanted.application, rendered.outputs, lambda *named: self._kinds.get(named)
        )
        if any(isinstance(each, UnknownKind) for each in errors):
            self._waiting.add(key)
        return placed, errors

    # Applying.

    async def _apply(
        self,
        found: Object,
        wanted: DesiredApplication,
        placed: Sequence[Placed],
        unknown: Sequence[PolyverError],
        key: Key,
    ) -> Requeue | None:
        parts = [part_of(each.object) for each in placed]
        before = sorted({*noted(found), *map(part_in, applied_before(found))})
        # Record the objects before they are applied: polyver deletes only objects that it has
        # recorded.
        found = await self._hold(found, [*before, *parts], wanted.digest)
        # A move is recorded only after it has succeeded. So the newest ApplicationRevision always
        # describes objects that were applied.
        if not wanted.taken and not await self._recording.record(found, wanted, key):
            return Requeue(_SOON)
        applied = await self._applier.apply(found, placed)
        if any(each.reason in _GOING for each in applied.problems):
            # The kind may have been removed since the last discovery. The next discovery shows
            # this.
            rendered = [each.object for each in placed]
            if not all((obj["apiVersion"], obj["kind"]) in self._kinds for obj in rendered):
                return Requeue(_SOON)
            self._waiting.add(key)
        if wanted.taken and failure_of(applied.problems) is not None:
            return await self._take_back(found, wanted, applied.problems, key)
        await self._recording.record(found, wanted, key)
        applied.problems += [ApplicationApplyProblem("NotServed", str(each)) for each in unknown]
        if not applied.problems:
            left = await self._prune(found, unwanted(before, parts), applied)
            found = await self._hold(found, [*parts, *left], wanted.digest)
        if applied.problems:
            return await self._tell_unapplied(found, wanted, applied)
        return await self._tell_health(found, wanted, applied, anew=True)

    async def _prune(
        self, found: Object, parts: Sequence[AppliedObject], applied: ApplicationApplyResult
    ) -> list[AppliedObject]:
        """Delete the objects `parts`, which are no longer rendered.

        Return the objects that could not be deleted, and add the errors to `applied.problems`.
        """
        left = []
        for part in parts:
            try:
                kept = await self._keeping.remove(part, partial(is_prunable, application=found))
            except ApiError as error:
                label = f"{part.kind} {'/'.join(filter(None, (part.namespace, part.name)))}"
                applied.problems.append(problem_of(label, error))
                kept = part
            if kept is not None:
                left.append(kept)
        return left

    async def _hold(
        self, found: Object, parts: Sequence[AppliedObject] | None = None, digest: str = ""
    ) -> Object:
        """Add the finalizer to an application, and write the list of its objects to an annotation.

        `parts` are the objects that polyver is going to apply; if it is None, the list stays
        unchanged. `digest` is written to the annotation `APPLYING` unless it is empty.
        """
        return await self._keeping.note(
            found,
            parts if parts is not None else noted(found),
            annotations={APPLYING: digest} if digest else {},
            finalizers=with_finalizer(found, RECORDED),
        )

    async def _release(self, found: Object, key: Key) -> Requeue | None:
        """Delete the objects and revisions of a deleted application. Then remove its finalizer.

        This function deletes only the objects in other namespaces. The application owns the objects
        in its own namespace, so garbage collection deletes them.
        """
        if not has_finalizer(found, RECORDED):
            return None
        parts = {*noted(found), *map(part_in, applied_before(found))}
        elsewhere = [each for each in sorted(parts) if each.namespace != key.namespace]
        applied = ApplicationApplyResult()
        if not has_finalizer(found, "orphan"):
            await self._prune(found, elsewhere, applied)
        if applied.problems:
            facts = [failed_fact("Applied", applied.problems[0].reason, applied.problems)]
            status = self._telling.with_conditions(found.get("status") or {}, facts, found)
            await self._telling.tell(found, status)
            return Requeue(_LATER)
        await self._recording.delete_all(found, key)
        rest = without_finalizer(found, RECORDED)
        await self._keeping.note(found, noted(found), finalizers=rest)
        return None

    # Status.

    async def _look(self, applied: Sequence[Object]) -> None:
        """Read each applied object whose kind is not watched, and record it in the index.

        Shortly after the start of the controller, wait for the watch of the kind first.
        """
        for each in applied:
            part = part_in(each)
            while self._outputs.of(part) is None and self._clock.time() < self._patient_until:
                if self._outputs.is_followed(part):
                    break
                await sleep(self._clock, _SOON)
            kind = self._kinds.get((each["apiVersion"], each["kind"]))
            if kind is not None and not self._outputs.is_followed(part):
                resource = GroupVersionResource.of(kind)
                try:
                    obj = await find(self._client, resource, part.name, part.namespace)
                except ApiError as error:
                    if error.code != 403:
                        raise
                    continue  # reading is not allowed: keep the last observed state
                self._outputs.note(part, obj)

    async def _tell_health(
        self,
        found: Object,
        wanted: DesiredApplication,
        applied: ApplicationApplyResult,
        *,
        anew: bool = False,
    ) -> Requeue | None:
        """Set the status after all objects were applied. The status includes their health."""
        resources = applied.resources
        services = services_of(wanted.application, resources, self._outputs.health)
        facts = [supported_fact(())]
        facts += [rendered_fact(len(resources)), applied_fact(len(resources), applied.taken_back)]
        if not anew:
            facts = [confirmed(wanted.status, each) for each in facts]
        status = {
            **wanted.status,
            "status": "running",
            "services": services,
            "appliedResources": [*resources],
            "appliedDigest": wanted.digest,
        }
        facts.append(ready := ready_fact(services))
        await self._telling.tell(found, self._telling.with_conditions(status, facts, found))
        waiting = wanted.options is not None and wanted.options.choice.is_waiting
        if not applied.is_over or (waiting and ready.status == "True"):
            return Requeue(_SOON)
        if not all(self._outputs.is_followed(part_in(each)) for each in resources):
            return Requeue(_POLLED)
        # The end of the rollout for which a move waits is not reported for this application.
        return Requeue(_LATER) if waiting else None

    async def _tell_unrendered(
        self, found: Object, wanted: DesiredApplication, errors: Sequence[PolyverError], key: Key
    ) -> Requeue | None:
        """Set the status after a rendering error.

        polyver does not change the objects that it has applied before.
        """
        found = await self._hold(found)
        if not await self._recording.record(found, wanted, key):
            return Requeue(_SOON)
        facts = [failed_fact(kind, reason_of(errors[0]), errors) for kind in ("Rendered", "Ready")]
        # After a timeout, it is unknown whether all fields are supported.
        if not any(isinstance(each, RenderingTimeout) for each in errors):
            facts.append(supported_fact(errors))
        # With unsupported fields no object is applied, but the status reports the resolved
        # versions.
        refused = any(isinstance(each, Unsupported) for each in errors)
        status = {
            **(wanted.status if refused else wanted.unproven_status(found)),
            "status": "failed",
        }
        await self._telling.tell(found, self._telling.with_conditions(status, facts, found))
        return (
            Requeue(_LATER) if any(isinstance(each, RenderingTimeout) for each in errors) else None
        )

    async def _tell_unapplied(
        self, found: Object, wanted: DesiredApplication, applied: ApplicationApplyResult
    ) -> Requeue:
        problems, reason = applied.problems, applied.problems[0].reason
        facts = [supported_fact(()), rendered_fact(len(applied.resources) + len(problems))]
        facts += [failed_fact(kind, reason, problems) for kind in ("Applied", "Ready")]
        status = {**wanted.status, "status": "failed"}
        await self._telling.tell(found, self._telling.with_conditions(status, facts, found))
        passing = next((each.error for each in problems if each.error is not None), None)
        if passing is not None:
            raise passing
        return Requeue(_LATER)
