"""One composite resource brought to what its composition says, step by step.

Whatever happens between two writes, who comes next goes on from what is there.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Final

from polyver.capabilities import Refusal
from polyver.capabilities.revisions.compositions import (
    Composite,
    Defined,
    Secret,
    Step,
    choose_composition,
    choose_revision,
    read_composite,
    references_patch,
    resolve_steps,
)
from polyver.capabilities.revisions.names import CROSSPLANE_HOLDS
from polyver.capabilities.revisions.pipeline import (
    Event,
    Outcome,
    conclude,
    published_details,
    published_to,
    refused,
    secrets_of,
    start,
    without,
)
from polyver.client import Backoff, Client, Clock, Object, Resource, chance
from polyver.engine._controller import Result
from polyver.engine._holding import release
from polyver.engine._patience import Patience
from polyver.engine.composites._applying import MANAGER, Applied, Applier, Problem
from polyver.engine.composites._calling import Asking, Calling, CompositeLimits
from polyver.engine.composites._driving import drive
from polyver.engine.composites._following import CompositeKey
from polyver.engine.composites._kinds import Kinds
from polyver.engine.composites._known import Known
from polyver.engine.composites._looking import Looking
from polyver.engine.composites._news import others_in
from polyver.engine.composites._observing import Observation, Observing
from polyver.engine.composites._outputs import ComposedOutputs
from polyver.engine.composites._publishing import publish
from polyver.engine.composites._telling import Telling, is_paused, is_synced
from polyver.objects import digest
from polyver.objects.status import ApiError

__all__ = ["Composing", "Work"]

_PASSING: Final = (404, 408, 409, 429)
_UNSERVED: Final = "KindNotServed"
_NOT_SERVED: Final = "RevisionNotServed"


@dataclass(slots=True)
class Work:
    """One composite resource that is worked on, as it is after each write."""

    key: CompositeKey
    resource: Resource
    defined: Defined
    found: Object
    noted: Callable[[CompositeKey, Object, Object], None]
    """Takes note of a write: the object before and after."""
    wait: Callable[[CompositeKey], None]
    """Has it looked at again when other kinds are served."""
    warnings: list[str] = field(default_factory=list)

    @property
    def composite(self) -> Composite:
        return read_composite(self.found, self.defined)

    def wrote(self, after: Object) -> None:
        if after is not self.found:
            self.noted(self.key, self.found, after)
            self.found = after


@dataclass(frozen=True, slots=True)
class _Resolved:
    """What a composite resource uses, as of one moment."""

    revision: Object
    steps: tuple[Step, ...]
    secret: Secret | None
    """Where connection details are published."""

    @property
    def revisions(self) -> set[str]:
        return {step.revision for step in self.steps}


class Composing:
    """Composes; all that is known is passed in."""

    def __init__(
        self,
        client: Client,
        clock: Clock,
        *,
        known: Known,
        kinds: Kinds,
        outputs: ComposedOutputs,
        calling: Calling,
        telling: Telling,
        several: bool,
        limits: CompositeLimits,
    ) -> None:
        self._client = client
        self._known = known
        self._calling = calling
        self._telling = telling
        self._several = several
        self._limits = limits
        self._looking = Looking(client, kinds)
        self._observing = Observing(client, kinds, outputs)
        self._applier = Applier(client, kinds, outputs, clock)
        self._clock = clock
        self._failures: dict[CompositeKey, int] = {}
        self._silent: dict[CompositeKey, float] = {}
        """Since when a function of theirs does not answer."""
        # What a run itself has changed is looked at again at once, unless that never ends.
        again = Backoff(first=0.01, most=60.0, factor=3.0)
        self._again = Patience[CompositeKey](clock, again, quiet=30.0)
        self._runs = 0

    @property
    def counts(self) -> Mapping[str, int]:
        return {"runs": self._runs, "applied": self._applier.count}

    def forget(self, key: CompositeKey) -> None:
        self._failures.pop(key, None)
        self._silent.pop(key, None)
        self._applier.forget(key)
        self._calling.forget(key)
        self._telling.forget(key)

    async def compose(self, work: Work) -> Result | None:
        """Bring it to what it should be; when to look at it again."""
        if is_paused(work.found):
            work.wrote(await self._telling.paused(work.resource, work.found))
            return None
        if "deletionTimestamp" in work.found["metadata"]:
            await self._release(work)
            return None
        try:
            return await self._bring(work)
        except Refusal as refusal:
            if refusal.reason == _NOT_SERVED and self._may_be_starting(work):
                return self._retry(work.key)
            return await self._failed(work, refused(refusal))
        except ApiError as error:
            if error.code >= 500 or error.code in _PASSING:
                raise
            told = Refusal(error.reason or "Refused", error.message)
            return await self._failed(work, refused(told))

    async def _release(self, work: Work) -> None:
        """It goes, and by its owner references all that it is composed of."""
        if not work.found["metadata"].get("finalizers"):
            return
        work.wrote(await self._telling.deleting(work.resource, work.found))
        await release(self._client, work.resource, work.found, CROSSPLANE_HOLDS)

    async def _bring(self, work: Work) -> Result | None:
        resolved = await self._resolve(work)

        def input_of() -> str:
            return digest([*others_in(work.found), resolved.revision["metadata"]["name"]])

        quarantined, left = self._calling.quarantined(work.key, resolved.revisions, input_of)
        if quarantined:
            return Result(left)
        if not await self._calling.enter(work.key, resolved.revisions):
            return None
        asking = Asking(self._calling, work.key, input_of)
        try:
            credentials = await self._observing.credentials(secrets_of(resolved.steps))
            there = await self._observing.observe(work.composite, resolved.secret)
            run = start(there.state, resolved.steps, credentials)
            self._runs += 1
            run = await drive(run, asking.ask, self._looking.look)
        finally:
            self._calling.leave(work.key, resolved.revisions, asking)
        outcome = conclude(run)
        if asking.silent and self._may_be_starting(work):
            return self._retry(work.key)
        if outcome.failure is not None:
            quarantined, _ = self._calling.quarantined(work.key, resolved.revisions, input_of)
            return await self._failed(work, _quarantined(outcome, quarantined))
        return await self._perform(work, resolved, there, outcome)

    # What it uses.

    async def _resolve(self, work: Work) -> _Resolved:
        composite, defined = work.composite, work.defined
        names = composite.composition, defined.enforced, defined.default
        chosen = choose_composition(composite, defined, self._known.candidates(defined, *names))
        known = self._known.revisions(chosen.composition, composite.revision)
        found = choose_revision(composite, chosen.composition, known)
        work.warnings = [*chosen.warnings, *found.warnings]
        await self._refer(work, references_patch(composite, chosen.composition, found.release.name))
        revision = await self._known.content(found.release.name)
        if revision is None:
            fact = f"revision {found.release.name} has just been deleted"
            raise Refusal("RevisionNotFound", fact, at=f"{composite.at}.compositionRevisionRef")
        # As functions are at this moment, for the whole run: what it uses is noted by now, so that
        # whatever changes from here on wakes it.
        installed = self._known.installed
        steps = resolve_steps(revision, work.composite, installed, several=self._several)
        self._check_served(work, steps)
        # Others than the oldest sort of kinds have no secrets of their own.
        secret = published_to(work.composite, revision) if defined.legacy else None
        return _Resolved(revision, steps, secret)

    async def _refer(self, work: Work, change: dict[str, Any]) -> None:
        """Note what it uses before it is used."""
        if change:
            # With its resourceVersion: its user may have chosen something else meanwhile.
            very = {name: work.found["metadata"][name] for name in ("uid", "resourceVersion")}
            await self._patch(work, {**change, "metadata": very})

    async def _patch(self, work: Work, change: dict[str, Any]) -> None:
        key = work.key
        work.wrote(
            await self._client.patch(
                work.resource, key.name, key.namespace, change=change, manager=MANAGER
            )
        )

    def _check_served(self, work: Work, steps: Iterable[Step]) -> None:
        for step in steps:
            if not step.endpoint:
                self._calling.stick(work.key, step.revision)
                fact = f'{step.revision}, which step "{step.name}" calls, is not served yet'
                hint = "it goes on as soon as it is; the FunctionRevision says what it waits for"
                raise Refusal(_NOT_SERVED, fact, hint=hint)

    # What comes of it.

    async def _perform(
        self, work: Work, resolved: _Resolved, there: Observation, outcome: Outcome
    ) -> Result | None:
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
            # It is told all the same which revisions made what is there now.
            made = {"pipeline": outcome.status["pipeline"]}
            return await self._failed(work, replace(refused(refusal), status=made))
        work.wrote(told)
        await self._tell_events(work, outcome.events, applied.problems)
        return self._next(work, outcome, applied)

    async def _publish(
        self, work: Work, resolved: _Resolved, outcome: Outcome, applied: Applied
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
        applied.problems.append(Problem("connection details", reason, message))
        return False

    def _next(self, work: Work, outcome: Outcome, applied: Applied) -> Result:
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
        after *= 1 + chance() / 10  # so that those who came together come apart
        if applied.later:
            after = min(after, applied.later)
        if applied.changed:
            self._again.spend(key)
            after = min(after, self._again.left(key))
        return Result(after)

    def _retry(self, key: CompositeKey) -> Result:
        failures = self._failures[key] = self._failures.get(key, 0) + 1
        return Result(self._limits.backoff.delay(failures, spread=chance()))

    def _may_be_starting(self, work: Work) -> bool:
        """Whether it is too early to say that a function does not answer."""
        now = self._clock.time()
        since = self._silent.setdefault(work.key, now)
        return now - since < self._limits.quiet and is_synced(work.found)

    async def _failed(self, work: Work, outcome: Outcome) -> Result:
        assert outcome.failure is not None
        if outcome.failure.reason == _UNSERVED:
            work.wait(work.key)
        work.wrote(await self._telling.failed(work.resource, work.found, outcome))
        await self._tell_events(work, outcome.events, ())
        return self._retry(work.key)

    async def _tell_events(
        self, work: Work, events: Iterable[Event], problems: Iterable[Problem]
    ) -> None:
        told = [Event("Warning", "ComposeResources", each) for each in work.warnings]
        told += [Event("Warning", each.reason, str(each)) for each in problems]
        await self._telling.events(work.key, work.found, [*told, *events])


def _quarantined(outcome: Outcome, revision: str) -> Outcome:
    """An outcome that tells of a quarantine, if there is one."""
    failure = outcome.failure
    if not revision or failure is None:
        return outcome
    fact = f"{revision} was called for this composite resource alone, and answers others"
    told = f"quarantined: {fact}; it is tried again seldom, and at once when its spec is changed"
    events = (*outcome.events, Event("Warning", "Quarantined", told))
    return replace(
        outcome, events=events, failure=replace(failure, message=f"{failure.message}; {told}")
    )


def _is_invalid(error: ApiError) -> bool:
    """Whether a status is refused for what it says; servers call undeclared fields their fault."""
    return error.code in (400, 422) or "field not declared in schema" in error.message
