"""The controller of applications: which versions they use, what these render, and how that does."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, Final

from polyver.capabilities.definitions.applying import (
    Placed,
    UnknownKind,
    inputs_digest,
    is_prunable,
    place_all,
    rendered_from,
)
from polyver.capabilities.definitions.choosing import (
    application_status,
    choose_all,
    recorded,
    resolution_data,
    revision_of,
)
from polyver.capabilities.definitions.kinds import (
    APPLICATION_REVISIONS,
    APPLICATIONS,
    DEFINITIONS,
    GROUP,
    STORED,
    VERSIONED,
)
from polyver.capabilities.definitions.names import APPLYING, RECORDED
from polyver.capabilities.definitions.rendering import Engines, GoTemplates, Rendered
from polyver.capabilities.definitions.reporting import (
    Fact,
    applied_fact,
    confirmed,
    failed_fact,
    ready_fact,
    reason_of,
    rendered_fact,
    services_of,
    with_facts,
)
from polyver.capabilities.definitions.uses import Use, is_held, uses_of
from polyver.client import (
    Backoff,
    Change,
    Client,
    Clock,
    Discovery,
    Key,
    Object,
    Resource,
    SystemClock,
    find,
    timestamp,
)
from polyver.core import PolyverError
from polyver.engine._applied import APPLIED, Part, noted, part_of, unwanted
from polyver.engine._controller import Controller, Result, Watch, exactly
from polyver.engine._keeping import Keeping
from polyver.engine.applications._applying import Applied, Applier, Problem, problem_of
from polyver.engine.applications._following import Following, published_in
from polyver.engine.applications._outputs import Outputs, part_in
from polyver.engine.applications._patience import Patience
from polyver.engine.applications._rendering import DEADLINE, Renderer, TookTooLong
from polyver.engine.applications._revisions import Revisions, revision_in
from polyver.objects.kinds import Kind
from polyver.objects.status import ApiError

__all__ = ["ApplicationController"]

_MANAGER = "polyver"
_APPLICATIONS = Resource(GROUP, STORED, APPLICATIONS.names.plural)
_REVISIONS = Resource(GROUP, STORED, APPLICATION_REVISIONS.names.plural)
_DEFINITIONS = [Resource(GROUP, VERSIONED, kind.names.plural) for kind in DEFINITIONS]
_SOON, _LATER, _SLOW = 0.05, 60.0, 1.0
_SETTLING = 5.0
"""How long a watch may take to begin before objects are asked for one by one."""
_POLLED = 10.0
"""How often they are then."""


@dataclass(slots=True)
class _Wanted:
    """What an application is to be."""

    application: Object
    """As it is rendered."""
    resolutions: Sequence[Object]
    revision: Object
    """The ApplicationRevision that records it."""
    is_new: bool
    """Whether that has to be made."""
    status: dict[str, Any]
    digest: str

    @property
    def generation(self) -> int:
        found: int = self.application["metadata"].get("generation", 1)
        return found


class ApplicationController(Controller[Key]):
    """One key for each application."""

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
        self._following = Following()
        self._revisions = Revisions()
        self._outputs = Outputs(lambda: self.watch_anew())
        self._renderer = Renderer(
            client,
            engines if engines is not None else {"gotemplate": GoTemplates()},
            deadline=deadline,
        )
        self._applier = Applier(client, self._outputs)
        self._keeping = Keeping(client, _APPLICATIONS, _MANAGER)
        self._patience = Patience[Key](self._clock, Backoff(first=1.0, most=300.0), quiet=600.0)
        self._kinds: dict[tuple[str, str], Kind] = {}
        self._waiting: set[Key] = set()
        """Those that need a kind that is not served."""
        self._told: dict[Key, Any] = {}
        """What was told last, so that one's own word wakes nobody."""
        self._began = self._clock.time()

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
        applications = Watch(kinds=exactly(_APPLICATIONS), observe=self._observe, keep=_state)
        revisions = Watch(
            kinds=exactly(_REVISIONS),
            observe=self._revisions.observe,
            keep=revision_in,
            metadata=True,
        )
        return [*definitions, applications, revisions, self._outputs.watch()]

    def discovered(self, discovery: Discovery) -> Iterable[Key]:
        self._kinds = {(each.api_version, each.kind): each for each in discovery.kinds}
        waiting, self._waiting = self._waiting, set()
        return waiting

    def _observe(self, kind: Kind, change: Change[_State]) -> Iterable[Key]:
        del kind
        key, before, after = change.key, change.before, change.after
        if before == after:
            return ()
        self._following.use(key, before.uses if before else (), after.uses if after else ())
        if after is None:
            self._told.pop(key, None)
            return ()
        self._outputs.use({(part.group, part.kind) for part in after.parts})
        return () if self._told.get(key) == after else (key,)

    async def reconcile(self, key: Key) -> Result | None:
        if not self.synced:
            # What is not known yet would look as if it were not there.
            return Result(_SOON)
        found = await find(self._client, _APPLICATIONS, key.name, key.namespace)
        if found is None:
            return None
        newest = await self._newest(found, key)
        if "deletionTimestamp" in found["metadata"]:
            return await self._release(found, key)
        content = await self._content(newest) if newest and not _resolutions(found) else None
        wanted = await self._wanted(found, recorded(found, content), newest)
        if wanted is None:
            return None
        result = await self._bring(found, wanted, key)
        for name in self._revisions.surplus(key):
            await self._delete_revision(name, key)
        return result

    # Which versions.

    async def _newest(self, found: Object, key: Key) -> Object | None:
        """The newest revision; a watch may be behind what the status knows already."""
        named = ((found.get("status") or {}).get("latestRevision") or {}).get("name", "")
        if named and named not in self._revisions.names(key):
            made = await find(self._client, _REVISIONS, named, key.namespace)
            if made is not None:
                self._revisions.note(made)
        return self._revisions.newest(key)

    async def _content(self, revision: Object) -> Object | None:
        """A revision as a whole; its namespace is that of whoever asks."""
        return await find(
            self._client,
            _REVISIONS,
            revision["metadata"]["name"],
            revision["metadata"]["namespace"],
        )

    async def _wanted(
        self, found: Object, application: Object, newest: Object | None
    ) -> _Wanted | None:
        """What an application is to be; None if it cannot be told, which its status says then."""
        now = timestamp(self._clock)
        if newest is not None and is_held(application) and _resolutions(found):
            return await self._held(found, newest)
        chosen, errors = choose_all(application, self._following.homes)
        resolutions = [resolution_data(each, now=now) for each in chosen]
        if errors:
            status = application_status(application, resolutions, None, errors, now=now)
            facts = [failed_fact("Ready", reason_of(errors[0]), errors)]
            await self._tell(found, self._with(status, facts, found))
            return None
        revision, is_new = revision_of(found, resolutions, newest)
        status = application_status(application, resolutions, revision, errors, now=now)
        shown = rendered_from({**found, "status": status})
        digest = inputs_digest(found, status["latestRevision"])
        return _Wanted(shown, resolutions, revision, is_new, status, digest)

    async def _held(self, found: Object, newest: Object) -> _Wanted | None:
        """An application that keeps what it was published with, whatever it says now."""
        content = await self._content(newest)
        if content is None:
            return None
        spec = content["spec"]["application"]["spec"]
        shown = rendered_from({**found, "spec": spec})
        status = dict(found["status"])
        digest = status.get("appliedDigest") or inputs_digest(found, status["latestRevision"])
        return _Wanted(shown, _resolutions(found), newest, False, status, digest)

    async def _record(self, found: Object, wanted: _Wanted, key: Key) -> bool:
        """Have the revision that records what is wanted; whether nobody knows better."""
        if not wanted.is_new:
            return True
        name = wanted.revision["metadata"]["name"]
        is_first = not self._revisions.names(key) and not _resolutions(found)
        made = await self._client.create(_REVISIONS, dict(wanted.revision), manager=_MANAGER)
        self._revisions.note(made)
        wanted.is_new = False
        if not is_first:
            return True
        # A backup may have brought revisions that the watch has not told of.
        told = await self._revisions.told(key.namespace, name, patience=_SETTLING)
        return told and self._revisions.names(key) == [name]

    async def _delete_revision(self, name: str, key: Key) -> None:
        try:
            await self._client.delete(_REVISIONS, name, key.namespace)
        except ApiError as error:
            if error.code != 404:
                raise
        self._revisions.forget(key, name)

    # What these render.

    async def _bring(self, found: Object, wanted: _Wanted, key: Key) -> Result | None:
        """Bring what is on the server to what is wanted."""
        before = found.get("status") or {}
        applied = before.get("appliedResources") or []
        annotations = found["metadata"].get("annotations") or {}
        is_done = wanted.digest == before.get("appliedDigest") == annotations.get(APPLYING)
        if is_done:
            if not await self._look(applied, key):
                return Result(_SOON)
            if all(self._outputs.is_as_applied(each, key) for each in applied):
                return await self._healthy(found, wanted, Applied(applied))
            if left := self._patience.left(key):
                return Result(left)
            self._patience.spend(key)
        rendering = asyncio.create_task(self._rendered(wanted))
        try:
            return await self._applied(found, wanted, rendering, key)
        finally:
            rendering.cancel()

    async def _rendered(self, wanted: _Wanted) -> Rendered:
        name = wanted.revision["metadata"]["name"]
        return await self._renderer.render(wanted.application, wanted.resolutions, revision=name)

    async def _applied(
        self, found: Object, wanted: _Wanted, rendering: asyncio.Task[Rendered], key: Key
    ) -> Result | None:
        done, _ = await asyncio.wait({rendering}, timeout=_SLOW)
        if not done:
            found = await self._hold(found)
            if not await self._record(found, wanted, key):
                return Result(_SOON)
            found = await self._tell(found, wanted.status)
        rendered = await rendering
        placed, errors = self._placed(wanted, rendered, key)
        wrong = [each for each in errors if not isinstance(each, UnknownKind)]
        if wrong:
            return await self._unrendered(found, wanted, wrong, key)
        parts = [part_of(each.object) for each in placed]
        before = sorted({*noted(found), *map(part_in, _applied_before(found))})
        # Noted first: what is applied without a note would stay when it is wanted no longer.
        found = await self._hold(found, [*before, *parts], wanted.digest)
        if not await self._record(found, wanted, key):
            return Result(_SOON)
        applied = await self._applier.apply(found, placed)
        applied.problems += [Problem("NotServed", str(each)) for each in errors]
        if not applied.problems:
            left = await self._prune(found, unwanted(before, parts), applied)
            found = await self._hold(found, [*parts, *left], wanted.digest)
        if applied.problems:
            return await self._unapplied(found, wanted, applied)
        return await self._healthy(found, wanted, applied, len(placed))

    def _placed(
        self, wanted: _Wanted, rendered: Rendered, key: Key
    ) -> tuple[list[Placed], list[PolyverError]]:
        if rendered.errors:
            return [], [*rendered.errors]
        placed, errors = place_all(
            wanted.application, rendered.outputs, lambda *named: self._kinds.get(named)
        )
        if any(isinstance(each, UnknownKind) for each in errors):
            self._waiting.add(key)
        return placed, errors

    async def _prune(self, found: Object, parts: Sequence[Part], applied: Applied) -> list[Part]:
        """Delete what is wanted no longer; what could not be deleted is given back."""
        left = []
        for part in parts:
            try:
                kept = await self._keeping.remove(part, partial(is_prunable, application=found))
            except ApiError as error:
                applied.problems.append(problem_of(_called(part), error))
                kept = part
            if kept is not None:
                left.append(kept)
        return left

    # How that does.

    async def _look(self, applied: Sequence[Object], key: Key) -> bool:
        """Ask for what no watch tells of; whether all that can be known is known."""
        for each in applied:
            part = part_in(each)
            if self._outputs.is_followed(part):
                continue
            if self._clock.time() - self._began < _SETTLING and self._outputs.of(part) is None:
                return False  # its watch has hardly begun
            kind = self._kinds.get((each["apiVersion"], each["kind"]))
            if kind is not None:
                obj = await find(self._client, Resource.of(kind), part.name, part.namespace)
                self._outputs.note(part, obj)
        return True

    async def _healthy(
        self, found: Object, wanted: _Wanted, applied: Applied, rendered: int | None = None
    ) -> Result | None:
        """All is applied: tell how it does."""
        status, resources = wanted.status, applied.resources
        count = len(resources)
        services = services_of(wanted.application, resources, self._outputs.health)
        facts = [rendered_fact(count), applied_fact(count, applied.taken_back)]
        if rendered is None:
            facts = [confirmed(status, each) for each in facts]
        status = {
            **status,
            "status": "running",
            "services": services,
            "appliedResources": [*resources],
            "appliedDigest": wanted.digest,
        }
        await self._tell(found, self._with(status, [*facts, ready_fact(services)], found))
        polled = [each for each in resources if not self._outputs.is_followed(part_in(each))]
        return Result(_POLLED) if polled else None

    async def _unrendered(
        self, found: Object, wanted: _Wanted, errors: Sequence[PolyverError], key: Key
    ) -> Result | None:
        """It keeps what it had applied."""
        found = await self._hold(found)
        if not await self._record(found, wanted, key):
            return Result(_SOON)
        facts = [failed_fact(kind, reason_of(errors[0]), errors) for kind in ("Rendered", "Ready")]
        status = self._with({**wanted.status, "status": "failed"}, facts, found)
        await self._tell(found, status)
        return Result(_LATER) if any(isinstance(each, TookTooLong) for each in errors) else None

    async def _unapplied(self, found: Object, wanted: _Wanted, applied: Applied) -> Result:
        problems = applied.problems
        reason = problems[0].reason
        facts = [rendered_fact(len(applied.resources) + len(problems))]
        facts += [failed_fact(kind, reason, problems) for kind in ("Applied", "Ready")]
        status = self._with({**wanted.status, "status": "failed"}, facts, found)
        await self._tell(found, status)
        passing = next((each.error for each in problems if each.error is not None), None)
        if passing is not None:
            raise passing
        return Result(_LATER)

    def _with(self, status: Object, facts: Iterable[Fact], found: Object) -> dict[str, Any]:
        generation = found["metadata"].get("generation", 1)
        return with_facts(status, facts, generation=generation, now=timestamp(self._clock))

    # What is written of it.

    async def _hold(
        self, found: Object, parts: Sequence[Part] | None = None, digest: str = ""
    ) -> Object:
        """Have an application say what is applied, and wait for what has to go before it."""
        finalizers = found["metadata"].get("finalizers") or []
        if RECORDED not in finalizers:
            finalizers = [*finalizers, RECORDED]
        return await self._keeping.note(
            found,
            parts if parts is not None else noted(found),
            annotations={APPLYING: digest} if digest else {},
            finalizers=finalizers,
        )

    async def _release(self, found: Object, key: Key) -> Result | None:
        """Let an application go, after what was recorded and applied for it.

        What it owns goes by itself. The next application of that name starts anew.
        """
        metadata = found["metadata"]
        finalizers = metadata.get("finalizers") or []
        if RECORDED not in finalizers:
            return None
        parts = {*noted(found), *map(part_in, _applied_before(found))}
        elsewhere = [each for each in sorted(parts) if each.namespace != key.namespace]
        applied = Applied()
        if "orphan" not in finalizers:
            await self._prune(found, elsewhere, applied)
        if applied.problems:
            facts = [failed_fact("Applied", applied.problems[0].reason, applied.problems)]
            await self._tell(found, self._with(found.get("status") or {}, facts, found))
            return Result(_LATER)
        for name in self._revisions.names(key):
            await self._delete_revision(name, key)
        rest = [each for each in finalizers if each != RECORDED]
        await self._keeping.note(found, noted(found), finalizers=rest)
        return None

    async def _tell(self, found: Object, status: Object) -> Object:
        if status == found.get("status"):
            return found
        said = {**found, "status": status}
        key = Key(found["metadata"]["namespace"], found["metadata"]["name"])
        self._told[key] = _state(_ANY, said)
        try:
            # With its resourceVersion: what was decided on an old state is decided again.
            return await self._client.update(
                _APPLICATIONS, said, subresource="status", manager=_MANAGER
            )
        except ApiError as error:
            self._told.pop(key, None)
            if error.code != 404:
                raise
            return found


def _resolutions(found: Object) -> list[Any]:
    return (found.get("status") or {}).get("resolutions") or []


def _applied_before(found: Object) -> list[Any]:
    return (found.get("status") or {}).get("appliedResources") or []


def _called(part: Part) -> str:
    return f"{part.kind} {'/'.join(filter(None, (part.namespace, part.name)))}"


@dataclass(frozen=True, slots=True)
class _State:
    """What is worth knowing of an application; what one wrote oneself is no reason to look."""

    uses: tuple[Use, ...]
    parts: tuple[Part, ...]
    seen: tuple[Any, ...]


def _state(kind: Kind, obj: Object) -> _State:
    del kind
    metadata = obj["metadata"]
    annotations = metadata.get("annotations") or {}
    others = {name: each for name, each in annotations.items() if name not in (APPLIED, APPLYING)}
    status = obj.get("status") or {}
    seen = (
        *(metadata.get(name) for name in ("uid", "generation")),
        str(metadata.get("labels")),
        str(others),
        "deletionTimestamp" in metadata,
        status.get("appliedDigest"),
        status.get("status"),
    )
    return _State(tuple(uses_of(obj)), tuple(map(part_in, _applied_before(obj))), seen)


_ANY: Any = None
