"""Reconciliation of one composite resource, from the choice of its revisions to its status.

A *combination* is a CompositionRevision, with the FunctionRevision that each of its pipeline steps
calls. A composite resource *moves* when it begins to use another combination.

Each part of the reconciliation can be repeated: after an interruption, the next reconcile continues
from the objects that are stored on the API server.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, Final

from polyver.capability import Refusal
from polyver.client import Backoff, Client, Clock, GroupVersionResource, chance, find, precondition
from polyver.compositions.controllers.composites._apply import (
    MANAGER,
    CompositeApplier,
    CompositeApplyProblem,
    CompositeApplyResult,
    publish,
)
from polyver.compositions.controllers.composites._candidates import CompositionCache
from polyver.compositions.controllers.composites._known_composites import (
    Combination,
    CompositeKey,
    FailedMoves,
    others_in,
)
from polyver.compositions.controllers.composites._observed_state import (
    ComposedOutputs,
    CompositeObserver,
    Kinds,
    Observation,
    RequiredResourceReader,
)
from polyver.compositions.controllers.composites._pipeline_run import (
    CompositeLimits,
    PipelineCalls,
    RevisionCaller,
    drive,
    hide_found,
    hide_run,
    masked_error,
    masked_outcome,
)
from polyver.compositions.controllers.composites._status import (
    CompositeStatusWriter,
    is_healthy,
    is_paused,
    is_synced,
)
from polyver.compositions.controllers.compositions import COMPOSITIONS
from polyver.compositions.controllers.packages import FUNCTION_REVISIONS, FUNCTIONS
from polyver.compositions.decisions import (
    Composite,
    CompositeKind,
    FunctionLineages,
    ResolvedStep,
    Secret,
    ask_steps,
    choose_composition,
    choose_revision,
    composition_of,
    read_composite,
    references_patch,
    resolve_steps,
)
from polyver.compositions.messages import Requirements
from polyver.compositions.names import CROSSPLANE_HOLDS
from polyver.compositions.packages import calls_in
from polyver.compositions.pipeline import (
    NOT_SERVED,
    QUARANTINED,
    FailedCompositeMove,
    FoundRequirements,
    PipelineEvent,
    PipelineOutcome,
    allows_deletion,
    conclude,
    failed_move_in,
    joined,
    lost_objects,
    published_details,
    published_to,
    refused,
    secrets_of,
    start,
    updated_fact,
    without,
    would_delete,
)
from polyver.controllers.controller import Requeue
from polyver.controllers.finalizers import remove_finalizer
from polyver.controllers.owned_objects.revert_backoff import RevertBackoff
from polyver.core import Exact, Pin, Release, Resolution
from polyver.core.plain import Object
from polyver.core.rollout import waiting_moves
from polyver.kube.objects import digest
from polyver.kube.objects.masking import Masks
from polyver.kube.objects.status import ApiError

__all__ = ["Composer", "PipelineRunResult", "ResolvedPipeline", "Work", "recorded_calls"]

_PASSING: Final = (404, 408, 409, 429)
_UNSERVED: Final = "KindNotServed"
_WAITING: Final = 1.0
"""Seconds until a healthy composite resource with a waiting move is reconciled again."""


@dataclass(slots=True)
class Work:
    """The composite resource that is being reconciled, and the state of this reconcile."""

    key: CompositeKey
    resource: GroupVersionResource
    defined: CompositeKind
    found: Object
    """The composite resource in the state in which this reconcile last read or wrote it."""
    noted: Callable[[CompositeKey, Object, Object], None]
    """Callback for each write of the composite resource. It gets the object before and after the
    write.
    """
    wait: Callable[[CompositeKey], None]
    """Callback that requests another reconcile of the key when the set of served kinds changes."""
    warnings: list[str] = field(default_factory=list)
    masks: Masks = field(default_factory=Masks)
    """Values of Secrets, which must not appear in messages."""

    @property
    def composite(self) -> Composite:
        return read_composite(self.found, self.defined)

    def wrote(self, after: Object) -> None:
        if after is not self.found:
            self.noted(self.key, self.found, after)
            self.found = after


@dataclass(frozen=True, slots=True)
class ResolvedPipeline:
    """A combination that was resolved for one run of the pipeline."""

    revision: Object
    steps: tuple[ResolvedStep, ...]
    secret: Secret | None
    """Secret to which the connection details of the composite resource are published."""

    @property
    def name(self) -> str:
        return str(self.revision["metadata"]["name"])

    @property
    def revisions(self) -> set[str]:
        return {step.revision for step in self.steps}

    @property
    def calls(self) -> dict[str, str]:
        """Names of the function revisions, by pipeline step."""
        return {step.name: step.revision for step in self.steps}

    @property
    def combination(self) -> Combination:
        return (self.name, *(step.revision for step in self.steps))


@dataclass(frozen=True, slots=True)
class _Turn:
    """The revisions to which a composite resource may move now."""

    target: str
    """The name of the CompositionRevision to which the composite resource may move."""
    installed: FunctionLineages
    waiting: frozenset[str] = frozenset()
    """Revisions of other rollouts, to which the composite resource moves later."""


@dataclass(frozen=True, slots=True)
class PipelineRunResult:
    """Result of one run of a pipeline."""

    there: Observation
    outcome: PipelineOutcome
    silent: str
    """The function revision that did not answer. Empty if all function revisions answered."""


class Composer:
    """Reconciles composite resources, with the caches and the state that all reconciles share."""

    def __init__(
        self,
        client: Client,
        clock: Clock,
        *,
        known: CompositionCache,
        kinds: Kinds,
        outputs: ComposedOutputs,
        calling: RevisionCaller,
        telling: CompositeStatusWriter,
        several: bool,
        limits: CompositeLimits,
    ) -> None:
        self._client = client
        self._known = known
        self._calling = calling
        self._telling = telling
        self._several = several
        self._limits = limits
        self._looking = RequiredResourceReader(client, kinds)
        self._observing = CompositeObserver(client, kinds, outputs)
        self._applier = CompositeApplier(client, kinds, outputs, clock)
        self._clock = clock
        self._moves = FailedMoves(clock, seconds=limits.resync)
        self._failures: dict[CompositeKey, int] = {}
        self._silent: dict[CompositeKey, float] = {}
        """For each composite resource: the time of the first call without an answer, if a function
        of the combination in use does not answer.
        """
        self._since: dict[CompositeKey, float] = {}
        """For each composite resource: the time of the first failure, if a function of the
        combination to move to does not answer.
        """
        self._tries: dict[CompositeKey, int] = {}
        """For each composite resource: the number of tries to move in which a function did not
        answer.
        """
        # After a run has changed objects, the composite resource is reconciled again immediately.
        # The back-off limits the rate if each reconcile makes another change.
        again = Backoff(first=0.01, most=60.0, factor=3.0)
        self._again = RevertBackoff[CompositeKey](clock, again, quiet=30.0)
        self._runs = 0

    @property
    def counts(self) -> Mapping[str, int]:
        return {"runs": self._runs, "applied": self._applier.count}

    def forget(self, key: CompositeKey) -> None:
        self._failures.pop(key, None)
        self._silent.pop(key, None)
        self._moves.forget(key)
        self._since.pop(key, None)
        self._tries.pop(key, None)
        self._applier.forget(key)
        self._calling.forget(key)
        self._telling.forget(key)

    def allowed(self, revision: str) -> Iterable[CompositeKey]:
        """Return the keys to reconcile after a revision was allowed to delete objects."""
        return self._moves.allowed(revision)

    async def compose(self, work: Work) -> Requeue | None:
        """Reconcile a composite resource; return when to reconcile it again."""
        if is_paused(work.found):
            work.wrote(await self._telling.paused(work.resource, work.found))
            return None
        if "deletionTimestamp" in work.found["metadata"]:
            await self._release(work)
            return None
        try:
            composition, target = self._choose(work)
            pinned = self._pinned(work, composition)
            if pinned:
                turn = await self._turn(work, composition, target, pinned)
                result = await self._move(work, composition, turn, pinned)
                return self._soon(result) if turn.waiting and is_healthy(work.found) else result
            await self._refer(work, composition, target)
            resolved = await self.resolved(work, target, self._known.installed)
            self.check_served(work, resolved.steps)
            return await self._compose(work, resolved, None)
        except Refusal as error:
            refusal = error
        except ApiError as error:
            if error.code >= 500 or error.code in _PASSING:
                raise masked_error(error, work.masks) from None
            refusal = Refusal(error.reason or "Refused", error.message)
        if refusal.reason == NOT_SERVED and self._may_be_starting(work):
            return self._retry(work.key)
        return await self._failed(work, refused(refusal))

    async def _release(self, work: Work) -> None:
        """Remove Crossplane's finalizer from a composite resource that is being deleted.

        The composite resource owns its composed resources, so garbage collection deletes them.
        """
        if not work.found["metadata"].get("finalizers"):
            return
        work.wrote(await self._telling.deleting(work.resource, work.found))
        await remove_finalizer(self._client, work.resource, work.found, CROSSPLANE_HOLDS)

    async def _compose(
        self, work: Work, resolved: ResolvedPipeline, failed: FailedCompositeMove | None
    ) -> Requeue | None:
        """Run the pipeline with one combination. Apply the result, or report the failure.

        If a move to another combination has failed before, `failed` is this failed move. It is
        reported too.
        """
        input_of = self._input_of(work, resolved)
        quarantined, left = self._calling.quarantined(work.key, resolved.revisions, input_of)
        if quarantined:
            return Requeue(left)
        ran = await self.run(work, resolved)
        if ran is None:
            return None
        if ran.silent and self._may_be_starting(work):
            return self._retry(work.key)
        outcome = replace(ran.outcome, updated=updated_fact(work.found, failed))
        if outcome.failure is not None:
            quarantined, _ = self._calling.quarantined(work.key, resolved.revisions, input_of)
            return await self._failed(work, _quarantined(outcome, quarantined))
        result = await self._perform(work, resolved, ran.there, outcome)
        return self._sooner(work, result) if failed is not None and failed.passes else result

    async def run(self, work: Work, resolved: ResolvedPipeline) -> PipelineRunResult | None:
        """Run a pipeline. Return None if the concurrency limit of a function revision is reached.

        After None, the key is reconciled again as soon as the limit allows a call.
        """
        if not await self._calling.enter(work.key, resolved.revisions):
            return None
        asking = PipelineCalls(self._calling, self._clock, work.key, self._input_of(work, resolved))
        try:
            credentials = await self._observing.credentials(secrets_of(resolved.steps))
            there = await self._observing.observe(work.composite, resolved.secret)
            run = start(there.state, resolved.steps, credentials)
            hide_run(work.masks, run)
            self._runs += 1
            run = await drive(run, asking.ask, partial(self._look, work))
        finally:
            self._calling.leave(work.key, resolved.revisions, asking)
        hide_run(work.masks, run)
        return PipelineRunResult(there, masked_outcome(conclude(run), work.masks), asking.silent)

    def is_quarantined(self, work: Work, resolved: ResolvedPipeline) -> bool:
        """Report whether a function must not be called, because it exits or hangs with the input.

        It is called again after a back-off.
        """
        input_of = self._input_of(work, resolved)
        return bool(self._calling.quarantined(work.key, resolved.revisions, input_of)[0])

    async def _look(self, work: Work, wanted: Requirements) -> FoundRequirements:
        found = await self._looking.look(wanted)
        hide_found(work.masks, found)
        return found

    def _input_of(self, work: Work, resolved: ResolvedPipeline) -> Callable[[], str]:
        return lambda: digest([*others_in(work.found), resolved.name])

    # Moves to other combinations.

    def _pinned(self, work: Work, composition: str) -> str:
        """Return the name of the CompositionRevision in use.

        It is empty if the composite resource was never composed, or if the revision no longer
        matches the Composition and the labels that the composite resource requests.
        """
        composite = work.composite
        if not recorded_calls(work.found):
            return ""
        fits = self._known.is_revision(composite.revision, composition, composite.revision_labels)
        return composite.revision if fits else ""

    async def _turn(self, work: Work, composition: str, target: str, pinned: str) -> _Turn:
        """Find the revisions to which the composite resource may move now.

        A composite resource takes part in one rollout at a time. The moves of other rollouts wait
        until it is healthy after the first move.
        """
        installed, lineage = self._known.installed, self._known.lineage(composition)
        has_gates = installed.has_gates or any(each.gate for each in lineage)
        revision = await self._known.content(pinned) if has_gates else None
        if revision is None:
            return _Turn(target, installed)
        used = lineage.get(pinned)
        chosen = [(used.pin if used is not None else None, lineage.get(target))]
        chosen += [
            (each.used, each.answer.release)
            for each in ask_steps(revision, work.composite, installed, several=self._several)
            if isinstance(each.answer, Resolution) and not isinstance(each.selector, Exact)
        ]
        waiting = _waiting(work.found, chosen)
        if not waiting:
            return _Turn(target, installed)
        here = pinned if target in waiting else target
        return _Turn(here, self._known.installed_without(waiting), frozenset(waiting))

    async def _move(self, work: Work, composition: str, turn: _Turn, pinned: str) -> Requeue | None:
        """Compose with the first combination that works, in this order:

        - the target revision with the current function revisions,
        - the CompositionRevision in use with the current function revisions,
        - the combination in use.

        A combination that fails, or that would delete objects, changes nothing on the API server.
        """
        recorded, target, now = recorded_calls(work.found), turn.target, turn.installed
        then, installed_now = self._known.installed_as([*recorded.values()]), self._known.installed
        failed: FailedCompositeMove | None = None
        tried: set[Combination] = set()
        for name, installed in ((target, now), (pinned, now), (pinned, then)):
            try:
                resolved = await self.resolved(work, name, installed)
            except Refusal as refusal:
                if target == pinned and not tried:
                    raise  # there is no other combination to try
                failed = failed or FailedCompositeMove(name, refusal.reason, str(refusal))
                continue
            if resolved.combination in tried:
                continue
            tried.add(resolved.combination)
            if name == pinned and resolved.calls == recorded:
                self.check_served(work, resolved.steps)
                if failed is not None and failed.passes and self._is_early(work.key):
                    return self._sooner(work, await self._compose(work, resolved, None))
                result = await self._compose(work, resolved, failed)
                return result if failed is None else self._current(result, installed_now)
            found = await self._taken(work, composition, resolved, pinned)
            if not isinstance(found, FailedCompositeMove):
                return found
            failed = failed or found
        assert failed is not None
        return self._current(await self._stay(work, failed), installed_now)

    async def _taken(
        self, work: Work, composition: str, resolved: ResolvedPipeline, pinned: str
    ) -> Requeue | FailedCompositeMove | None:
        """Try to move to a combination.

        Apply its result, or return the reason why the move failed.
        """
        given, installed = self._input_of(work, resolved)(), self._known.installed
        known = self._moves.get(work.key, resolved.combination, given)
        if known is not None:
            return known
        found = await self._tried(work, resolved, pinned)
        if isinstance(found, FailedCompositeMove):
            self._moves.note(work.key, resolved.combination, given, found)
            return found
        self._moves.forget(work.key)
        self._since.pop(work.key, None)
        self._tries.pop(work.key, None)
        await self._refer(work, composition, resolved.name)
        outcome = replace(found.outcome, updated=updated_fact(work.found, None))
        result = await self._perform(work, resolved, found.there, outcome)
        return self._current(result, installed)

    def _current(self, result: Requeue | None, installed: FunctionLineages) -> Requeue | None:
        """Return `result`.

        If function revisions have changed meanwhile, return an immediate requeue instead.

        The requeue is needed because no watch causes a reconcile: the index of composite resources
        contains only the revisions in their status.
        """
        return result if self._known.installed is installed else Requeue(0.0)

    async def _tried(
        self, work: Work, resolved: ResolvedPipeline, pinned: str
    ) -> PipelineRunResult | FailedCompositeMove:
        """Run a new combination without applying the result. Return the run, or the failed move."""
        release = self._new_in(work, resolved, pinned)
        try:
            self.check_served(work, resolved.steps)
            if self.is_quarantined(work, resolved):
                fact = "its function does not answer"
                return FailedCompositeMove(release, QUARANTINED, fact, True)
            ran = await self.run(work, resolved)
        except Refusal as refusal:
            passes = refusal.reason == NOT_SERVED
            return FailedCompositeMove(release, refusal.reason, str(refusal), passes)
        if ran is None:
            return FailedCompositeMove(release, "Busy", "its function is overloaded", True)
        failure = ran.outcome.failure
        if failure is not None:
            return FailedCompositeMove(release, failure.reason, failure.message, bool(ran.silent))
        lost = lost_objects(work.found, ran.outcome)
        if lost and not await self._allows_deletion(work, resolved, pinned):
            before = await self._as_before(work, pinned)
            lost = lost_objects(work.found, ran.outcome, before)
            if lost:
                return would_delete(release, lost)
        return ran

    async def _as_before(self, work: Work, pinned: str) -> PipelineOutcome | None:
        """Run the combination in use, and return its outcome.

        Return None if a function of the combination cannot be called, or if the run fails.
        """
        then = self._known.installed_as([*recorded_calls(work.found).values()])
        try:
            resolved = await self.resolved(work, pinned, then)
            self.check_served(work, resolved.steps)
            ran = await self.run(work, resolved)
        except Refusal:
            return None
        return ran.outcome if ran is not None and ran.outcome.failure is None else None

    def _new_in(self, work: Work, resolved: ResolvedPipeline, pinned: str) -> str:
        """Return the names of the new revisions of a combination as one string, for messages.

        New revisions are those that the combination in use does not have.
        """
        recorded = recorded_calls(work.found)
        found = [resolved.name] if resolved.name != pinned else []
        found += [name for step, name in resolved.calls.items() if recorded.get(step) != name]
        return joined(found)

    async def _allows_deletion(self, work: Work, resolved: ResolvedPipeline, pinned: str) -> bool:
        """Report whether the move to a combination may delete objects.

        The move may delete objects if the annotation `polyver.dev/allow-deletion` is set on a new
        revision, or on its Composition or Function. It may also delete objects if a rollout takes
        back a revision in use, because that revision may have composed objects that no other
        revision composes.
        """
        recorded = recorded_calls(work.found)
        if self._is_taken_back(work, resolved, pinned):
            return True
        if resolved.name != pinned:
            name = composition_of(resolved.revision)
            whole = await find(self._client, COMPOSITIONS, name)
            if any(allows_deletion(each) for each in (resolved.revision, whole)):
                return True
        for step in resolved.steps:
            if recorded.get(step.name) != step.revision:
                revision = await find(self._client, FUNCTION_REVISIONS, step.revision)
                whole = await find(self._client, FUNCTIONS, step.function)
                if any(allows_deletion(each) for each in (revision, whole)):
                    return True
        return False

    def _is_taken_back(self, work: Work, resolved: ResolvedPipeline, pinned: str) -> bool:
        """Report whether a rollout takes back a revision in use that the combination replaces."""
        left = []
        if resolved.name != pinned:
            left.append(self._known.lineage(composition_of(resolved.revision)).get(pinned))
        recorded = recorded_calls(work.found)
        for step in resolved.steps:
            used = recorded.get(step.name, step.revision)
            if used != step.revision:
                left.append(self._known.installed.lineage(step.function).get(used))
        return any(
            each is not None and each.gate is not None and each.gate.returns for each in left
        )

    async def _stay(self, work: Work, failed: FailedCompositeMove) -> Requeue:
        """Report a failed move. The composed resources are not changed.

        This function is used if the functions of the combination in use also cannot be called.
        """
        if failed.passes and self._is_early(work.key):
            return self._retry(work.key)
        masked = replace(failed, message=work.masks.mask(failed.message))
        updated = updated_fact(work.found, masked)
        assert updated is not None
        event = PipelineEvent("Warning", updated.reason, updated.message)
        if is_synced(work.found):
            work.wrote(await self._telling.stayed(work.resource, work.found, updated))
            await self._tell_events(work, [event], ())
        else:
            # The latest changes of the user have not been composed. So Synced must become False
            # too.
            refusal = Refusal(failed.reason, updated.message)
            await self._failed(work, replace(refused(refusal), updated=updated))
        return self._retry(work.key) if failed.passes else Requeue(self._limits.resync)

    def _is_early(self, key: CompositeKey) -> bool:
        """Report whether functions of the new combination may still be starting."""
        now = self._clock.time()
        return now - self._since.setdefault(key, now) < self._limits.quiet

    @staticmethod
    def _soon(result: Requeue | None) -> Requeue:
        """Return the requeue of a healthy composite resource that has a waiting move."""
        return Requeue(_WAITING if result is None else min(result.after, _WAITING))

    def _sooner(self, work: Work, result: Requeue | None) -> Requeue:
        """Return the requeue after a try to move in which a function did not answer.

        The back-off grows with these tries, although the functions in use answer.
        """
        tries = self._tries[work.key] = self._tries.get(work.key, 0) + 1
        after = self._limits.backoff.delay(tries, spread=chance())
        return Requeue(after if result is None else min(result.after, after))

    # Resolution.

    def _choose(self, work: Work) -> tuple[str, str]:
        """Return the names of the Composition and of the CompositionRevision to use."""
        composite, defined = work.composite, work.defined
        names = composite.composition, defined.enforced, defined.default
        chosen = choose_composition(composite, defined, self._known.candidates(defined, *names))
        known = self._known.revisions(chosen.composition, composite.revision)
        found = choose_revision(composite, chosen.composition, known)
        work.warnings = [*chosen.warnings, *found.warnings]
        return chosen.composition, found.release.name

    async def resolved(
        self, work: Work, name: str, installed: FunctionLineages
    ) -> ResolvedPipeline:
        """Read a CompositionRevision, and resolve each of its steps to an installed revision.

        Raise Refusal if the CompositionRevision was deleted, or if a step cannot be resolved.
        """
        composite, defined = work.composite, work.defined
        revision = await self._known.content(name)
        if revision is None:
            fact = f"revision {name} has just been deleted"
            raise Refusal("RevisionNotFound", fact, at=f"{composite.at}.compositionRevisionRef")
        steps = resolve_steps(revision, composite, installed, several=self._several)
        # Only composite resources of the scope LegacyCluster have a connection Secret.
        secret = published_to(composite, revision) if defined.legacy else None
        return ResolvedPipeline(revision, steps, secret)

    async def _refer(self, work: Work, composition: str, revision: str) -> None:
        """Write references to the chosen Composition and revision to the spec.

        The references are written before the Composition and the revision are used.
        """
        change = references_patch(work.composite, composition, revision)
        if change:
            # Send the resourceVersion, because the user may have changed these references
            # meanwhile.
            metadata = {**change.get("metadata", {}), **precondition(work.found)}
            await self._patch(work, {**change, "metadata": metadata})

    async def _patch(self, work: Work, change: dict[str, Any]) -> None:
        key = work.key
        work.wrote(
            await self._client.patch(
                work.resource, key.name, key.namespace, change=change, manager=MANAGER
            )
        )

    def check_served(self, work: Work, steps: Iterable[ResolvedStep]) -> None:
        for step in steps:
            if not step.endpoint:
                self._calling.stick(work.key, step.revision)
                fact = f'{step.revision}, which step "{step.name}" calls, is not served yet'
                hint = "it continues as soon as it is; see the status of the FunctionRevision"
                raise Refusal(NOT_SERVED, fact, hint=hint)

    # Results.

    async def _perform(
        self,
        work: Work,
        resolved: ResolvedPipeline,
        there: Observation,
        outcome: PipelineOutcome,
    ) -> Requeue | None:
        removed = await self._applier.remove(work.found, outcome.remove)
        references = [*outcome.references, *removed.kept]
        if references != [*work.composite.resources]:
            very = {"uid": work.found["metadata"]["uid"]}
            await self._patch(
                work, {**work.composite.written(resourceRefs=references), "metadata": very}
            )
        applied = await self._applier.apply(work.key, work.found, outcome.apply, there.objects)
        outcome = without([each.name for each in applied.problems if each.taken], outcome)
        applied.problems += removed.problems
        applied.changed |= bool(outcome.remove)
        published = await self._publish(work, resolved, outcome, applied)
        applied.problems = [
            replace(each, message=work.masks.mask(each.message)) for each in applied.problems
        ]
        try:
            told = await self._telling.composed(
                work.resource,
                work.found,
                outcome,
                [str(each) for each in applied.problems],
                published=published,
            )
        except ApiError as error:
            if not _is_invalid(error):
                raise
            refusal = Refusal("InvalidStatus", error.message, at="status")
            # Keep in the status the revisions that composed the existing objects.
            made = {"pipeline": outcome.status["pipeline"]}
            return await self._failed(work, replace(refused(refusal), status=made))
        work.wrote(told)
        await self._tell_events(work, outcome.events, applied.problems)
        return self._next(work, outcome, applied)

    async def _publish(
        self,
        work: Work,
        resolved: ResolvedPipeline,
        outcome: PipelineOutcome,
        applied: CompositeApplyResult,
    ) -> bool:
        if resolved.secret is None:
            return False
        details = published_details(outcome, work.defined)
        try:
            return await publish(self._client, work.found, resolved.secret, details)
        except Refusal as refusal:
            reason, message = refusal.reason, str(refusal)
        except ApiError as error:
            reason, message = error.reason or "Refused", f"{resolved.secret}: {error.message}"
        applied.problems.append(CompositeApplyProblem("connection details", reason, message))
        return False

    def _next(self, work: Work, outcome: PipelineOutcome, applied: CompositeApplyResult) -> Requeue:
        key = work.key
        if any(each.unserved for each in applied.problems):
            work.wait(key)
        if applied.problems:
            return self._retry(key)
        self._failures.pop(key, None)
        self._silent.pop(key, None)
        after = self._limits.resync
        if outcome.ttl is not None:
            after = min(after, max(outcome.ttl, self._limits.shortest))
        after *= 1 + chance() / 10  # jitter: spreads keys that were reconciled together
        if applied.later:
            after = min(after, applied.later)
        if applied.changed:
            self._again.spend(key)
            after = min(after, self._again.left(key))
        return Requeue(after)

    def _retry(self, key: CompositeKey) -> Requeue:
        failures = self._failures[key] = self._failures.get(key, 0) + 1
        return Requeue(self._limits.backoff.delay(failures, spread=chance()))

    def _may_be_starting(self, work: Work) -> bool:
        """Report whether a function that does not answer may still be starting.

        This is the case if the composite resource is synced, and if the time without an answer is
        still short.
        """
        now = self._clock.time()
        since = self._silent.setdefault(work.key, now)
        return now - since < self._limits.quiet and is_synced(work.found)

    async def _failed(self, work: Work, outcome: PipelineOutcome) -> Requeue:
        outcome = masked_outcome(outcome, work.masks)
        assert outcome.failure is not None
        if outcome.failure.reason == _UNSERVED:
            work.wait(work.key)
        work.wrote(await self._telling.failed(work.resource, work.found, outcome))
        await self._tell_events(work, outcome.events, ())
        return self._retry(work.key)

    async def _tell_events(
        self, work: Work, events: Iterable[PipelineEvent], problems: Iterable[CompositeApplyProblem]
    ) -> None:
        told = [PipelineEvent("Warning", "ComposeResources", each) for each in work.warnings]
        told += [PipelineEvent("Warning", each.reason, str(each)) for each in problems]
        await self._telling.events(work.key, work.found, [*told, *events])


def _waiting(found: Object, chosen: Iterable[tuple[Pin | None, Release | None]]) -> set[str]:
    """Return the revisions to which a composite resource moves later.

    Each pair in `chosen` is a revision in use, and the release that would replace it now.
    """
    failed = failed_move_in(found)
    left_out = failed.revisions if failed is not None else ()
    unsettled, moving = [], []
    for used, release in chosen:
        if used is None or release is None or release.gate is None:
            continue
        if used == release.pin:
            unsettled += [] if is_healthy(found) else [release.gate.rollout]
        elif release.name not in left_out:
            moving.append((release.name, release.gate.rollout))
    return waiting_moves(moving, unsettled)


def recorded_calls(found: Object) -> dict[str, str]:
    """Return the function revision that each step called when the resource was last composed."""
    return {each.step: each.pin.release for each in calls_in(found)}


def _quarantined(outcome: PipelineOutcome, revision: str) -> PipelineOutcome:
    """Return the outcome of a failed run, with the note that a revision is quarantined.

    If `revision` is empty, or if the run did not fail, return the outcome unchanged.

    A quarantined function revision is not called for this composite resource for some time.
    """
    failure = outcome.failure
    if not revision or failure is None:
        return outcome
    fact = f"{revision} does not answer for this composite resource, but answers for others"
    told = f"quarantined: {fact}; it is retried rarely, and at once when its spec changes"
    events = (*outcome.events, PipelineEvent("Warning", QUARANTINED, told))
    return replace(
        outcome, events=events, failure=replace(failure, message=f"{failure.message}; {told}")
    )


def _is_invalid(error: ApiError) -> bool:
    """Report whether the API server refused a status because of its content.

    Some API servers answer 500, not 400 or 422, if a status contains unknown fields.
    """
    return error.code in (400, 422) or "field not declared in schema" in error.message
