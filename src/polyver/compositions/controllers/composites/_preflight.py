"""Preflights: composes composite resources with a new release, and applies nothing.

Composition functions are pure by contract. So polyver can call a function with the state of a live
composite resource, without changing anything. polyver composes with the new revision and with the
one in use, and compares the two results.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any, Final, Literal

from polyver.capability import Refusal
from polyver.client import Client, Clock, GroupVersionResource, find, for_each, sleep
from polyver.compositions.controllers.composites._candidates import CompositionCache
from polyver.compositions.controllers.composites._known_composites import CompositeKey
from polyver.compositions.controllers.composites._observed_state import Kinds
from polyver.compositions.controllers.composites._reconcile import (
    Composer,
    Work,
    recorded_calls,
)
from polyver.compositions.decisions import FunctionLineages
from polyver.compositions.pipeline import NOT_SERVED
from polyver.core.plain import Object, ReadOnlyObject
from polyver.core.preflight import (
    HiddenText,
    Outcome,
    Preflight,
    PreflightReport,
    identity_of,
)
from polyver.kube.objects.masking import Masks

__all__ = ["Combined", "ComparedComposites", "CompositePreflight", "TriedRevision"]

_AT_ONCE: Final = 8
_LONGEST: Final = 60.0
"""Maximum seconds of repeated tries if a function is busy or does not answer."""
_LONGEST_SILENCE: Final = 120.0
"""Seconds from the first call without an answer to the time at which a preflight stops waiting for
functions that do not answer.

