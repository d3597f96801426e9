"""Resolves the versions that an application uses, and records them in ApplicationRevisions.

A watch keeps an index of all ApplicationRevisions up to date, so no reconcile has to list them. If
another client creates a revision, for example from a backup, the index may lack it for a short
time. If this process creates a revision, it adds the revision to the index immediately. A watch
reports revisions in the order of their creation. So when the watch reports a revision of this
process, the index contains all revisions that were created earlier.
"""

from __future__ import annotations

import asyncio
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from operator import itemgetter
from typing import Any, Final

from polyver import __version__
from polyver.client import Change, Client, Clock, GroupVersionResource, Key, find, timestamp
from polyver.core.plain import Object
from polyver.definitions.controllers.applications._dependents import DefinitionUseIndex
from polyver.definitions.controllers.applications._status import MANAGER, ApplicationStatusWriter
from polyver.definitions.kinds import APPLICATION_REVISIONS, GROUP, STORED
from polyver.definitions.moves import (
    MoveTarget,
    ReleaseChoice,
    choice_of,
    inputs_of,
    one_at_a_time,
)
from polyver.definitions.names import APP_NAME
from polyver.definitions.rendered_objects import inputs_digest, rendered_from
from polyver.definitions.resolution import (
    application_status,
    choose_all,
    newest_revision,
    recorded,
    revision_of,
    surplus_revisions,
    used_of,
)
from polyver.definitions.status import failed_fact, supported_fact, updated_fact
from polyver.definitions.support import unsupported_fields
from polyver.definitions.uses import is_failing, is_healthy, is_held, uses_of
from polyver.kube.objects.kinds import ResourceKind
from polyver.kube.objects.status import ApiError

__all__ = [
    "REVISIONS",
    "ApplicationRecorder",
    "ApplicationRevisionIndex",
    "DesiredApplication",
    "MoveOptions",
    "revision_in",
]

REVISIONS = GroupVersionResource(GROUP, STORED, APPLICATION_REVISIONS.names.plural)
_PATIENCE: Final = 5.0


@dataclass(slots=True)
class DesiredApplication:
    """The desired state of an application."""

    application: Object
    """The application as templates read it. It lacks the annotations in which clients record what
    they applied, such as `kubectl.kubernetes.io/last-applied-configuration`.
    """
    resolutions: Sequence[Object]
    revision: Object
    """The ApplicationRevision that records this state."""
    is_new: bool
    """True if the ApplicationRevision must be created."""
    status: dict[str, Any]
    """The parts of the status that are known before rendering."""
    digest: str
    options: MoveOptions | None = None
    """The possible moves of references to other releases.

    None if the application must keep its recorded versions until publishVersion changes.
    """
    taken: Collection[MoveTarget] = ()
    """The releases to which the application moves in this state."""

    def unproven_status(self, found: Object) -> dict[str, Any]:
        """Return the status to write while it is not known yet whether this state can be applied.

        If objects with other versions were applied before, the status keeps the resolutions with
        those versions.
        """
        before = found.get("status") or {}
        if not before.get("appliedDigest") or not before.get("resolutions"):
            return self.status
        pin = itemgetter("kind", "component", "definition", "digest")
        if [*map(pin, before["resolutions"])] == [*map(pin, self.resolutions)]:
            return self.status
        known = {each["type"]: each for each in self.status["conditions"]}
        known |= {x["type"]: x for x in before.get("conditions") or () if x["type"] == "Updated"}
        kept = {"resolutions": before["resolutions"], "conditions": [*known.values()]}
        return {**self.status, **kept}


@dataclass(frozen=True, slots=True)
class MoveOptions:
    """The possible moves of an application to other releases."""

    application: Object
    """The application. Its status has the recorded pins."""
    newest: Object | None
    choice: ReleaseChoice
    inputs: str
    """Digest of all inputs that decide whether the moves succeed.

    If the digest changes, the moves that failed are tried again.
    """

    @property
    def targets(self) -> tuple[MoveTarget, ...]:
        return self.choice.targets


