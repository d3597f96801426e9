"""Controller of definitions: creates revisions, sets the status, and protects versions in use.

The package `publishing` makes the decisions. Admission uses the same decisions before a write.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any, NamedTuple

from polyver.capability.gates import GATE, STATE, LineageName
from polyver.capability.rollouts import holding_policy
from polyver.client import (
    Change,
    Client,
    Clock,
    GroupVersionResource,
    Key,
    SystemClock,
    find,
    timestamp,
)
from polyver.client.field_managers import POLYVER
from polyver.controllers.controller import Controller, Requeue, Watch, exactly
from polyver.controllers.events import Events
from polyver.controllers.finalizers import add_finalizer, remove_finalizer
from polyver.controllers.identity import identity_of
from polyver.controllers.kubernetes.accounts import is_terminating
from polyver.core import Lineage
from polyver.core.adoption import Adoption
from polyver.core.plain import Object
from polyver.definitions.kinds import APPLICATIONS, DEFINITIONS, GROUP, REVISIONS, STORED, VERSIONED
from polyver.definitions.names import (
    ALLOW_DELETION,
    API_VERSION,
    IN_USE,
    SYSTEM_NAMESPACE,
    name_label,
    revision_name,
)
from polyver.definitions.publishing import (
    Decision,
    DesiredDefinition,
    GatePolicy,
    adoption_of,
    created_with,
    decide,
    forced_of,
    holders_of,
    in_use,
    known_revision,
    known_revisions,
    other_writer,
    read_definition,
    removed_of,
    revision_object,
    status_of,
    with_adoption,
)
from polyver.definitions.resolution import lineage_in
from polyver.definitions.uses import DefinitionUse, home_of, settled, users_in, uses_of
from polyver.definitions.versions import newest_of
from polyver.kube.http.logs import Log
from polyver.kube.objects.kinds import ResourceKind
from polyver.kube.objects.status import ApiError
from polyver.languages.values.names import label_value_problems

__all__ = ["ClientDefinitionLookup", "DefinitionController", "DefinitionKey"]

_SOON = 0.05
_COUNTED = 1.0
"""Minimum seconds between two counts of the followers of a definition, for its status.

