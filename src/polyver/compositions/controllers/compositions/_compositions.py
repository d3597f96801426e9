"""Controller of Compositions: creates, numbers, labels and adopts their revisions.

To adopt a revision means to make the Composition the owner of the revision. The function
`composition_changes` makes the decisions. Old revisions are kept. Compositions and revisions that
composite resources use get a finalizer.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from polyver.capability import Refusal
from polyver.capability.gates import LineageName
from polyver.capability.rollouts import holding_policy
from polyver.client import (
    Change,
    Client,
    Clock,
    GroupVersionResource,
    Key,
    SystemClock,
    find,
    precondition,
)
from polyver.client.field_managers import POLYVER
from polyver.compositions.controllers.compositions._snapshot import (
    COMPOSITION_REVISIONS,
    COMPOSITIONS,
    ClientCompositionLookup,
    shown,
    state_of,
)
from polyver.compositions.controllers.packages import composites, keep_revision, observe_name
from polyver.compositions.decisions import (
    Changes,
    KnownCompositionRevision,
    check_composition,
    composition_changes,
    composition_of,
    composition_revision_object,
    composition_revision_patch,
    is_by_force,
    is_going,
    known_composition_revision,
)
from polyver.compositions.names import ALLOW_DELETION, USED
from polyver.compositions.pipeline import allows_deletion
from polyver.controllers.controller import Controller, Requeue, Watch, exactly
from polyver.controllers.events import Events
from polyver.controllers.finalizers import add_finalizer, remove_finalizer
from polyver.core import listed
from polyver.core.plain import Object
from polyver.kube.http.logs import Log
from polyver.kube.objects.kinds import ResourceKind
from polyver.kube.objects.status import ApiError

__all__ = ["CompositionController"]

_LATER = 1.0
"""Seconds until the next reconcile while the watches are not synced."""


_User = tuple[str, str, Key]
"""Group, kind and key of a composite resource."""


class CompositeUsers:
    """Records which composite resources use each CompositionRevision."""

    def __init__(self) -> None:
        self._users: dict[str, dict[_User, None]] = {}

    def of(self, revision: str) -> Sequence[str]:
        """Return the composite resources that use a revision, in the form `KIND NAMESPACE/NAME`."""
        return [shown(kind, *reversed(key)) for _, kind, key in self._users.get(revision, ())]

    def observe(self, kind: ResourceKind, change: Change[str]) -> set[str]:
        """Record a change of a composite resource.

        Return the revisions that got their first user or lost their last user.
        """
        user = kind.group, kind.kind, change.key
        touched = {self._drop(change.before or "", user)}
        if change.after:
            users = self._users.setdefault(change.after, {})
            touched ^= {change.after} if not users else set()
            users[user] = None
        return touched - {""}

    def forget(self, kind: ResourceKind) -> set[str]:
        """Remove the users of a kind that is no longer served.

        Return the revisions that are then unused.
        """
        gone = [
            (revision, user)
            for revision, users in self._users.items()
            for user in users
            if user[:2] == (kind.group, kind.kind)
        ]
        return {self._drop(*each) for each in gone} - {""}

    def _drop(self, revision: str, user: _User) -> str:
        """Remove a user. Return the revision if it has no users now; otherwise return ""."""
        users = self._users.get(revision)
        if users is None or user not in users:
            return ""
        del users[user]
        if users:
            return ""
        del self._users[revision]
        return revision

    def used(self, revisions: Iterable[str]) -> set[str]:
        """Return the given revisions that are in use."""
        return {each for each in revisions if each in self._users}


class CompositionController(Controller[str]):
    """Reconciles Compositions.

    The key is the name. Changes of revisions and users cause a reconcile too.
    """

    name = "compositions"

    def __init__(
        self,
        client: Client,
        *,
        several: bool = True,
        clock: Clock | None = None,
        log: Log | None = None,
    ) -> None:
        """Create a controller; with `several`, steps may select a function revision."""
        self._client = client
        self._several = several
        self._composed = ClientCompositionLookup(client)
        self._events = Events(client, clock or SystemClock(), log or Log(), component="polyver")
        self._users = CompositeUsers()
        self._compositions: dict[str, str] = {}
        """The name of the Composition to which each revision belongs, by the name of the revision.
        """

    @property
    def watches(self) -> Sequence[Watch[Any, str]]:
        return [
            Watch(kinds=exactly(COMPOSITIONS), observe=observe_name, keep=state_of, metadata=True),
            Watch(
                kinds=exactly(COMPOSITION_REVISIONS),
                observe=self._observe_revision,
                keep=_revision,
                metadata=True,
            ),
            Watch(
                kinds=composites,
                observe=self._observe_composite,
                keep=keep_revision,
                forget=self._forget,
            ),
        ]

    async def reconcile(self, key: str) -> Requeue | None:
        obj = await find(self._client, COMPOSITIONS, key)
        found = await self._composed.revisions(key)
        revisions = {each["metadata"]["name"]: each for each in found}
        if self.synced:  # before that, a revision in use may look unused
            obj = await self._hold(obj, revisions)
        if obj is not None and not is_going(obj):
            await self._revise(obj, revisions)
        return None if self.synced else Requeue(_LATER)

    async def _revise(self, obj: Object, revisions: dict[str, Object]) -> None:
        refusals = check_composition(obj, several=self._several)
        if not refusals:
            known = [*map(known_composition_revision, revisions.values())]
            # Read the policy after the revisions. So a policy that became Ready before one of
            # these revisions was created is known.
            lineage = LineageName(COMPOSITIONS.group, "Composition", "", obj["metadata"]["name"])
            labels = obj["metadata"].get("labels") or {}
            policy = await holding_policy(self._client, lineage, labels)
            changes = composition_changes(obj, known, policy=policy)
            refusals += changes.refusals or await self._perform(obj, changes, known, revisions)
            if not refusals and allows_deletion(obj):
                await self._allow_deletion(changes.current)
        for each in refusals:
            await self._events.tell(obj, each.reason, str(each), type="Warning")

    async def _perform(
        self,
        obj: Object,
        changes: Changes,
        known: Sequence[KnownCompositionRevision],
        revisions: Mapping[str, Object],
    ) -> list[Refusal]:
        if changes.create is not None:
            refusals = await self._create(obj, changes.create)
            if refusals:
                return refusals
        before = {each.name: each for each in known}
        for each in changes.changes:
            change = composition_revision_patch(before[each.name], each, obj)
            await self._change(revisions[each.name], change)
        return []

    async def _create(self, obj: Object, known: KnownCompositionRevision) -> list[Refusal]:
        made = composition_revision_object(known, obj)
        try:
            await self._client.create(COMPOSITION_REVISIONS, made, manager=POLYVER)
        except ApiError as error:
            if error.reason != "AlreadyExists":
                raise
            there = await find(self._client, COMPOSITION_REVISIONS, known.name)
            if there is None or composition_of(there) == obj["metadata"]["name"]:
                raise  # it was created or deleted meanwhile: reconcile again
            fact = f"its revision would be named {known.name}, which has another owner"
            return [Refusal("NameTaken", fact, at="metadata.name", hint="delete that revision")]
        message = f"{known.name} is revision {known.number}"
        await self._events.tell(obj, "RevisionCreated", message)
        return []

    async def _allow_deletion(self, current: str) -> None:
        """Set the annotation `polyver.dev/allow-deletion` on the CompositionRevision `current`.

        The caller has checked that the Composition has this annotation.
        """
        found = await find(self._client, COMPOSITION_REVISIONS, current)
        if found is not None and not allows_deletion(found):
            await self._change(found, {"metadata": {"annotations": {ALLOW_DELETION: "true"}}})

    async def _change(self, obj: Object, change: Object) -> None:
        metadata = obj["metadata"]
        # Send the resourceVersion. If the object has changed meanwhile, the patch fails, and the
        # decision is made again.
        change = {**change, "metadata": {**change.get("metadata", {}), **precondition(obj)}}
        await self._client.patch(
            COMPOSITION_REVISIONS, metadata["name"], change=change, manager=POLYVER
        )

    # Finalizers of objects in use.

    async def _hold(self, obj: Object | None, revisions: dict[str, Object]) -> Object | None:
        """Add the finalizer to the revisions in use, and to a Composition with revisions in use.

        Remove it from objects that are not in use, and from an object that is being deleted by
        force.
        """
        used = self._users.used(revisions)
        for name, each in revisions.items():
            users = {name} & used
            revisions[name] = await self._set(COMPOSITION_REVISIONS, each, users)
        return await self._set(COMPOSITIONS, obj, used) if obj is not None else None

    async def _set(
        self, resource: GroupVersionResource, obj: Object, used: Iterable[str]
    ) -> Object:
        if not used or (is_going(obj) and is_by_force(obj)):
            await self._record(obj, used)
            return await remove_finalizer(self._client, resource, obj, USED)
        if is_going(obj):  # API servers refuse new finalizers for such an object
            return obj
        return await add_finalizer(self._client, resource, obj, USED)

    async def _record(self, obj: Object, used: Iterable[str]) -> None:
        """Emit the event about a deletion by force.

        The event is emitted before the finalizer is removed, so that it is not lost.
        """
        if users := sorted({user for name in used for user in self._users.of(name)}):
            message = f"deleted by force, although used by {listed(users)}"
            await self._events.tell(obj, "DeletedByForce", message, type="Warning")

    # Watches.

    def _observe_revision(
        self, kind: ResourceKind, change: Change[tuple[str, Any]]
    ) -> Iterable[str]:
        del kind
        if change.before == change.after:
            return ()
        if change.after is None:
            self._compositions.pop(change.key.name, None)
        else:
            self._compositions[change.key.name] = change.after[0]
        return {each[0] for each in (change.before, change.after) if each is not None and each[0]}

    def _observe_composite(self, kind: ResourceKind, change: Change[str]) -> Iterable[str]:
        return self._touched(self._users.observe(kind, change))

    def _forget(self, kind: ResourceKind, known: Iterable[str]) -> Iterable[str]:
        del known
        return self._touched(self._users.forget(kind))

    def _touched(self, revisions: Iterable[str]) -> set[str]:
        found = {self._compositions.get(each, "") for each in revisions}
        return found - {""}


def _revision(kind: ResourceKind, obj: Object) -> tuple[str, Any]:
    return composition_of(obj), (*state_of(kind, obj), str(obj["metadata"].get("ownerReferences")))