class ApplicationRecorder:
    """Resolves the versions of applications, and stores ApplicationRevisions that record them."""

    def __init__(
        self,
        client: Client,
        clock: Clock,
        following: DefinitionUseIndex,
        telling: ApplicationStatusWriter,
    ) -> None:
        self._client = client
        self._clock = clock
        self._following = following
        self._telling = telling
        self.revisions = ApplicationRevisionIndex()

    async def wanted(self, found: Object, key: Key) -> DesiredApplication | None:
        """Resolve the versions of an application, and return its desired state.

        If a reference cannot be resolved, write the errors into the status and return None.
        """
        newest = await self._newest(found, key)
        if newest is not None and is_held(found) and _resolutions(found):
            return await self._held(found, newest)
        content = await self._content(newest) if newest and not _resolutions(found) else None
        application = recorded(found, content)
        # Ignore the failed moves in the status here: their targets are tried again.
        status = application.get("status") or {}
        used = [*map(used_of, status.get("resolutions") or ())]
        untried = {**application, "status": {**status, "resolutions": used}}
        chosen, errors = choose_all(untried, self._following.homes)
        if errors:
            now = timestamp(self._clock)
            status = application_status(application, (), None, errors, now=now)
            facts = [failed_fact("Ready", "Unresolved", errors)]
            facts.append(supported_fact(unsupported_fields(application)))
            await self._telling.tell(found, self._telling.with_conditions(status, facts, found))
            return None
        choice = ReleaseChoice(chosen)
        # An application that was never applied, or that cannot be applied, does not keep a release.
        if not is_failing(found.get("status") or {}) and not unsupported_fields(found):
            choice = choice_of(chosen, self._following.homes)
            healthy = is_healthy(found.get("status") or {})
            choice = one_at_a_time(choice, uses_of(found), healthy=healthy)
        inputs = inputs_of(found, choice.targets, by=__version__)
        options = MoveOptions(application, newest, choice, inputs)
        return self.variant(found, options, choice.targets)

    def variant(
        self,
        found: Object,
        options: MoveOptions,
        taken: Collection[MoveTarget],
        failed: Mapping[MoveTarget, Mapping[str, Any]] | None = None,
    ) -> DesiredApplication:
        """Return the desired state in which references move only to the targets in `taken`.

        All other references keep their current release. `failed` has the entries `failedMove` for
        the status, by the target of the move.
        """
        now = timestamp(self._clock)
        resolutions = options.choice.resolutions(taken, failed or {}, now=now)
        revision, is_new = revision_of(found, resolutions, options.newest)
        status = application_status(options.application, resolutions, revision, (), now=now)
        fact = updated_fact(status)
        if fact is not None:
            status = self._telling.with_conditions(status, [fact], found)
        digest = inputs_digest(found, status["latestRevision"])
        shown = rendered_from(found)
        return DesiredApplication(
            shown, resolutions, revision, is_new, status, digest, options, taken
        )

    async def _held(self, found: Object, newest: Object) -> DesiredApplication | None:
        """Return the desired state that is recorded in the revision `newest`.

        It is used for an application that keeps its versions until publishVersion changes. Return
        None if the revision was deleted meanwhile.
        """
        content = await self._content(newest)
        if content is None:
            return None
        spec = content["spec"]["application"]["spec"]
        status = dict(found["status"])
        digest = status.get("appliedDigest") or inputs_digest(found, status["latestRevision"])
        shown = rendered_from({**found, "spec": spec})
        used = content["spec"].get("resolutions") or _resolutions(found)
        return DesiredApplication(shown, used, newest, False, status, digest)

    async def _newest(self, found: Object, key: Key) -> Object | None:
        """Return the newest revision of an application.

        If the status names a revision that is not in the index, read that revision first.
        """
        named = ((found.get("status") or {}).get("latestRevision") or {}).get("name", "")
        if named and named not in self.revisions.names(key):
            made = await find(self._client, REVISIONS, named, key.namespace)
            if made is not None:
                self.revisions.note(made)
        return self.revisions.newest(key)

    async def _content(self, revision: Object) -> Object | None:
        """Read a revision from the API server; the index has only its name and annotations."""
        metadata = revision["metadata"]
        return await find(self._client, REVISIONS, metadata["name"], metadata["namespace"])

    async def record(self, found: Object, wanted: DesiredApplication, key: Key) -> bool:
        """Create the revision that records the desired state, unless the revision exists.

        Return False if the index may lack older revisions. The caller must then compute the desired
        state again.
        """
        if not wanted.is_new:
            return True
        name = wanted.revision["metadata"]["name"]
        is_first = not self.revisions.names(key) and not _resolutions(found)
        made = await self._client.create(REVISIONS, dict(wanted.revision), manager=MANAGER)
        self.revisions.note(made)
        wanted.is_new = False
        if not is_first:
            return True
        # The watch may not have reported revisions from a restored backup yet.
        told = await self.revisions.told(key.namespace, name, patience=_PATIENCE)
        return told and self.revisions.names(key) == [name]

    async def delete(self, names: Sequence[str], key: Key) -> None:
        """Delete revisions of an application."""
        for name in names:
            try:
                await self._client.delete(REVISIONS, name, key.namespace)
            except ApiError as error:
                if error.code != 404:
                    raise
            self.revisions.forget(key, name)

    async def delete_all(self, found: Object, key: Key) -> None:
        """Delete all revisions of a deleted application.

        A new application with the same name then starts with revision 1.
        """
        await self._newest(found, key)
        await self.delete(self.revisions.names(key), key)