Without this limit, a function that exits with many inputs would delay the result for hours, because
polyver starts it again with a growing back-off.
"""
_KNOWN: Final = 5.0
"""Seconds after a call without an answer in which a preflight makes no other call, if
`_LONGEST_SILENCE` is over.
"""
_PAUSE: Final = 0.25
"""Seconds between two tries to compose the same composite resource."""


@dataclass(frozen=True, slots=True)
class TriedRevision:
    """A revision whose effects a preflight reports, and the kind of its owner."""

    kind: Literal["Composition", "Function"]
    name: str


@dataclass(frozen=True, slots=True)
class _Composed:
    """The result of composing one composite resource: objects, or the reason of a failure."""

    objects: Sequence[ReadOnlyObject] = ()
    existing: Sequence[ReadOnlyObject] = ()
    failure: str = ""
    retry: Literal["", "busy", "silent"] = ""
    """The reason why another try may have another result: a function is overloaded, or it does not
    answer. Empty if the result is final.
    """


@dataclass(slots=True)
class _Silence:
    """The time for which a preflight waits for functions that do not answer."""

    clock: Clock
    ends: float | None = None
    """The time at which the preflight stops waiting for functions that do not answer. None until
    the first call without an answer.
    """
    last: tuple[float, str] | None = None
    """The time and the message of the last try, if it had no answer."""

    def observe(self, found: _Composed) -> None:
        """Record the result of a try to compose a composite resource."""
        now = self.clock.time()
        if found.retry == "silent":
            self.ends = now + _LONGEST_SILENCE if self.ends is None else self.ends
            self.last = now, found.failure
        elif not found.retry:
            self.last = None

    @property
    def is_too_long(self) -> bool:
        return self.ends is not None and self.clock.time() >= self.ends

    @property
    def failure(self) -> str:
        """The reason not to compose a composite resource now; empty if it may be composed.

        This is the message of a recent try without an answer, if functions have not answered for
        too long.
        """
        if self.last is None or not self.is_too_long:
            return ""
        time, message = self.last
        return message if self.clock.time() - time < _KNOWN else ""


@dataclass(frozen=True, slots=True)
class Combined:
    """A CompositionRevision and the function revisions among which its steps choose."""

    revision: str
    installed: Callable[[], FunctionLineages]


@dataclass(slots=True)
class ComparedComposites:
    """The effects of new revisions on composite resources, collected one after the other."""

    report: Preflight = field(default_factory=Preflight)
    failing: Preflight = field(default_factory=Preflight)
    """Composite resources that fail with the revisions in use, and with the new revisions."""
    outcomes: dict[CompositeKey, Outcome] = field(default_factory=dict)


class CompositePreflight:
    """Composes composite resources with revisions that they do not use yet."""

    def __init__(
        self,
        client: Client,
        clock: Clock,
        composer: Composer,
        known: CompositionCache,
        kinds: Kinds,
    ) -> None:
        self._client = client
        self._clock = clock
        self._composer = composer
        self._known = known
        self._kinds = kinds

    async def report(self, tried: TriedRevision, keys: Sequence[CompositeKey]) -> PreflightReport:
        """Report the effects that a revision would have on composite resources."""
        known = self._known

        def after(work: Work) -> Combined:
            target = tried.name if tried.kind == "Composition" else work.composite.revision
            return Combined(target, partial(known.installed_with, tried.name))

        def before(work: Work) -> Combined:
            called = [*recorded_calls(work.found).values()]
            return Combined(work.composite.revision, partial(known.installed_as, called))

        return (await self.compare(keys, before, after)).report.report()

    async def compare(
        self,
        keys: Sequence[CompositeKey],
        before: Callable[[Work], Combined],
        after: Callable[[Work], Combined],
    ) -> ComparedComposites:
        """Compose each composite resource with the revisions of `before` and of `after`."""
        found, silence = ComparedComposites(), (_Silence(self._clock), _Silence(self._clock))

        async def one(key: CompositeKey) -> None:
            work = await self._work(key)
            if work is not None:  # otherwise, it was deleted meanwhile
                new = await self._composed(work, after(work), silence[0])
                old = await self._composed(work, before(work), silence[1])
                found.outcomes[key] = _compare(work, new, old, found)

        await for_each(keys, one, at_once=_AT_ONCE)
        return found

    async def _work(self, key: CompositeKey) -> Work | None:
        defined = self._known.defined(key.group, key.kind)
        kind = self._kinds.find(defined.api_version, key.kind) if defined is not None else None
        if defined is None or kind is None:
            return None
        resource = GroupVersionResource.of(kind)
        found = await find(self._client, resource, key.name, key.namespace)
        if found is None or "deletionTimestamp" in found["metadata"]:
            return None
        return Work(key, resource, defined, found, _ignored, _not_awaited)

    async def _composed(self, work: Work, with_: Combined, silence: _Silence) -> _Composed:
        """Compose with some revisions; try again for some time if its function does not answer.

        If a function exits or hangs with the input of the composite resource, it is not called
        again.
        """
        ends = self._clock.time() + _LONGEST
        while not (failure := silence.failure):
            found = await self._tried(work, with_.revision, with_.installed())
            silence.observe(found)
            if not found.retry or self._clock.time() >= ends:
                return found
            if found.retry == "silent" and silence.is_too_long:
                return found
            await sleep(self._clock, _PAUSE)
        return _Composed(failure=failure)

    async def _tried(self, work: Work, revision: str, installed: FunctionLineages) -> _Composed:
        """Run the pipeline once with a revision, and return the composed objects or the failure."""
        try:
            resolved = await self._composer.resolved(work, revision, installed)
            self._composer.check_served(work, resolved.steps)
        except Refusal as refusal:
            waits = refusal.reason == NOT_SERVED
            return _Composed(failure=str(refusal), retry="silent" if waits else "")
        if self._composer.is_quarantined(work, resolved):
            return _Composed(failure="a function exits or hangs with its input")
        ran = await self._composer.run(work, resolved)
        if ran is None:
            return _Composed(failure="its function is overloaded", retry="busy")
        existing = [each.resource for each in ran.there.state.resources.values()]
        if ran.outcome.failure is not None:
            message = ran.outcome.failure.message
            return _Composed((), existing, message, "silent" if ran.silent else "")
        return _Composed([each.obj for each in ran.outcome.apply], existing)


def _compare(work: Work, after: _Composed, before: _Composed, found: ComparedComposites) -> Outcome:
    name, report = work.key.label, found.report
    if after.failure and not before.failure:
        return report.fail(name, [after.failure])
    if after.failure:
        found.failing.fail(name, [after.failure])
        return report.compare(name, (), ())  # it fails already: the revision does not change this
    was = _as_after(before.existing, after.objects) if before.failure else before.objects
    return report.compare(name, *(_hidden(each, work.masks) for each in (was, after.objects)))


def _as_after(
    existing: Sequence[ReadOnlyObject], after: Sequence[ReadOnlyObject]
) -> list[ReadOnlyObject]:
    """Return the existing objects, for a comparison that shows only added and lost objects.

    The run with the revision in use failed, so the objects that it would compose are unknown. If
    the new revision composes an existing object too, the result has the newly composed object in
    its place. So the comparison shows this object as unchanged.
    """
    there = {identity_of(each): each for each in after}
    return [there.get(identity_of(each), each) for each in existing]


def _hidden(value: Any, masks: Masks) -> Any:
    """Hide the strings in plain data that contain a value of a Secret."""
    match value:
        case str():
            return HiddenText(value) if masks.is_in(value) else value
        case Mapping():
            return {key: _hidden(each, masks) for key, each in value.items()}
        case list() | tuple():
            return [_hidden(each, masks) for each in value]
        case _:
            return value


def _ignored(key: CompositeKey, before: Object, after: Object) -> None:
    """Do nothing: a preflight writes no composite resource."""
    del key, before, after


def _not_awaited(key: CompositeKey) -> None:
    """Do nothing: the controller itself waits for kinds that are not served."""
    del key