A follower is a reference that moves to new releases automatically.
"""
_RESOURCES = {
    kind.kind: GroupVersionResource(GROUP, VERSIONED, kind.names.plural) for kind in DEFINITIONS
}
_REVISIONS = GroupVersionResource(GROUP, STORED, REVISIONS.names.plural)
_APPLICATIONS = GroupVersionResource(GROUP, STORED, APPLICATIONS.names.plural)


class DefinitionKey(NamedTuple):
    """Identifies a definition."""

    kind: str
    namespace: str
    name: str


class DefinitionController(Controller[DefinitionKey]):
    """Reconciles definitions when they, their revisions or applications that use them change."""

    name = "definitions"

    def __init__(
        self,
        client: Client,
        *,
        gate: GatePolicy = "refuse",
        clock: Clock | None = None,
        log: Log | None = None,
    ) -> None:
        self._client = client
        self._gate = gate
        self._clock: Clock = clock or SystemClock()
        self._published = ClientDefinitionLookup(client)
        self._uses = _Uses()
        self._events = Events(client, self._clock, log or Log(), component="polyver")
        self._decided_on: set[DefinitionKey] = set()
        """Definitions for which no new decision is needed.

        If one of them is reconciled, the controller only counts its followers again.
        """
        self._counted_at: dict[DefinitionKey, float] = {}
        self._announced: set[tuple[DefinitionKey, str, str]] = set()
        """Definition, uid and digest of each version whose adoption event was already emitted."""

    @property
    def watches(self) -> Sequence[Watch[Any, DefinitionKey]]:
        return [
            *(
                Watch(
                    kinds=exactly(resource),
                    observe=self._observe_definition,
                    keep=_state,
                    metadata=True,
                )
                for resource in _RESOURCES.values()
            ),
            Watch(
                kinds=exactly(_REVISIONS),
                observe=self._observe_revision,
                keep=_revision,
                metadata=True,
            ),
            Watch(kinds=exactly(_APPLICATIONS), observe=self._observe_application, keep=_used),
        ]

    def _observe_definition(
        self, kind: ResourceKind, change: Change[Any]
    ) -> Iterable[DefinitionKey]:
        return self._undecided(self._uses.observe_definition(kind, change))

    def _observe_revision(self, kind: ResourceKind, change: Change[Any]) -> Iterable[DefinitionKey]:
        del kind
        if change.before == change.after:
            return ()
        keys = set()
        for known in (change.before, change.after):
            if known is not None:
                labelled = {"metadata": {"name": "", "labels": known[1]}}
                [(holder, name)] = holders_of([labelled]).values()
                if holder:
                    keys.add(DefinitionKey(holder, change.key.namespace, name))
        return self._undecided(keys)

    def _observe_application(
        self, kind: ResourceKind, change: Change[tuple[DefinitionUse, ...]]
    ) -> Iterable[DefinitionKey]:
        touched, counted = self._uses.observe_application(kind, change)
        return {*self._undecided(touched), *counted}

    def _undecided(self, keys: Iterable[DefinitionKey]) -> set[DefinitionKey]:
        """Record that these definitions need a new decision. Return their keys."""
        touched = {*keys}
        self._decided_on -= touched
        return touched

    async def reconcile(self, key: DefinitionKey) -> Requeue | None:
        if not self.synced:
            # Wait: applications that are not listed yet would be missing, and their versions would
            # be treated as unused.
            return Requeue(_SOON)
        is_decided = key in self._decided_on
        if is_decided and (left := self._until_counted(key)):
            return Requeue(left)
        resource = _RESOURCES[key.kind]
        # Add the key before reading the definition. If a change arrives later, it removes the key,
        # and the definition is decided on again.
        self._decided_on.add(key)
        try:
            obj = await find(self._client, resource, key.name, key.namespace)
            if obj is None:
                self._decided_on.discard(key)
                self._counted_at.pop(key, None)
            elif is_decided:
                await self._tell(resource, obj, obj.get("status") or {}, key)
            else:
                await self._decide(resource, obj, key)
        except BaseException:
            self._decided_on.discard(key)
            raise
        return None

    def _until_counted(self, key: DefinitionKey) -> float:
        """Return the seconds until the followers of a definition may be counted again.

        The delay limits writes: thousands of followers may move at the same time, and each move
        changes the numbers.
        """
        return max(self._counted_at.get(key, 0.0) + _COUNTED - self._clock.time(), 0.0)

    async def _decide(
        self, resource: GroupVersionResource, obj: Object, key: DefinitionKey
    ) -> None:
        """Publish and remove versions, unless there are refusals. Then set the status."""
        if API_VERSION not in (obj["metadata"].get("annotations") or {}):
            # The definition was created without a call of admission, so it has no annotation with
            # the API version. Add this annotation.
            change = {"metadata": {"annotations": {API_VERSION: created_with(obj)}}}
            await self._client.patch(
                resource, key.name, key.namespace, change=change, manager=POLYVER
            )
            return
        revisions = await self._published.revisions(*key)
        definition, problems = read_definition(obj)
        # Read the policy after the revisions. So a policy that became Ready before one of these
        # revisions was created is found.
        lineage = LineageName(GROUP, key.kind, key.namespace, key.name)
        policy = await holding_policy(self._client, lineage, obj["metadata"].get("labels") or {})
        decision = await self._decided(definition, revisions, obj, key, policy)
        refusals = [*other_writer(obj), *problems, *decision.refusals]
        self._uses.name_all(key, wanted=bool(refusals))
        # Add and remove finalizers first, so that removed revisions can be deleted. The creation of
        # a revision causes another reconcile, which adds the finalizer of this revision.
        forced = forced_of(definition, obj)
        if not refusals:
            await self._record(key, definition, decision, revisions, obj)
        await self._hold(key, decision.before, revisions, obj, forced)
        if not refusals and "deletionTimestamp" not in obj["metadata"]:
            await self._perform(definition, decision, obj)
            await self._allow(obj, decision, revisions)
        status = status_of(obj, decision, refusals, now=timestamp(self._clock))
        await self._tell(resource, obj, status, key)

    async def _decided(
        self,
        definition: DesiredDefinition,
        revisions: Sequence[Object],
        obj: Object,
        key: DefinitionKey,
        policy: str,
    ) -> Decision:
        known = known_revisions(revisions, policy=policy)
        removed = removed_of(obj, definition, known)
        # Run this in a thread: comparing many schemas takes time, and must not block the event
        # loop.
        decided = partial(decide, definition, known, removed, gate=self._gate, policy=policy)
        decision = await asyncio.to_thread(decided)
        if decision.create:
            holders = holders_of(await self._published.holders(definition.namespace))
            decision = await asyncio.to_thread(decided, holders=holders)
        uses = self._uses.of(key) if decision.remove else ()
        return in_use(decision, uses, definition.forced)

    async def _record(
        self,
        key: DefinitionKey,
        definition: DesiredDefinition,
        decision: Decision,
        revisions: Sequence[Object],
        obj: Object,
    ) -> None:
        """Emit an event for each version that is removed although applications use it.

        The caller removes the versions after this, so no event is lost if polyver stops in between.
        """
        if "deletionTimestamp" in obj["metadata"]:
            everything = Decision(remove=tuple(known_revisions(revisions)), before=decision.before)
            decision = in_use(everything, self._uses.of(key), definition.forced)
        for each in decision.forced:
            await self._events.tell(obj, "RemovedByForce", str(each), type="Warning")

    async def _perform(
        self, definition: DesiredDefinition, decision: Decision, obj: Object
    ) -> None:
        for new in decision.create:
            # If a revision with this name exists already, another definition owns it. The next
            # reconcile reports this.
            made = revision_object(definition, new, obj)
            try:
                await self._client.create(_REVISIONS, made, manager=POLYVER)
            except ApiError as error:
                if is_terminating(error):
                    return  # the definition is being deleted too
                raise
        for known in decision.remove:
            try:
                await self._client.delete(_REVISIONS, known.name, definition.namespace)
            except ApiError as error:
                if error.code != 404:
                    raise

    async def _allow(self, obj: Object, decision: Decision, revisions: Sequence[Object]) -> None:
        """Copy the annotation `polyver.dev/allow-deletion` of a definition to its newest revision.

        Do nothing if the definition lacks the annotation, or if the revision already has it.
        """
        allowed = (obj["metadata"].get("annotations") or {}).get(ALLOW_DELETION)
        newest = newest_of(decision.after)
        if allowed is None or newest is None:
            return
        for each in revisions:
            known, metadata = known_revision(each), each["metadata"]
            is_told = ALLOW_DELETION in (metadata.get("annotations") or {})
            if known is not None and known.release.pin == newest.pin and not is_told:
                change = {"metadata": {"annotations": {ALLOW_DELETION: allowed}}}
                names = metadata["name"], metadata["namespace"]
                await self._client.patch(_REVISIONS, *names, change=change, manager=POLYVER)

    async def _hold(
        self,
        key: DefinitionKey,
        lineage: Lineage,
        revisions: Sequence[Object],
        obj: Object,
        forced: frozenset[str],
    ) -> None:
        """Add the finalizer to each revision that applications use; remove it from the others.

        The definition itself gets the finalizer if applications use at least one of its revisions.
        The versions in `forced` count as unused, because the user allows to remove them.
        """
        used = {*users_in(self._uses.ways(key), lineage)}
        used -= {r.name for r in lineage if {r.name, revision_name(key.name, r.version)} & forced}
        for each in revisions:
            known = known_revision(each)
            held = known is not None and known.release.name in used
            await self._set_finalizer(_REVISIONS, each, held=held)
        await self._set_finalizer(_RESOURCES[key.kind], obj, held=bool(used))

    async def _set_finalizer(
        self, resource: GroupVersionResource, obj: Object, *, held: bool
    ) -> None:
        metadata = obj["metadata"]
        if held and "deletionTimestamp" in metadata:
            return  # API servers refuse a new finalizer on an object that is being deleted
        write = add_finalizer if held else remove_finalizer
        made = await write(self._client, resource, obj, IN_USE, manager=POLYVER)
        metadata |= made["metadata"]

    async def _tell(
        self,
        resource: GroupVersionResource,
        obj: Object,
        status: Mapping[str, Any],
        key: DefinitionKey,
    ) -> None:
        """Write the status, with the numbers of followers of each version, if it has changed."""
        self._counted_at[key] = self._clock.time()
        metadata = obj["metadata"]
        wanted = {**obj, "status": status}
        lineage = lineage_in(wanted)
        adoption = adoption_of(self._uses.counted(key), lineage) if lineage is not None else {}
        status = with_adoption(wanted, adoption, now=timestamp(self._clock))
        if lineage is not None:
            await self._announce(obj, lineage, adoption, key)
        if status == obj.get("status"):
            return
        try:
            await self._client.patch(
                resource,
                metadata["name"],
                metadata["namespace"],
                change={"status": status},
                subresource="status",
                manager=POLYVER,
            )
        except ApiError as error:
            if error.code != 404:  # the last finalizer may just have been removed
                raise

    async def _announce(
        self, obj: Object, lineage: Lineage, adoption: Mapping[str, Adoption], key: DefinitionKey
    ) -> None:
        """Emit one event for each version, when all its followers have tried to move to it.

        The event is `Adopted` if all moves succeeded, otherwise `NotAdopted`.
        """
        for name, each in adoption.items():
            release = lineage.get(name)
            assert release is not None
            known = key, obj["metadata"]["uid"], release.digest
            if not each.is_settled or known in self._announced:
                continue
            failed = bool(each.held or each.failing)
            message = f"{key.name} {name}: {each}"
            await self._events.tell(
                obj,
                "NotAdopted" if failed else "Adopted",
                message,
                type="Warning" if failed else "Normal",
                once=f"Adopted\n{name}\n{release.digest}",
            )
            self._announced.add(known)


class ClientDefinitionLookup:
    """Reads definitions, their revisions, and the references to them from an API server."""

    def __init__(self, client: Client) -> None:
        self._client = client

    async def revisions(self, kind: str, namespace: str, name: str) -> list[Object]:
        """List the DefinitionRevisions of a definition."""
        if label_value_problems(name):
            # revisions store the name in a label, and this name is not a valid label value
            return []
        labels = f"{name_label(kind)}={name}"
        return (await self._client.list(_REVISIONS, namespace, labels=labels)).items

    async def holders(self, namespace: str) -> list[Object]:
        """List the metadata of all DefinitionRevisions of a namespace."""
        return (await self._client.list(_REVISIONS, namespace, metadata=True)).items

    async def definition(self, kind: str, namespace: str, name: str) -> Object | None:
        """Read a definition in v2beta1; return None if it does not exist."""
        return await find(self._client, _RESOURCES[kind], name, namespace)

    async def uses(self, kind: str, namespace: str, name: str) -> list[DefinitionUse]:
        """Find all references that applications have to a definition."""
        only = "" if namespace == SYSTEM_NAMESPACE else namespace
        applications = (await self._client.list(_APPLICATIONS, only)).items
        fields = f"metadata.name={name}"
        found = await self._client.list(_RESOURCES[kind], fields=fields, metadata=True)
        homes = {each["metadata"]["namespace"] for each in found.items}
        uses = [use for each in applications for use in uses_of(each)]
        named = [use for use in uses if (use.kind, use.definition) == (kind, name)]
        return [settled(use, namespace) for use in named if home_of(use, homes) == namespace]


def _way(use: DefinitionUse) -> DefinitionUse:
    """Return a use without the fields that identify its application and its place in the spec.

    Uses for which this function returns equal results select the same version.
    """
    nobody = replace(use.dependent, name="", at="", uid="", labels={})
    return replace(use, place="", since="", dependent=nobody)


class _Uses:
    """Index of the references to each definition. Watches keep it up to date.

    The index groups the references that differ only in their application (see `_way`). Thousands of
    applications may use a definition, but they usually have only a few distinct selectors and
    policies. To find the versions in use, it is enough to look at one reference of each group.
    """

    def __init__(self) -> None:
        self._homes: dict[tuple[str, str], set[str]] = {}
        self._by_definition: dict[
            tuple[str, str], dict[DefinitionUse, dict[tuple[Key, str], DefinitionUse]]
        ] = {}
        self._named: set[DefinitionKey] = set()

    def of(self, key: DefinitionKey) -> list[DefinitionUse]:
        """Return all references to a definition."""
        users = self._by_definition.get((key.kind, key.name), {}).values()
        return self._mine(key, [use for uses in users for use in uses.values()])

    def counted(self, key: DefinitionKey) -> list[tuple[DefinitionUse, int]]:
        """Return one use of each group, with the number of uses in that group."""
        users = self._by_definition.get((key.kind, key.name), {}).values()
        found = []
        for uses in users:
            found += [(use, len(uses)) for use in self._mine(key, [next(iter(uses.values()))])]
        return found

    def ways(self, key: DefinitionKey) -> list[DefinitionUse]:
        """Return one use of each group. The uses of a group differ only in their application."""
        users = self._by_definition.get((key.kind, key.name), {}).values()
        return self._mine(key, [next(iter(uses.values())) for uses in users])

    def _mine(self, key: DefinitionKey, uses: Iterable[DefinitionUse]) -> list[DefinitionUse]:
        homes = self._homes.get((key.kind, key.name), set()) | {key.namespace}
        mine = [use for use in uses if home_of(use, homes) == key.namespace]
        return [settled(use, key.namespace) for use in mine]

    def name_all(self, key: DefinitionKey, *, wanted: bool) -> None:
        """Set whether every change of a reference to a definition causes a new decision.

        This is needed while a decision has refusals, because the messages of refusals contain the
        names of applications.
        """
        (self._named.add if wanted else self._named.discard)(key)

    def observe_definition(
        self, kind: ResourceKind, change: Change[Any]
    ) -> Iterable[DefinitionKey]:
        homes = self._homes.setdefault((kind.kind, change.key.name), set())
        key = DefinitionKey(kind.kind, change.key.namespace, change.key.name)
        if change.before == change.after:
            return ()
        if change.after is None:
            homes.discard(key.namespace)
        else:
            homes.add(key.namespace)
        came_or_went = change.before is None or change.after is None
        # If the definition was created, references to the definition in the system namespace may
        # now refer to this definition. If it was deleted, references may now refer to the
        # definition in the system namespace.
        shadowed = came_or_went and SYSTEM_NAMESPACE in homes
        return {key, key._replace(namespace=SYSTEM_NAMESPACE)} if shadowed else (key,)

    def observe_application(
        self, kind: ResourceKind, change: Change[tuple[DefinitionUse, ...]]
    ) -> tuple[set[DefinitionKey], set[DefinitionKey]]:
        """Update the index after a change of an application.

        Return the definitions that need a new decision, and the definitions whose followers must be
        counted again.
        """
        del kind
        touched: set[DefinitionKey] = set()
        counted: set[DefinitionKey] = set()
        if change.before == change.after:
            return touched, counted
        for use in change.before or ():
            ways, way = self._by_definition.get((use.kind, use.definition), {}), _way(use)
            users = ways.get(way, {})
            users.pop((change.key, use.dependent.at), None)
            if not users:
                ways.pop(way, None)
            touched |= self._touched(use, changed=not users)
            counted |= self._meant(use)
        for use in change.after or ():
            ways = self._by_definition.setdefault((use.kind, use.definition), {})
            users = ways.setdefault(_way(use), {})
            is_new_way = not users
            users[change.key, use.dependent.at] = use
            touched |= self._touched(use, changed=is_new_way)
            counted |= self._meant(use)
        return touched, counted

    def _meant(self, use: DefinitionUse) -> set[DefinitionKey]:
        home = home_of(use, self._homes.get((use.kind, use.definition), ()))
        return {DefinitionKey(use.kind, home, use.definition)} if home is not None else set()

    def _touched(self, use: DefinitionUse, *, changed: bool) -> set[DefinitionKey]:
        named = DefinitionKey(use.kind, use.namespace, use.definition)
        both = {named, named._replace(namespace=SYSTEM_NAMESPACE)}
        return both if changed else both & self._named


def _state(kind: ResourceKind, obj: Object) -> tuple[Any, ...]:
    del kind
    metadata = obj["metadata"]
    seen = (metadata.get(name) for name in ("uid", "generation", "deletionTimestamp"))
    return (*seen, str(metadata.get("annotations")), str(metadata.get("finalizers")))


def _revision(kind: ResourceKind, obj: Object) -> tuple[Any, Mapping[str, str], Any]:
    labels = obj["metadata"].get("labels") or {}
    identity = identity_of(kind, obj)
    annotations = obj["metadata"].get("annotations") or {}
    said = tuple(annotations.get(name) for name in (ALLOW_DELETION, STATE, GATE))
    return identity.uid, labels, (identity.finalizers, identity.deleting, said)


def _used(kind: ResourceKind, obj: Object) -> tuple[DefinitionUse, ...]:
    del kind
    return tuple(uses_of(obj))