def _resolutions(found: Object) -> list[Any]:
    return (found.get("status") or {}).get("resolutions") or []


# The index of ApplicationRevisions.

_Kept = tuple[str, Object]
_ANY: Any = None


def revision_in(kind: ResourceKind, obj: Object) -> _Kept:
    """Return the name of a revision's application, and the revision's name and annotations."""
    del kind
    metadata = obj["metadata"]
    about = {name: metadata.get(name) for name in ("name", "namespace", "annotations")}
    return (metadata.get("labels") or {}).get(APP_NAME, ""), {"metadata": about}


class ApplicationRevisionIndex:
    """Index of the ApplicationRevisions of each application."""

    def __init__(self) -> None:
        self._known: dict[Key, dict[str, Object]] = {}
        # The next two dictionaries have the keys of revisions, not of applications.
        self._observed: set[Key] = set()
        self._awaited: dict[Key, asyncio.Event] = {}

    def observe(self, kind: ResourceKind, change: Change[_Kept]) -> Iterable[Key]:
        del kind
        if change.before is not None:
            self._observed.discard(change.key)
            self.forget(Key(change.key.namespace, change.before[0]), change.key.name)
        if change.after is not None:
            self._put(Key(change.key.namespace, change.after[0]), change.after[1])
            self._observed.add(change.key)
            if change.key in self._awaited:
                self._awaited[change.key].set()
        return ()

    def note(self, obj: Object) -> None:
        """Record a revision that this process has created or read."""
        application, kept = revision_in(_ANY, obj)
        self._put(Key(obj["metadata"]["namespace"], application), kept)

    def names(self, key: Key) -> list[str]:
        return [*self._known.get(key, ())]

    def newest(self, key: Key) -> Object | None:
        """Return the name and annotations of the newest revision; None if there is no revision."""
        found = newest_revision(self._known.get(key, {}).values())
        return dict(found) if found is not None else None

    def surplus(self, key: Key) -> list[str]:
        """Return the names of the revisions to delete: the oldest ones, above the limit."""
        return surplus_revisions(self._known.get(key, {}).values())

    def forget(self, key: Key, name: str) -> None:
        """Remove a deleted revision from the index."""
        known = self._known.get(key, {})
        known.pop(name, None)
        if not known:
            self._known.pop(key, None)

    async def told(self, namespace: str, name: str, *, patience: float) -> bool:
        """Wait until the watch has reported a revision.

        Return True if it has, or False after `patience` seconds without a report.
        """
        key = Key(namespace, name)
        if key in self._observed:
            return True
        event = self._awaited.setdefault(key, asyncio.Event())
        try:
            async with asyncio.timeout(patience):
                return await event.wait()
        except TimeoutError:
            return False
        finally:
            self._awaited.pop(key, None)

    def _put(self, key: Key, kept: Object) -> None:
        self._known.setdefault(key, {})[kept["metadata"]["name"]] = kept
