"""The desired state of applications: resolves versions, and records them in revisions."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from polyver import __version__
from polyver.client import Client, Clock, GroupVersionResource, Key, find, timestamp
from polyver.core.plain import Object
from polyver.definitions.controllers.applications._dependents import DefinitionUseIndex
from polyver.definitions.controllers.applications._revisions import ApplicationRevisionIndex
from polyver.definitions.controllers.applications._status import MANAGER, ApplicationStatusWriter
from polyver.definitions.kinds import APPLICATION_REVISIONS, GROUP, STORED
from polyver.definitions.moves import MoveTarget, ReleaseChoice, choice_of, inputs_of
from polyver.definitions.rendered_objects import inputs_digest, rendered_from
from polyver.definitions.resolution import (
    application_status,
    choose_all,
    recorded,
    revision_of,
    used_of,
)
from polyver.definitions.status import failed_fact, supported_fact, updated_fact
from polyver.definitions.support import unsupported_fields
from polyver.definitions.uses import is_failing, is_held
from polyver.kube.objects.status import ApiError

__all__ = ["REVISIONS", "ApplicationRecorder", "DesiredApplication", "MoveOptions"]

REVISIONS = GroupVersionResource(GROUP, STORED, APPLICATION_REVISIONS.names.plural)
_PATIENCE: Final = 5.0


@dataclass(slots=True)
class DesiredApplication:
    """The desired state of an application."""

    application: Object
    """The application as it is rendered."""
    resolutions: Sequence[Object]
    revision: Object
    """The ApplicationRevision that records this state."""
    is_new: bool
    """True if the ApplicationRevision must be created."""
    status: dict[str, Any]
    """The status as known before rendering."""
    digest: str
    options: MoveOptions | None = None
    """The possible moves; None if the application has no choice."""
    taken: Collection[MoveTarget] = ()
    """The optional releases that this state moves to."""


@dataclass(frozen=True, slots=True)
class MoveOptions:
    """The possible moves of an application to other releases."""

    application: Object
    """The application with its recorded pins."""
    newest: Object | None
    choice: ReleaseChoice
    inputs: str
    """Digest of the inputs that decide whether the moves succeed."""

    @property
    def targets(self) -> tuple[MoveTarget, ...]:
        return self.choice.targets


class ApplicationRecorder:
    """Resolves versions, and stores the revisions that record them."""

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
        """Return the desired state of an application.

        If it does not resolve, set the status and return None.
        """
        newest = await self._newest(found, key)
        if newest is not None and is_held(found) and _resolutions(found):
            return await self._held(found, newest)
        content = await self._content(newest) if newest and not _resolutions(found) else None
        application = recorded(found, content)
        chosen, errors = choose_all(_untried(application), self._following.homes)
        if errors:
            now = timestamp(self._clock)
            status = application_status(application, (), None, errors, now=now)
            facts = [failed_fact("Ready", "Unresolved", errors)]
            facts.append(supported_fact(unsupported_fields(application)))
            await self._telling.tell(found, self._telling.with_conditions(status, facts, found))
            return None
        choice = ReleaseChoice(chosen)
        # If nothing was applied yet, or nothing can be, there is no release to stay with.
        if not is_failing(found.get("status") or {}) and not unsupported_fields(found):
            choice = choice_of(chosen, self._following.homes)
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
        """Return the desired state of an application that moves only to the `taken` targets."""
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
        """Return the recorded state of an application whose publishVersion has not changed."""
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
        """Return the newest revision; the watch may be behind the status."""
        named = ((found.get("status") or {}).get("latestRevision") or {}).get("name", "")
        if named and named not in self.revisions.names(key):
            made = await find(self._client, REVISIONS, named, key.namespace)
            if made is not None:
                self.revisions.note(made)
        return self.revisions.newest(key)

    async def _content(self, revision: Object) -> Object | None:
        """Read a whole revision."""
        metadata = revision["metadata"]
        return await find(self._client, REVISIONS, metadata["name"], metadata["namespace"])

    async def record(self, found: Object, wanted: DesiredApplication, key: Key) -> bool:
        """Create the revision of the desired state; return False if older ones may be unknown."""
        if not wanted.is_new:
            return True
        name = wanted.revision["metadata"]["name"]
        is_first = not self.revisions.names(key) and not _resolutions(found)
        made = await self._client.create(REVISIONS, dict(wanted.revision), manager=MANAGER)
        self.revisions.note(made)
        wanted.is_new = False
        if not is_first:
            return True
        # A restored backup may have brought revisions that the watch has not reported.
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
        """Delete all revisions, so that a new application of that name starts from 1."""
        await self._newest(found, key)
        await self.delete(self.revisions.names(key), key)


def _untried(application: Object) -> Object:
    """Return the application without the failed moves in its status."""
    status = application.get("status") or {}
    known = status.get("resolutions") or ()
    return {**application, "status": {**status, "resolutions": [*map(used_of, known)]}}


def _resolutions(found: Object) -> list[Any]:
    return (found.get("status") or {}).get("resolutions") or []
