"""Applications that are applied: which versions they use, recorded, and followed when those move.

An index from each definition to its dependents tells whom a new version moves: those and nobody
else are looked at again, at once.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from polyver.capabilities.definitions.choosing import (
    Homes,
    application_status,
    choose_all,
    lineage_in,
    newest_revision,
    recorded,
    resolution_data,
    revision_of,
    surplus_revisions,
)
from polyver.capabilities.definitions.kinds import (
    APPLICATION_REVISIONS,
    APPLICATIONS,
    DEFINITIONS,
    GROUP,
    STORED,
    VERSIONED,
)
from polyver.capabilities.definitions.names import APP_NAME, RECORDED
from polyver.capabilities.definitions.uses import (
    Use,
    home_of,
    is_held,
    question_of,
    settled,
    uses_of,
)
from polyver.client import (
    Change,
    Client,
    Clock,
    Key,
    Object,
    Resource,
    SystemClock,
    find,
    timestamp,
)
from polyver.core import Index, Lineage, Loss, Move, PolyverError, Release, Serial, affected
from polyver.engine._controller import Controller, Result, Watch, exactly
from polyver.objects import label_value_problems
from polyver.objects.kinds import Kind
from polyver.objects.status import ApiError

__all__ = ["ApplicationController"]

_MANAGER = "polyver"
_APPLICATIONS = Resource(GROUP, STORED, APPLICATIONS.names.plural)
_REVISIONS = Resource(GROUP, STORED, APPLICATION_REVISIONS.names.plural)
_DEFINITIONS = [Resource(GROUP, VERSIONED, kind.names.plural) for kind in DEFINITIONS]
_SOON = 0.05


class ApplicationController(Controller[Key]):
    """One key for each application."""

    name = "applications"

    def __init__(self, client: Client, *, clock: Clock | None = None) -> None:
        self._client = client
        self._clock: Clock = clock or SystemClock()
        self._following = _Following()

    @property
    def watches(self) -> Sequence[Watch[Any, Key]]:
        followed = self._following
        definitions = [
            Watch(kinds=exactly(each), observe=followed.observe_definition, keep=_lineage)
            for each in _DEFINITIONS
        ]
        applications = Watch(
            kinds=exactly(_APPLICATIONS), observe=followed.observe_application, keep=_state
        )
        return [*definitions, applications]

    async def reconcile(self, key: Key) -> Result | None:
        if not self.synced:
            # What is not known yet would look as if it were not there.
            return Result(_SOON)
        found = await find(self._client, _APPLICATIONS, key.name, key.namespace)
        if found is None:
            return None
        if "deletionTimestamp" in found["metadata"]:
            await self._forget(found)
            return None
        revisions = await self._revisions(key)
        newest = newest_revision(revisions)
        application = recorded(found, newest)
        if is_held(application) and found.get("status", {}).get("resolutions"):
            return None
        await self._resolve(found, application, newest)
        for name in surplus_revisions(revisions):
            await self._delete(name, key.namespace)
        return None

    async def _delete(self, name: str, namespace: str) -> None:
        try:
            await self._client.delete(_REVISIONS, name, namespace)
        except ApiError as error:
            if error.code != 404:
                raise

    async def _resolve(
        self, found: Object, application: Object, newest: Mapping[str, Any] | None
    ) -> None:
        now = timestamp(self._clock)
        chosen, errors = choose_all(application, self._following.homes)
        resolutions = [resolution_data(each, now=now) for each in chosen]
        revision: Mapping[str, Any] | None = None
        if not errors:
            revision, is_new = revision_of(found, resolutions, newest)
            found = await self._hold(found)
            if is_new:
                await self._client.create(_REVISIONS, dict(revision), manager=_MANAGER)
        status = application_status(application, resolutions, revision, errors, now=now)
        await self._tell(found, status)

    async def _hold(self, found: Object) -> Object:
        """Have an application wait for its revisions to go before it is gone itself."""
        finalizers = found["metadata"].get("finalizers") or []
        if RECORDED in finalizers:
            return found
        return await self._finalize(found, [*finalizers, RECORDED])

    async def _forget(self, found: Object) -> None:
        """Delete the revisions of an application that goes, so that the next one starts anew."""
        metadata = found["metadata"]
        finalizers = metadata.get("finalizers") or []
        if RECORDED not in finalizers:
            return
        labels = f"{APP_NAME}={metadata['name']}"
        await self._client.delete_collection(_REVISIONS, metadata["namespace"], labels=labels)
        await self._finalize(found, [each for each in finalizers if each != RECORDED])

    async def _finalize(self, found: Object, finalizers: list[str]) -> Object:
        metadata = found["metadata"]
        known = {"resourceVersion": metadata["resourceVersion"], "finalizers": finalizers}
        made = await self._client.patch(
            _APPLICATIONS,
            metadata["name"],
            metadata["namespace"],
            change={"metadata": known},
            manager=_MANAGER,
        )
        return {**found, "metadata": made["metadata"]}

    async def _revisions(self, key: Key) -> list[Object]:
        if label_value_problems(key.name):
            return []  # there can be none
        labels = f"{APP_NAME}={key.name}"
        return (await self._client.list(_REVISIONS, key.namespace, labels=labels)).items

    async def _tell(self, found: Object, status: Object) -> None:
        if status == found.get("status"):
            return
        try:
            # With its resourceVersion: what was decided on an old state is decided again.
            await self._client.update(
                _APPLICATIONS, {**found, "status": status}, subresource="status", manager=_MANAGER
            )
        except ApiError as error:
            if error.code != 404:
                raise


_Named = tuple[str, str]
"""The kind and the name of a definition."""


@dataclass(slots=True)
class _Followed:
    """The definitions of one name, and who uses them."""

    lineages: dict[str, Lineage] = field(default_factory=dict)
    """By the namespaces that have one."""
    uses: dict[Key, list[Use]] = field(default_factory=dict)
    indexes: dict[str, Index] = field(default_factory=dict)


class _Following:
    """Who uses what, kept up to date by what is observed."""

    def __init__(self) -> None:
        self._known: dict[_Named, _Followed] = {}

    def homes(self, kind: str, name: str) -> Homes:
        known = self._known.get((kind, name))
        return known.lineages if known is not None else {}

    def observe_definition(self, kind: Kind, change: Change[_Published]) -> Iterable[Key]:
        if change.before == change.after:
            return ()
        known = self._known.setdefault((kind.kind, change.key.name), _Followed())
        namespace = change.key.namespace
        before = known.lineages.pop(namespace, None)
        after = change.after.lineage if change.after is not None else None
        if after is not None:
            known.lineages[namespace] = after
        if before is None or after is None or _is_legacy(before) is not _is_legacy(after):
            # Which definition is meant may be another one, or how its versions are read.
            _index(known)
            return [*known.uses]
        moves = affected(known.indexes[namespace], before, after)
        changed: list[Move | Loss] = [*moves.moves, *moves.losses]
        return {_key(each.dependent.name) for each in changed}

    def observe_application(
        self, kind: Kind, change: Change[tuple[tuple[Use, ...], Any]]
    ) -> Iterable[Key]:
        del kind
        before, after = ((each[0] if each else ()) for each in (change.before, change.after))
        if before != after:
            for use in before:
                self._forget(use, change.key)
            for use in after:
                self._note(use, change.key)
        return (change.key,) if change.after is not None and change.before != change.after else ()

    def _forget(self, use: Use, key: Key) -> None:
        known = self._known.setdefault((use.kind, use.definition), _Followed())
        known.uses.pop(key, None)
        for index in known.indexes.values():
            index.remove(use.dependent)

    def _note(self, use: Use, key: Key) -> None:
        known = self._known.setdefault((use.kind, use.definition), _Followed())
        known.uses.setdefault(key, []).append(use)
        _put(known, use)


def _index(known: _Followed) -> None:
    known.indexes = {namespace: Index() for namespace in known.lineages}
    for uses in known.uses.values():
        for use in uses:
            _put(known, use)


def _put(known: _Followed, use: Use) -> None:
    home = home_of(use, known.lineages)
    if home is None:
        return
    lineage, mine = known.lineages[home], settled(use, home)
    try:
        asked, policy = question_of(mine, lineage)
    except PolyverError:
        return  # what nobody can read is not answered by another version either
    known.indexes[home].put(mine.dependent, lineage.name, asked, policy)


def _is_legacy(lineage: Lineage) -> bool:
    return any(isinstance(release.version, Serial) for release in lineage)


def _key(dependent: str) -> Key:
    return Key(*dependent.removeprefix("Application ").split("/"))


def _lineage(kind: Kind, obj: Object) -> _Published:
    del kind
    return _Published(lineage_in(obj))


class _Published:
    """A lineage that equals another with the same releases."""

    __slots__ = ("lineage",)

    def __init__(self, lineage: Lineage | None) -> None:
        self.lineage = lineage

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Published) and self._releases == other._releases

    def __hash__(self) -> int:
        return hash(self._releases)

    @property
    def _releases(self) -> tuple[Release, ...]:
        return self.lineage.releases if self.lineage is not None else ()


def _state(kind: Kind, obj: Object) -> tuple[tuple[Use, ...], Any]:
    del kind
    metadata = obj["metadata"]
    seen = metadata.get("uid"), metadata.get("generation"), str(metadata.get("annotations"))
    status = obj.get("status") or {}
    return tuple(uses_of(obj)), (*seen, "deletionTimestamp" in metadata, "resolutions" in status)
