"""Controller of Functions: creates, numbers, activates, deactivates and deletes their revisions.

`polyver.compositions.packages` makes the decisions. Admission uses the same rules before a write.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from polyver.capability import Refusal
from polyver.capability.gates import GATE, STATE, LineageName
from polyver.capability.rollouts import holding_policy
from polyver.client import Change, Client, Clock, SystemClock, find, precondition, timestamp
from polyver.client.field_managers import POLYVER
from polyver.compositions.controllers.packages._digests import (
    DigestLimits,
    DigestLookup,
    DigestRequest,
    Digests,
)
from polyver.compositions.controllers.packages._lookup import (
    FUNCTION_REVISIONS,
    FUNCTIONS,
    ClientFunctionLookup,
    Dependents,
    NoDependents,
    observe_name,
)
from polyver.compositions.names import ALLOW_DELETION, COPIED, ENDPOINT, IN_USE
from polyver.compositions.packages import (
    UNPACKING,
    DesiredFunction,
    FunctionPackageState,
    FunctionPlan,
    KnownFunctionRevision,
    check_package,
    decide,
    function_of,
    function_status,
    known_revision,
    read_function,
    recorded_digest,
    revision_object,
    revision_patch,
)
from polyver.compositions.pipeline import allows_deletion
from polyver.compositions.runtimes import Runtime
from polyver.controllers.controller import Controller, Requeue, Watch, exactly
from polyver.controllers.events import Events
from polyver.controllers.finalizers import add_finalizer, remove_finalizer
from polyver.controllers.statuses import write_status
from polyver.core.plain import Object
from polyver.kube.http.logs import Log
from polyver.kube.objects.conditions import find_condition
from polyver.kube.objects.kinds import ResourceKind
from polyver.kube.objects.status import ApiError

__all__ = ["FunctionController"]

_LATER = 1.0
"""Seconds until the next reconcile while the users of functions are not known."""


class FunctionController(Controller[str]):
    """Reconciles Functions.

    The key is the name. Changes of revisions and users cause a reconcile too.
    """

    name = "functions"

    def __init__(
        self,
        client: Client,
        runtime: Runtime,
        *,
        dependents: Dependents | None = None,
        several: bool = True,
        limits: DigestLimits | None = None,
        clock: Clock | None = None,
        log: Log | None = None,
    ) -> None:
        """Create a controller; with `several`, a Function may have several active revisions."""
        self._client = client
        self._several = several
        self._clock: Clock = clock or SystemClock()
        self._dependents = dependents or NoDependents()
        self._installed = ClientFunctionLookup(client, self._dependents)
        log = log or Log()
        self._events = Events(client, self._clock, log, component="polyver")
        self._digests = Digests(
            runtime,
            self._wake,
            clock=self._clock,
            limits=limits or DigestLimits(),
            log=log,
        )

    @property
    def watches(self) -> Sequence[Watch[Any, str]]:
        return [
            Watch(kinds=exactly(FUNCTIONS), observe=observe_name, keep=_state),
            Watch(kinds=exactly(FUNCTION_REVISIONS), observe=_observe_revision, keep=_revision),
            *self._dependents.watches,
        ]

    async def close(self) -> None:
        await self._digests.close()

    def _wake(self, key: str) -> None:
        # read the attribute at each call, because the loop of the controller replaces `wake`
        self.wake(key)

    async def reconcile(self, key: str) -> Requeue | None:
        obj = await self._installed.function(key)
        if obj is None:
            self._digests.forget(key)
            return None
        revisions = {
            each["metadata"]["name"]: each for each in await self._installed.revisions(key)
        }
        function, known = read_function(obj), [*map(known_revision, revisions.values())]
        refusals = check_package(obj, several=self._several)
        answer = DigestLookup() if refusals else self._answer(function, obj, known)
        # Wait: before the watches are synced, a function in use would be treated as unused.
        uses = await self._installed.uses(key) if self.synced else None
        # Read the policy after the revisions. So a policy that became Ready before one of these
        # revisions was created is known.
        policy = await holding_policy(
            self._client, LineageName(FUNCTIONS.group, "Function", "", key), function.labels
        )
        pins = self._dependents.pins(key)
        plan = decide(function, known, answer.digest, uses, pins=pins, policy=policy)
        refusals += plan.refusals
        if uses is not None:
            obj = await self._hold(obj, revisions, plan.selected if function.strict else {})
        if "deletionTimestamp" in obj["metadata"]:
            return None
        if not refusals:
            refusals += await self._perform(obj, plan, known, revisions)
            current = revisions.get(plan.current or "")
            if current is not None and allows_deletion(obj) and not allows_deletion(current):
                allowed = {"metadata": {"annotations": {ALLOW_DELETION: "true"}}}
                await self._change(current, allowed)
        # While the current revision is unknown, report the state of the last known revision.
        shown = plan.current or (obj.get("status") or {}).get("currentRevision", "")
        asking = answer.digest is None and not answer.problem
        reason = answer.reason or UNPACKING
        seen = FunctionPackageState(answer.problem, reason, asking, revisions.get(shown))
        await self._tell(obj, plan, refusals, seen)
        later = [each for each in (answer.again, _LATER if uses is None else None) if each]
        return Requeue(min(later)) if later else None

    def _answer(
        self, function: DesiredFunction, obj: Object, known: Sequence[KnownFunctionRevision]
    ) -> DigestLookup:
        """Return the digest of the package.

        If the status of the Function records a digest for the same package reference, this digest
        is returned. Otherwise the digest is computed.
        """
        recorded = recorded_digest(function, obj, known)
        if recorded is not None:
            self._digests.forget(function.name)
            return DigestLookup(recorded)
        question = DigestRequest(function.package, function.address, function.pull == "Always")
        return self._digests.answer(function.name, question)

    async def _hold(
        self, obj: Object, revisions: dict[str, Object], used: Mapping[str, object]
    ) -> Object:
        """Add the finalizer to the revisions in use, and to a Function with revisions in use.

        Remove it from objects that are not in use.
        """
        for name, each in revisions.items():
            if name not in used:
                await remove_finalizer(self._client, FUNCTION_REVISIONS, each, IN_USE)
            elif "deletionTimestamp" not in each["metadata"]:
                revisions[name] = await add_finalizer(
                    self._client, FUNCTION_REVISIONS, each, IN_USE
                )
        if not used:
            await remove_finalizer(self._client, FUNCTIONS, obj, IN_USE)
        elif "deletionTimestamp" not in obj["metadata"]:
            return await add_finalizer(self._client, FUNCTIONS, obj, IN_USE)
        return obj

    async def _perform(
        self,
        obj: Object,
        plan: FunctionPlan,
        known: Sequence[KnownFunctionRevision],
        revisions: dict[str, Object],
    ) -> list[Refusal]:
        if plan.create is not None:
            refusals = await self._create(obj, plan.create, revisions)
            if refusals:
                return refusals
        before = {each.name: each for each in known}
        for each in plan.changes:
            revisions[each.name] = await self._change(
                revisions[each.name], revision_patch(before[each.name], each)
            )
        for each in plan.collect:
            await self._delete(revisions.pop(each.name))
        return []

    async def _create(
        self, obj: Object, known: KnownFunctionRevision, revisions: dict[str, Object]
    ) -> list[Refusal]:
        made = revision_object(known, obj)
        try:
            revisions[known.name] = await self._client.create(
                FUNCTION_REVISIONS, made, manager=POLYVER
            )
        except ApiError as error:
            if error.reason != "AlreadyExists":
                raise
            there = await find(self._client, FUNCTION_REVISIONS, known.name)
            if there is None or function_of(there) == obj["metadata"]["name"]:
                raise  # it was created or deleted meanwhile: reconcile again
            fact = f"its revision would be named {known.name}, which has another owner"
            return [Refusal("NameTaken", fact, at="metadata.name", hint="delete that revision")]
        message = f"{known.name} is revision {known.number}: {obj['spec']['package']}"
        await self._events.tell(obj, "RevisionCreated", message)
        return []

    async def _change(self, obj: Object, change: Object) -> Object:
        metadata = obj["metadata"]
        # Send the resourceVersion. If the object has changed meanwhile, the patch fails, and the
        # decision is made again.
        change = {**change, "metadata": {**change.get("metadata", {}), **precondition(obj)}}
        return await self._client.patch(
            FUNCTION_REVISIONS, metadata["name"], change=change, manager=POLYVER
        )

    async def _delete(self, obj: Object) -> None:
        metadata = obj["metadata"]
        known = {"uid": metadata["uid"], "resource_version": metadata["resourceVersion"]}
        try:
            await self._client.delete(FUNCTION_REVISIONS, metadata["name"], **known)
        except ApiError as error:
            if error.code != 404:
                raise

    async def _tell(
        self,
        obj: Object,
        plan: FunctionPlan,
        refusals: Sequence[Refusal],
        seen: FunctionPackageState,
    ) -> None:
        status = function_status(obj, plan, refusals, seen, now=timestamp(self._clock))
        if await write_status(self._client, FUNCTIONS, obj, status, manager=POLYVER) is obj:
            return
        for reason, message in _troubles(plan, refusals, seen):
            await self._events.tell(obj, reason, message, type="Warning")


def _troubles(
    plan: FunctionPlan, refusals: Sequence[Refusal], seen: FunctionPackageState
) -> Iterable[tuple[str, str]]:
    for refusal in refusals:
        yield refusal.reason, str(refusal)
    if seen.problem:
        yield seen.reason, seen.problem
    for postponed in plan.postponed:
        yield "InUse", str(postponed)


def _state(kind: ResourceKind, obj: Object) -> tuple[Any, ...]:
    del kind
    metadata, status = obj["metadata"], obj.get("status") or {}
    seen = (metadata.get(name) for name in ("uid", "generation", "deletionTimestamp"))
    texts = (str(metadata.get(name)) for name in ("labels", "annotations", "finalizers"))
    return (*seen, *texts, status.get("currentIdentifier"), status.get("currentRevision"))


def _revision(kind: ResourceKind, obj: Object) -> tuple[str, Any]:
    del kind
    metadata, spec = obj["metadata"], obj.get("spec") or {}
    annotations = metadata.get("annotations") or {}
    healthy = find_condition(obj, "Healthy") or {}
    texts = (str(metadata.get(name)) for name in ("uid", "labels", "finalizers"))
    noted = (annotations.get(name) for name in (COPIED, ENDPOINT, STATE, GATE))
    said = (healthy.get(name) for name in ("status", "reason", "message"))
    state = spec.get("revision"), spec.get("desiredState"), "deletionTimestamp" in metadata
    return function_of(obj), (*texts, *noted, *said, *state)


def _observe_revision(kind: ResourceKind, change: Change[tuple[str, Any]]) -> Iterable[str]:
    del kind
    if change.before == change.after:
        return set()
    return {each[0] for each in (change.before, change.after) if each is not None and each[0]}
